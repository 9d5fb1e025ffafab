/* The shared file's lock, held by dead and by stopped processes. */
#include "simcuda/machine/file.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct machine machine;

static int begin(void **state)
{
	static char folder[] = "/tmp/weir-sim-XXXXXX";

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	setenv("WEIR_SIM_DIR", folder, 1);
	return machine_open(&machine, MACHINE_COMPUTE);
}

static int finish(void **state)
{
	char command[128];

	(void)state;
	machine_close(&machine);
	snprintf(command, sizeof(command), "rm -rf %s", getenv("WEIR_SIM_DIR"));
	return system(command);
}

static uint32_t word(uint32_t process, uint32_t generation)
{
	return generation << 16 | (process + 1);
}

/* A dead holder whose entry is free, and one whose entry this process took. */
static void the_dead_hold_nothing(void **state)
{
	const uint32_t own = machine.shared->processes[machine.self].generation;

	(void)state;
	machine.shared->lock = word(machine.self + 1, 5);
	shared_lock(&machine);
	assert_int_equal(machine.shared->lock, word(machine.self, own));
	shared_unlock(&machine);
	machine.shared->lock = word(machine.self, own - 1);
	shared_lock(&machine);
	assert_int_equal(machine.shared->lock, word(machine.self, own));
	shared_unlock(&machine);
	assert_int_equal(machine.shared->lock, 0);
}

static void hold_stopped(void)
{
	struct machine own;

	if (machine_open(&own, MACHINE_COMPUTE) != MACHINE_OK)
		_exit(1);
	shared_lock(&own);
	raise(SIGSTOP);
	shared_unlock(&own);
	machine_close(&own);
	_exit(0);
}

/* And does not free, when it goes on, what another one holds then. */
static void the_stopped_hold_nothing(void **state)
{
	uint32_t own = word(machine.self, machine.shared->processes[machine.self].generation);
	int status;

	(void)state;
	pid_t pid = fork();
	if (pid == 0)
		hold_stopped();
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_not_equal(machine.shared->lock, 0);
	shared_lock(&machine);
	assert_int_equal(machine.shared->lock, own);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(machine.shared->lock, own);
	shared_unlock(&machine);
}

/* Between claiming the entry of a dead process and joining. */
static void what_the_dead_held_is_free_at_once(void **state)
{
	struct machine dead, next;

	(void)state;
	assert_int_equal(machine_open(&dead, MACHINE_COMPUTE), MACHINE_OK);
	assert_int_equal(machine_charge(&dead, 0, 1 << 20), MACHINE_OK);
	assert_int_equal(machine_used(&machine, 0), 1 << 20);
	assert_int_equal(machine_open(&next, MACHINE_COMPUTE), MACHINE_OK);
	uint32_t place = dead.self;
	machine_close(&dead);
	assert_true(shared_claim(&next, place));
	assert_int_equal(machine_used(&machine, 0), 0);
	assert_false(shared_claim(&next, machine.self));
	machine_close(&next);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dead_hold_nothing),
		cmocka_unit_test(the_stopped_hold_nothing),
		cmocka_unit_test(what_the_dead_held_is_free_at_once),
	};

	alarm(20); /* otherwise a wait for the lock never ends */
	return cmocka_run_group_tests(tests, begin, finish);
}
