/* Before its first call of the driver a process below an agent asks for the driver's longest queue.
 * A forked child is the process. */
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "CUDA_SCALE_LAUNCH_QUEUES"
#define FOLLOWS  "12060" /* version of a driver that follows the variable */

/* What the driver finds in a process with @given that starts with @socket. */
static void expect_queue(const char *want, const char *given, const char *socket,
			 const char *version)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setenv("WEIR_SOCKET", socket, 1);
		setenv("NULL_DRIVER_VERSION", version, 1);
		if (given)
			setenv(VARIABLE, given, 1);
		if (cuInit(0) != CUDA_SUCCESS)
			_exit(2);
		const char *found = getenv(VARIABLE);
		_exit(found && want ? strcmp(found, want) != 0 : found || want);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static char there[] = "/tmp/weir-queue-XXXXXX";

static void the_longest_where_an_agent_is(void **state)
{
	(void)state;
	expect_queue("4x", NULL, there, FOLLOWS);
	expect_queue("4x", NULL, there, "13000");
	expect_queue(NULL, NULL, "/nowhere/agent.sock", FOLLOWS);
}

static void a_pods_own_choice_stays(void **state)
{
	(void)state;
	expect_queue("1x", "1x", there, FOLLOWS);
	expect_queue("", "", there, FOLLOWS);
}

/* A chain that is longer than the queue would block the program's launch. */
static void an_old_driver_gets_no_variable(void **state)
{
	(void)state;
	expect_queue(NULL, NULL, there, "12050");
	expect_queue(NULL, NULL, there, "0");
}

/* Another thread may be reading them. */
static void the_variables_of_before_stay_as_they_were(void **state)
{
	(void)state;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setenv("WEIR_SOCKET", there, 1);
		setenv("NULL_DRIVER_VERSION", FOLLOWS, 1);
		char **before = environ, *first = environ[0];
		size_t n = 0;
		while (before[n])
			n++;
		for (unsigned i = 0; i < 2; i++) /* the second one changes nothing */
			if (cuInit(0) != CUDA_SUCCESS)
				_exit(2);
		char **after = environ;
		if (after == before || before[n] || before[0] != first)
			_exit(3);
		if (strcmp(after[n], VARIABLE "=4x") != 0 || after[n + 1])
			_exit(4);
		/* The program may go on changing them. */
		setenv("WEIR_TEST", "1", 1);
		unsetenv("WEIR_SOCKET");
		_exit(!getenv("WEIR_TEST") || getenv("WEIR_SOCKET") || !getenv(VARIABLE));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int set_up(void **state)
{
	int file = mkstemp(there);

	(void)state;
	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	unsetenv(VARIABLE);
	return file < 0 || close(file) != 0;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_where_an_agent_is),
		cmocka_unit_test(a_pods_own_choice_stays),
		cmocka_unit_test(an_old_driver_gets_no_variable),
		cmocka_unit_test(the_variables_of_before_stay_as_they_were),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
