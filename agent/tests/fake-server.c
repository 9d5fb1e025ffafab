#include "fake-server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct fake_server server;

enum mps_ending __wrap_mps_end_work(struct mps *mps, const struct gpu *gpu, pid_t pid);

enum mps_ending __wrap_mps_end_work(struct mps *mps, const struct gpu *gpu, pid_t pid)
{
	(void)mps;
	assert_ptr_equal(gpu, server.gpu);
	assert_int_equal(pid, *server.pid);
	server.asked++;
	return server.says;
}
