#include "simcuda/machine/rm-call.h"

#include <sys/uio.h>
#include <unistd.h>

static bool copy(bool out, uint64_t remote, void *local, size_t size)
{
	struct iovec here = {local, size}, there = {(void *)(uintptr_t)remote, size};
	ssize_t n = out ? process_vm_writev(getpid(), &here, 1, &there, 1, 0)
			: process_vm_readv(getpid(), &here, 1, &there, 1, 0);

	return n == (ssize_t)size;
}

bool rm_call_copy_in(void *local, uint64_t remote, size_t size)
{
	return copy(false, remote, local, size);
}

bool rm_call_copy_out(uint64_t remote, void *local, size_t size)
{
	return copy(true, remote, local, size);
}
