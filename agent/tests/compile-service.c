#include "compile-service.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "compile/request.h"

#include "weir/base.h"
#include "weir/log.h"

char folder[] = "/tmp/weir-compile-XXXXXX";
struct loop loop;
struct compile compile;
struct requester one, two;

void start(const struct config_compile *config)
{
	struct config_compile filled = *config;

	if (!filled.program)
		filled.program = (char *)fixture_program();
	if (!filled.helpers)
		filled.helpers = 2;
	if (!filled.memory_mib)
		filled.memory_mib = 1024;
	if (!filled.seconds)
		filled.seconds = 30;
	if (!filled.cache_mib)
		filled.cache_mib = 16;
	assert_int_equal(compile_init(&compile, &loop, &filled, folder, false), 0);
	fixture_init(&one);
	fixture_init(&two);
}

void stop(void)
{
	compile_leave(&one.client);
	compile_leave(&two.client);
	compile_deinit(&compile);
	closep(&one.fd);
	closep(&two.fd);
}

void start_trick(enum trick trick, uint32_t helpers)
{
	start(&(struct config_compile){.mode = COMPILE_PTX,
				       .program = (char *)"/proc/self/exe",
				       .memory_mib = trick,
				       .helpers = helpers,
				       .seconds = 1});
}

static int misbehave(int argc, char **argv)
{
	int trick = argc > 1 ? atoi(argv[1] + strlen("--memory=")) : 0;

	switch (trick) {
	case WAITS:
		for (;;)
			pause();
	case SPINS:
		for (volatile bool on = true; on;)
			;
		return 0;
	case WRITES_JUNK:
		return pwrite(RESULT_FD, "EWOBjunk", 8, 0) != 8;
	case WRITES_NOTHING:
		return 0;
	case ABORTS:
		abort();
	case EXITS_ODDLY:
		return 7;
	default:
		return REQUEST_REFUSED;
	}
}

void misbehave_if_asked(int argc, char **argv)
{
	if (strcmp(argv[0], "weir-compile") == 0)
		exit(misbehave(argc, argv));
}

void empty(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

int make_name(void **state)
{
	(void)state;
	log_set_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
	return mkdtemp(folder) ? rmdir(folder) : -1;
}

int set_up(void **state)
{
	(void)state;
	return loop_init(&loop);
}

int tear_down(void **state)
{
	(void)state;
	stop();
	loop_deinit(&loop);
	empty();
	return 0;
}

int file_for(uint32_t sm)
{
	return fixture_file("add", ptx, PTX_SIZE, sm, PERSISTENT);
}

void ask(struct requester *requester, uint32_t id, int fd)
{
	compile_ask(&compile, &requester->client, id, fd);
}

void get(struct requester *requester, int fd)
{
	unsigned n = requester->n;

	ask(requester, n, fd);
	fixture_wait(&loop, requester, n + 1);
}

void pump(void)
{
	while (loop_step(&loop, 0) > 0)
		;
}

const struct weir_object *object_of(const struct requester *requester)
{
	struct stat info;

	assert_int_equal(requester->status, WEIR_COMPILE_OK);
	assert_int_equal(fstat(requester->fd, &info), 0);
	const struct weir_object *object =
		mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, requester->fd, 0);
	assert_ptr_not_equal(object, MAP_FAILED);
	assert_int_equal(weir_object_check(object, (size_t)info.st_size), 0);
	return object;
}

void check_object(const struct weir_object *object, bool is_ptx)
{
	const char *bytes = (const char *)object;
	const struct weir_object_form *forms = (const void *)(bytes + object->forms);

	assert_int_equal(object->sm, 90);
	assert_int_equal(object->n_forms, 1);
	assert_int_equal(forms->form, WEIR_PERSISTENT);
	assert_true(forms->entry != 0);
	assert_int_equal(object->n_params, 2);
	assert_int_equal(!!(object->flags & WEIR_OBJECT_IS_PTX), is_ptx);
	if (is_ptx)
		assert_non_null(strstr(bytes + object->image, bytes + forms->entry));
	else
		assert_memory_equal(bytes + object->image, "\177ELF", 4);
}

void expect_text(enum weir_compile_status status, const char *part)
{
	assert_int_equal(one.status, status);
	assert_non_null(strstr(one.text, part));
	assert_int_equal(one.fd, -1);
}
