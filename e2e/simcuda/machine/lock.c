/* The lock of the shared file, waiting, and liveness of processes.
 *
 * A live process holds an open-file-description lock on byte `index` of the file `lock`. The kernel
 * drops it with the last descriptor; a child of fork() closes its copy. A classic lock on another
 * byte carries the pid: only such a lock tells the owner's pid in the reader's own namespace.
 *
 * A process may be stopped by a signal while it has the lock, where a real one would be in the
 * kernel. Others then take the lock over.
 *
 * A robust pthread mutex cannot serve: it names its owner by thread id, and several pid namespaces
 * have the same id. This mutex names the entry of the process table and its generation.
 */
#include "simcuda/machine/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAIT_NS 5000000l /* then: is the holder alive? */
#define PID_OFFSET   0x10000

static int futex_wait(_Atomic uint32_t *word, uint32_t value, long ns)
{
	const struct timespec timeout = {.tv_nsec = ns};

	if (syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0) == 0)
		return 0;
	return -errno;
}

static void futex_wake(_Atomic uint32_t *word, int how_many)
{
	syscall(SYS_futex, word, FUTEX_WAKE, how_many, NULL, NULL, 0);
}

bool shared_alive(const struct machine *m, uint32_t index)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = index, .l_len = 1};

	return fcntl(m->lock_fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* The generation changes before the entry looks alive again, so that every reader sees its contents
 * as the dead owner's. The lock's name changes with it: the dead owner may have held the lock. */
bool shared_claim(struct machine *m, uint32_t index)
{
	struct flock life = {.l_type = F_WRLCK, .l_start = index, .l_len = 1};

	if (shared_alive(m, index))
		return false;
	atomic_fetch_add(&m->shared->processes[index].generation, 1);
	if (fcntl(m->lock_fd, F_OFD_SETLK, &life) < 0)
		return false;
	m->self = index;
	return true;
}

/* The query does not report our own lock; the stored pid is then in our own namespace. */
uint32_t shared_pid(const struct machine *m, uint32_t index)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = PID_OFFSET + index, .l_len = 1};

	if (fcntl(m->pid_fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return m->shared->processes[index].pid;
	return lock.l_pid > 0 ? (uint32_t)lock.l_pid : 0;
}

bool shared_frozen(const struct machine *m, uint32_t index)
{
	char path[64], state = 0;

	if (index == m->self)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/stat", shared_pid(m, index));
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool known = fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
	fclose(file);
	return known && (state == 'T' || state == 't');
}

static uint32_t lock_word(const struct machine *m)
{
	return m->shared->processes[m->self].generation << 16 | (m->self + 1);
}

/* And is not stopped. A lock word with our entry but an earlier generation is the dead owner's
 * whose entry we took. */
static bool lock_holder_lives(const struct machine *m, uint32_t holder)
{
	uint32_t index = (holder & 0xffff) - 1;

	return index == m->self ? holder == lock_word(m)
				: shared_alive(m, index) && !shared_frozen(m, index);
}

void shared_lock(struct machine *m)
{
	struct shared *s = m->shared;

	for (;;) {
		uint32_t holder = 0;

		if (atomic_compare_exchange_strong(&s->lock, &holder, lock_word(m)))
			return;
		atomic_store(&s->lock_waiting, 1);
		if (futex_wait(&s->lock, holder, LOCK_WAIT_NS) != -ETIMEDOUT)
			continue;
		if (lock_holder_lives(m, holder))
			continue;
		if (atomic_compare_exchange_strong(&s->lock, &holder, lock_word(m)))
			return;
	}
}

void shared_unlock(struct machine *m)
{
	struct shared *s = m->shared;
	uint32_t own = lock_word(m);

	atomic_compare_exchange_strong(&s->lock, &own, 0);
	/* A process that starts to wait after this reads 0, or sleeps a bounded time. */
	if (atomic_exchange(&s->lock_waiting, 0))
		futex_wake(&s->lock, INT_MAX);
}

bool shared_wait(struct shared_gpu *gpu, uint32_t sequence, uint64_t ns)
{
	atomic_store(&gpu->waiting, 1);
	return futex_wait(&gpu->sequence, sequence, (long)ns) != -ETIMEDOUT;
}

void shared_await(struct shared_group *group)
{
	futex_wait(&group->stopped, 1, MOVE_WAIT_NS);
}

void shared_start_stop(struct shared_group *group, bool stopped)
{
	if (atomic_exchange(&group->stopped, stopped) && !stopped)
		futex_wake(&group->stopped, INT_MAX);
}

void shared_moved(struct shared_gpu *gpu)
{
	atomic_fetch_add(&gpu->sequence, 1);
	if (atomic_exchange(&gpu->waiting, 0))
		futex_wake(&gpu->sequence, INT_MAX);
}
