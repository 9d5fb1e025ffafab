/* Code is unloaded while its kernels have forms or are wanted: with its module, its context or its
 * process, by one thread or several. Nothing of ours must be left. */
#include "wanted.h"

#include "preempt/image.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void nothing_grows(void **state)
{
	(void)state;
	unsigned n = context_welcomed(2);
	size_t images = image_total(); /* what the linker made stays for a while */
	int files = open_files(), left = driver->modules_loaded - driver->modules_unloaded;
	for (int i = 0; i < 300; i++) {
		CUmodule module = load(PTX);
		struct function *function = wanted(get(module, "add"));
		if (i % 3 == 0) {
			answer_well("add");
			assert_true(becomes(function, FUNCTION_READY));
		} else if (i % 3 == 1) {
			answer(WEIR_COMPILE_REFUSED);
		}
		cuModuleUnload(module);
		assert_int_equal(atomic_load(&function->key), 0);
		if (i % 3 == 2) { /* gone while it is asked for, perhaps before */
			usleep(1000);
			while (!fake_agent_quiet(&agent))
				answer(WEIR_COMPILE_FAILED);
		}
	}
	while (!eventually(open_files() <= files))
		answer(WEIR_COMPILE_FAILED);
	assert_int_equal(image_total(), images);
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left);
	context_gone(n);
}

static _Atomic int finished;

static void *answer_all(void *unused)
{
	(void)unused;
	while (!atomic_load(&finished)) {
		if (!fake_agent_quiet(&agent))
			answer_well("add");
		usleep(100);
	}
	return NULL;
}

/* Loads, wants, changes, launches and unloads, over and over. */
static void *load_and_unload(void *context)
{
	cuCtxSetCurrent(context);
	for (int i = 0; i < 200; i++) {
		CUmodule module;
		CUfunction handle;
		cuModuleLoadData(&module, PTX);
		cuModuleGetFunction(&handle, module, "add");
		cuLaunchKernel(handle, 1, 1, 1, 32, 1, 1, 0, (CUstream)((uintptr_t)context + 8),
			       NULL, NULL);
		struct function *function = function_find(client, handle);
		forms_want(function);
		cuFuncSetAttribute(handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, i);
		for (int k = 0; k < i % 4; k++) {
			const struct rewritten *rewritten = atomic_load(&function->rewritten);
			if (rewritten && !rewritten->variants[WEIR_PERSISTENT][0].function)
				abort();
			usleep(500);
		}
		cuModuleUnload(module);
	}
	return NULL;
}

static void threads_load_and_unload(void **state)
{
	pthread_t answering, loading[3];

	(void)state;
	unsigned n = context_welcomed(2);
	int left = driver->modules_loaded - driver->modules_unloaded;
	atomic_store(&finished, 0);
	pthread_create(&answering, NULL, answer_all, NULL);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&loading[i], NULL, load_and_unload, CONTEXT(n));
	for (size_t i = 0; i < 3; i++)
		pthread_join(loading[i], NULL);
	atomic_store(&finished, 1);
	pthread_join(answering, NULL);
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left);
	context_gone(n);
}

static void a_context_takes_its_code_along(void **state)
{
	(void)state;
	size_t images = image_total();
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	int unloaded = driver->modules_unloaded;
	context_gone(n);
	assert_int_equal(driver->modules_unloaded, unloaded); /* not one by one */
	assert_int_equal(atomic_load(&function->key), 0);
	assert_int_equal(image_total(), images);
}

static pthread_t own;
static _Atomic int kept, waiting;

/* Does not let other threads go while they are to be kept. */
static CUresult query(CUstream stream)
{
	(void)stream;
	while (atomic_load(&kept) && !pthread_equal(pthread_self(), own)) {
		atomic_store(&waiting, 1);
		usleep(100);
	}
	return CUDA_ERROR_NOT_READY;
}

/* It may use the forms still, and may wait for the thread that unloads the code. */
static void code_goes_though_the_worker_does_not_come_back(void **state)
{
	void *before = driver_hooks[HOOK_cuStreamQuery].real;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));

	(void)state;
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	int unloaded = driver->modules_unloaded;
	own = pthread_self();
	atomic_store(&kept, 1);
	driver_hooks[HOOK_cuStreamQuery].real = (void *)query;
	driver->streams_busy = 1;
	cuLaunchKernel((CUfunction)0x9000, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	assert_true(eventually(atomic_load(&waiting)));
	cuModuleUnload(module);
	bool goes = atomic_load(&kept) && driver->modules_unloaded == unloaded + 1;
	int state_then = atomic_load(&function->state);
	atomic_store(&kept, 0);
	driver_hooks[HOOK_cuStreamQuery].real = before;
	driver->streams_busy = 0;
	context_gone(n);
	assert_true(goes);
	assert_int_equal(state_then, FUNCTION_GONE);
	assert_int_equal(atomic_load(&function->key), 0); /* with its context */
}

static CUmodule left_behind;

/* As the CUDA runtime does, which registers this before the driver is loaded. */
static void unload_at_exit(void)
{
	int synchronised = driver->synchronised, unloaded = driver->modules_unloaded;

	cuModuleUnload(left_behind);
	if (driver->synchronised != synchronised || driver->modules_unloaded != unloaded + 1)
		_exit(1);
}

/* Ends with a kernel in forms. */
static int exit_story(void)
{
	atexit(unload_at_exit);
	driver_load();
	cuLaunchKernel((CUfunction)0x9000, 1, 1, 1, 32, 1, 1, 0, STREAM(1, 1), NULL, NULL);
	cuCtxSetCurrent(CONTEXT(1));
	client = client_find(CONTEXT(1));
	left_behind = load(PTX);
	return becomes(wanted(get(left_behind, "add")), FUNCTION_READY) ? 0 : 2;
}

static void code_may_be_unloaded_at_exit(void **state)
{
	int status;

	(void)state;
	pid_t child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "test-function-end", "--exit-story", NULL);
		_exit(3);
	}
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 1);
	answer_well("add");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(agent.client);
	agent.client = -1;
}

static void a_forked_child_may_clean_up(void **state)
{
	int status;

	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	pid_t child = fork();
	if (child == 0) {
		cuModuleUnload(module);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_non_null(atomic_load(&function->rewritten));
	cuModuleUnload(module);
	context_gone(n);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_takes_its_code_along),
		cmocka_unit_test(code_goes_though_the_worker_does_not_come_back),
		cmocka_unit_test(a_forked_child_may_clean_up),
		cmocka_unit_test(code_may_be_unloaded_at_exit),
		cmocka_unit_test(nothing_grows),
		cmocka_unit_test(threads_load_and_unload),
	};

	if (argc > 1 && strcmp(argv[1], "--exit-story") == 0)
		return exit_story();
	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
