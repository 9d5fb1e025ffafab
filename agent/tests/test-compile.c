/* The compile service with the real weir-compile, and with one that misbehaves: this program
 * itself, when it is started under that name. */
#include "compile-fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "../compile-metrics.h"
#include "../request.h"

#include "weir/base.h"
#include "weir/object.h"

#define PERSISTENT (1u << WEIR_PERSISTENT)

static const char ptx[] = ".version 7.0\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  ".visible .entry add(.param .u64 add_p, .param .u32 add_n)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .b64 %a<3>;\n"
			  "	ld.param.u64 %a1, [add_p];\n"
			  "	ld.param.u32 %r5, [add_n];\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mov.u32 %r2, %ntid.x;\n"
			  "	mov.u32 %r3, %tid.x;\n"
			  "	mad.lo.u32 %r1, %r1, %r2, %r3;\n"
			  "	setp.ge.u32 %p, %r1, %r5;\n"
			  "	@%p bra END;\n"
			  "	mul.wide.u32 %a2, %r1, 4;\n"
			  "	add.u64 %a2, %a1, %a2;\n"
			  "	ld.global.u32 %r4, [%a2];\n"
			  "	add.u32 %r4, %r4, 1;\n"
			  "	st.global.u32 [%a2], %r4;\n"
			  "END:\n"
			  "	ret;\n"
			  "}\n";

static char folder[] = "/tmp/weir-compile-XXXXXX";
static struct loop loop;
static struct compile compile;
static struct asker a, b;

static void start(const struct config_compile *config)
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
	fixture_init(&a);
	fixture_init(&b);
}

static void stop(void)
{
	compile_leave(&a.client);
	compile_leave(&b.client);
	compile_deinit(&compile);
	closep(&a.fd);
	closep(&b.fd);
}

/* --memory of the program that misbehaves says how. */
enum trick { WAITS = 300, SPINS, WRITES_JUNK, WRITES_NOTHING, ABORTS, EXITS_ODDLY, IS_DONE };

static void start_trick(enum trick trick, uint32_t helpers)
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

static void empty(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	(void)state;
	return loop_init(&loop);
}

static int tear_down(void **state)
{
	(void)state;
	stop();
	loop_deinit(&loop);
	empty();
	return 0;
}

static int file_for(uint32_t sm)
{
	return fixture_file("add", ptx, sizeof(ptx) - 1, sm, PERSISTENT);
}

static void ask(struct asker *asker, uint32_t id, int fd)
{
	compile_ask(&compile, &asker->client, id, fd);
}

/* Asks and waits. */
static void get(struct asker *asker, int fd)
{
	unsigned n = asker->n;

	ask(asker, n, fd);
	fixture_wait(&loop, asker, n + 1);
}

/* Of the last answer: mapped for the rest of the test. */
static const struct weir_object *object_of(const struct asker *asker)
{
	struct stat info;

	assert_int_equal(asker->status, WEIR_COMPILE_OK);
	assert_int_equal(fstat(asker->fd, &info), 0);
	const struct weir_object *object =
		mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, asker->fd, 0);
	assert_ptr_not_equal(object, MAP_FAILED);
	assert_int_equal(weir_object_check(object, (size_t)info.st_size), 0);
	return object;
}

static void check_object(const struct weir_object *object, bool is_ptx)
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

static void test_ptx(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&a, file_for(90));
	check_object(object_of(&a), true);
}

static void test_machine_code(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	get(&a, file_for(90));
	check_object(object_of(&a), false);
}

static void test_off(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_OFF});
	get(&a, file_for(90));
	assert_int_equal(a.status, WEIR_COMPILE_OFF);
	stop();
	start(&(struct config_compile){.mode = COMPILE_PTX,
				       .program = (char *)"/nowhere/weir-compile"});
	get(&a, file_for(90));
	assert_int_equal(a.status, WEIR_COMPILE_OFF);
}

/* The second one comes from the cache, and cannot be written. */
static void test_hit(void **state)
{
	char path[64];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&a, file_for(90));
	const struct weir_object *first = object_of(&a);
	get(&b, file_for(90));
	const struct weir_object *second = object_of(&b);
	assert_int_equal(compile.started, 1);
	assert_int_equal(compile.counters.hits, 1);
	assert_int_equal(compile.counters.misses, 1);
	assert_memory_equal(first, second, first->size);
	assert_int_equal(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, b.fd, 0) == MAP_FAILED, 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.fd);
	if (compile.cache.folder.readonly >= 0)
		assert_int_equal(open(path, O_RDWR), -1);
}

/* Whatever goes into the object makes another. */
static void test_keys(void **state)
{
	char other[sizeof(ptx)];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	memcpy(other, ptx, sizeof(ptx));
	*strstr(other, "1;") = '2';
	get(&a, file_for(90));
	get(&a, file_for(80));
	get(&a, fixture_file("add", ptx, sizeof(ptx) - 1, 90, 1u << WEIR_SLICED));
	get(&a, fixture_file("add", other, sizeof(other) - 1, 90, PERSISTENT));
	assert_int_equal(compile.started, 4);
	assert_int_equal(compile.counters.hits, 0);
	stop();
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	get(&a, file_for(90));
	assert_int_equal(compile.started, 1);
	assert_int_equal(HASH_COUNT(compile.cache.all), 5);
}

static void test_two_at_once(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	ask(&a, 1, file_for(90));
	ask(&b, 2, file_for(90));
	ask(&b, 3, file_for(90));
	fixture_wait(&loop, &a, 1);
	fixture_wait(&loop, &b, 2);
	assert_int_equal(compile.started, 1);
	check_object(object_of(&a), true);
	check_object(object_of(&b), true);
	assert_int_equal(compile.n_requests, 0);
	assert_null(compile.jobs);
}

static void test_survives_the_agent(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&a, file_for(90));
	stop();
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&a, file_for(90));
	check_object(object_of(&a), true);
	assert_int_equal(compile.started, 0);
	assert_int_equal(compile.counters.hits, 1);
}

static void open_only_file(int *fd, struct stat *info)
{
	DIR *dir = opendir(folder);
	char path[512];

	*fd = -1;
	for (struct dirent *file; (file = readdir(dir));) {
		if (file->d_name[0] == '.')
			continue;
		assert_int_equal(*fd, -1);
		snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
		assert_int_equal(chmod(path, 0600), 0);
		*fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(*fd >= 0);
	}
	closedir(dir);
	assert_int_equal(fstat(*fd, info), 0);
}

static void flip(int fd, off_t at)
{
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

/* In its head, in its image, cut, or gone: it is made again. */
static void test_damaged(void **state)
{
	struct stat info;
	int fd;

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&a, file_for(90));
	for (int damage = 0; damage < 4; damage++) {
		open_only_file(&fd, &info);
		if (damage == 0)
			flip(fd, 0);
		else if (damage == 1)
			flip(fd, info.st_size - 2);
		else if (damage == 2)
			assert_int_equal(ftruncate(fd, info.st_size / 2), 0);
		else
			empty(), assert_int_equal(mkdir(folder, 0700), 0);
		close(fd);
		get(&a, file_for(90));
		check_object(object_of(&a), true);
		assert_int_equal(compile.started, damage + 2);
		assert_int_equal(compile.counters.damaged, damage + 1);
	}
}

static struct weir_compile_file good_head(void)
{
	return (struct weir_compile_file){.magic = WEIR_COMPILE_MAGIC,
					  .version = 1,
					  .sm = 90,
					  .forms = PERSISTENT,
					  .name = 64,
					  .name_size = 4,
					  .image = 68,
					  .image_size = sizeof(ptx) - 1};
}

static void expect_head_refused(struct weir_compile_file head)
{
	uint8_t bytes[sizeof(head) + 4 + sizeof(ptx) - 1];

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + 64, "add", 4);
	memcpy(bytes + 68, ptx, sizeof(ptx) - 1);
	get(&a, fixture_sealed(bytes, sizeof(bytes), FIXTURE_SEALS));
	assert_int_equal(a.status, WEIR_COMPILE_REFUSED);
	assert_true(strlen(a.text) > 0);
}

/* Refused by the agent itself: no weir-compile starts. */
static void test_lying_files(void **state)
{
	struct weir_compile_file head;

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
#define REFUSED_WITH(change)               \
	do {                               \
		head = good_head();        \
		change;                    \
		expect_head_refused(head); \
	} while (0)
	REFUSED_WITH(head.magic++);
	REFUSED_WITH(head.version = 0);
	REFUSED_WITH(head.sm = 0);
	REFUSED_WITH(head.sm = UINT32_MAX);
	REFUSED_WITH(head.registers = 256);
	REFUSED_WITH(head.forms = 0);
	REFUSED_WITH(head.forms = 1u << WEIR_NATIVE);
	REFUSED_WITH(head.forms |= 1u << 31);
	REFUSED_WITH(head.name = 63);
	REFUSED_WITH(head.name = UINT64_MAX);
	REFUSED_WITH(head.name_size = 1);
	REFUSED_WITH(head.name_size = UINT64_MAX);
	REFUSED_WITH(head.name_size = WEIR_KERNEL_NAME_MAX + 1);
	REFUSED_WITH(head.image = 0);
	REFUSED_WITH(head.image = UINT64_MAX - 8);
	REFUSED_WITH(head.image_size = 0);
	REFUSED_WITH(head.image_size++);
	REFUSED_WITH(head.image_size = UINT64_MAX);
#undef REFUSED_WITH
	head = good_head();
	get(&a, fixture_sealed(&head, sizeof(head) - 1, FIXTURE_SEALS));
	assert_int_equal(a.status, WEIR_COMPILE_REFUSED);
	get(&a, fixture_sealed(&head, 0, FIXTURE_SEALS));
	assert_int_equal(a.status, WEIR_COMPILE_REFUSED);
	assert_int_equal(compile.started, 0);
}

/* What could still change, or block, or is no memory file, is not even looked at. */
static void test_not_sealed(void **state)
{
	static const int seals[] = {0, F_SEAL_WRITE, F_SEAL_GROW | F_SEAL_SHRINK,
				    F_SEAL_WRITE | F_SEAL_GROW, F_SEAL_WRITE | F_SEAL_SHRINK};
	struct weir_compile_file head = good_head();
	int ends[2];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	for (size_t i = 0; i < countof(seals); i++) {
		get(&a, fixture_sealed(&head, sizeof(head), seals[i]));
		assert_int_equal(a.status, WEIR_COMPILE_REFUSED);
	}
	assert_int_equal(pipe(ends), 0);
	get(&a, ends[0]);
	assert_int_equal(a.status, WEIR_COMPILE_REFUSED);
	close(ends[1]);
	get(&a, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	assert_int_equal(a.status, WEIR_COMPILE_REFUSED);
	get(&a, open("/tmp", O_PATH | O_CLOEXEC));
	assert_int_equal(a.status, WEIR_COMPILE_REFUSED);
	assert_int_equal(compile.started, 0);
}

static void expect_text(enum weir_compile_status status, const char *part)
{
	assert_int_equal(a.status, status);
	assert_non_null(strstr(a.text, part));
	assert_int_equal(a.fd, -1);
}

/* Refused by weir-compile. */
static void test_hostile_images(void **state)
{
	char junk[4096];
	uint8_t bytes[sizeof(struct weir_compile_file) + 4 + sizeof(ptx) - 1];
	struct weir_compile_file head = good_head();

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	memset(junk, 0xa5, sizeof(junk));
	get(&a, fixture_file("add", junk, sizeof(junk), 90, PERSISTENT));
	expect_text(WEIR_COMPILE_REFUSED, "");
	get(&a, fixture_file("sub", ptx, sizeof(ptx) - 1, 90, PERSISTENT));
	expect_text(WEIR_COMPILE_REFUSED, "no kernel sub");
	memcpy(bytes, &head, sizeof(head));
	memset(bytes + 64, 'x', 4);
	memcpy(bytes + 68, ptx, sizeof(ptx) - 1);
	get(&a, fixture_sealed(bytes, sizeof(bytes), FIXTURE_SEALS));
	expect_text(WEIR_COMPILE_REFUSED, "a name with");
	get(&a, file_for(999));
	expect_text(WEIR_COMPILE_FAILED, "sm_999");
	assert_int_equal(compile.counters.outcomes[HELPER_REFUSED], 3);
	assert_int_equal(compile.counters.outcomes[HELPER_FAILED], 1);
	assert_int_equal(HASH_COUNT(compile.cache.all), 0);
}

/* A kernel that no form fits is an object as well: it says why, and so do the metrics. */
static void test_forms_refused(void **state)
{
	static const char refused[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				      ".visible .entry add()\n{\n.reg .b32 %r;\n"
				      "mov.b32 %r, %envreg1;\nret;\n}\n";
	char *text = NULL;
	size_t size;

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	for (uint32_t sm = 75; sm < 77; sm++)
		get(&a, fixture_file("add", refused, sizeof(refused) - 1, sm,
				     PERSISTENT | 1u << WEIR_RESUMABLE));
	const struct weir_object *object = object_of(&a);
	assert_int_equal(object->image_size, 0);
	assert_int_equal(compile.counters.n_reasons, 2);
	FILE *out = open_memstream(&text, &size);
	compile_metrics_write(out, &compile);
	fclose(out);
	assert_non_null(strstr(text, "weir_compile_refusals_total{form=\"persistent\",reason=\"a "
				     "special register "));
	assert_non_null(strstr(text, "\"} 2\nweir_compile_refusals_total{form=\"resumable\","));
	assert_non_null(
		strstr(text, "weir_compile_refusals_total{form=\"any\",reason=\"other\"} 0"));
	free(text);
}

static void expect_trick(enum trick trick, enum helper_outcome outcome)
{
	start_trick(trick, 1);
	get(&a, file_for(90));
	assert_int_equal(a.status, WEIR_COMPILE_FAILED);
	assert_true(strlen(a.text) > 0);
	assert_int_equal(compile.counters.outcomes[outcome], 1);
	assert_null(compile.jobs);
	assert_int_equal(compile.n_running, 0);
	stop();
}

static void test_bad_helpers(void **state)
{
	(void)state;
	expect_trick(WAITS, HELPER_TIME);
	expect_trick(SPINS, HELPER_TIME);
	expect_trick(WRITES_JUNK, HELPER_CRASH);
	expect_trick(WRITES_NOTHING, HELPER_CRASH);
	expect_trick(ABORTS, HELPER_CRASH);
	expect_trick(EXITS_ODDLY, HELPER_TROUBLE);
	start_trick(IS_DONE, 1);
	get(&a, file_for(90));
	expect_text(WEIR_COMPILE_REFUSED, "refused");
}

static void test_failures_are_remembered(void **state)
{
	(void)state;
	start_trick(ABORTS, 1);
	get(&a, file_for(90));
	get(&b, file_for(90));
	assert_int_equal(b.status, WEIR_COMPILE_FAILED);
	assert_string_equal(b.text, a.text);
	assert_int_equal(compile.started, 1);
	for (uint32_t i = 0; i < FAILURES_MAX; i++)
		get(&a, file_for(100 + i));
	assert_int_equal(HASH_COUNT(compile.failures.all), FAILURES_MAX);
	get(&b, file_for(90));
	assert_int_equal(compile.started, FAILURES_MAX + 2);
	stop();
	/* What is no fault of the kernel's is tried again. */
	start_trick(EXITS_ODDLY, 1);
	get(&a, file_for(90));
	get(&a, file_for(90));
	assert_int_equal(compile.started, 2);
}

static void pump(void)
{
	while (loop_step(&loop, 0) > 0)
		;
}

static void test_killed_in_the_middle(void **state)
{
	(void)state;
	start_trick(WAITS, 1);
	ask(&a, 1, file_for(90));
	pump();
	assert_non_null(compile.jobs);
	kill(compile.jobs->helper.pid, SIGKILL);
	fixture_wait(&loop, &a, 1);
	expect_text(WEIR_COMPILE_FAILED, "killed");
	assert_int_equal(compile.counters.outcomes[HELPER_KILLED], 1);
}

/* No more than the protocol says wait; the others are told at once. */
static void test_flood(void **state)
{
	(void)state;
	start_trick(WAITS, 1);
	for (uint32_t i = 0; i < 1000; i++)
		ask(&a, i, file_for(75 + i));
	assert_int_equal(a.n, 1000 - WEIR_COMPILE_PENDING);
	assert_int_equal(a.status, WEIR_COMPILE_BUSY);
	ask(&b, 1, file_for(90));
	pump();
	assert_int_equal(b.n, 0);
	assert_int_equal(compile.n_requests, WEIR_COMPILE_PENDING + 1);
}

static void test_all_together_are_bounded(void **state)
{
	static struct asker many[COMPILE_REQUESTS_MAX / WEIR_COMPILE_PENDING];

	(void)state;
	start_trick(WAITS, 1);
	for (size_t i = 0; i < countof(many); i++) {
		fixture_init(&many[i]);
		for (unsigned k = 0; k < WEIR_COMPILE_PENDING; k++)
			ask(&many[i], k, file_for(90));
		assert_int_equal(many[i].n, 0);
	}
	get(&a, file_for(90));
	assert_int_equal(a.status, WEIR_COMPILE_BUSY);
	for (size_t i = 0; i < countof(many); i++)
		compile_leave(&many[i].client);
	assert_int_equal(compile.n_requests, 0);
}

/* Behind eight of the one, the other waits for one, not for eight. */
static void test_fair(void **state)
{
	static const uint32_t sms[WEIR_COMPILE_PENDING] = {75, 80, 86, 87, 89, 90, 100, 120};

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX, .helpers = 1});
	for (unsigned i = 0; i < WEIR_COMPILE_PENDING; i++)
		ask(&a, i, file_for(sms[i]));
	while (!compile.started)
		loop_step(&loop, -1);
	ask(&b, 1, file_for(103));
	fixture_wait(&loop, &b, 1);
	assert_true(a.n <= 2);
	fixture_wait(&loop, &a, WEIR_COMPILE_PENDING);
	assert_int_equal(compile.started, WEIR_COMPILE_PENDING + 1);
}

/* Nor do new processes of one container come before the other container. */
static void test_fair_to_containers(void **state)
{
	static const uint32_t sms[] = {75, 80, 86, 87};
	struct asker fresh[countof(sms)];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX, .helpers = 1});
	get(&a, file_for(90));
	get(&b, file_for(100));
	/* All of a's container. */
	for (size_t i = 0; i < countof(sms); i++) {
		fixture_init(&fresh[i]);
		fresh[i].client.container = &a.container;
		ask(&fresh[i], 1, file_for(sms[i]));
	}
	ask(&b, 1, file_for(103));
	fixture_wait(&loop, &b, 2);
	assert_int_equal(fresh[2].n, 0);
	fixture_wait(&loop, &fresh[3], 1);
	for (size_t i = 0; i < countof(sms); i++)
		close(fresh[i].fd);
}

/* What waits goes with the client; what runs goes on, for the cache. */
static void test_client_dies(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX, .helpers = 1});
	ask(&a, 1, file_for(90));
	ask(&a, 2, file_for(80));
	while (!compile.waiting)
		loop_step(&loop, -1);
	compile_leave(&a.client);
	assert_int_equal(compile.n_requests, 0);
	assert_null(compile.waiting);
	assert_int_equal(HASH_COUNT(compile.jobs), 1);
	while (compile.jobs)
		loop_step(&loop, -1);
	assert_int_equal(a.n, 0);
	get(&b, file_for(90));
	assert_int_equal(b.status, WEIR_COMPILE_OK);
	assert_int_equal(compile.counters.hits, 1);
	assert_int_equal(compile.started, 1);
}

/* While it is hashed, and while one that others share waits. */
static void test_client_dies_early(void **state)
{
	(void)state;
	start_trick(WAITS, 1);
	ask(&a, 1, file_for(90));
	compile_leave(&a.client);
	pump();
	assert_null(compile.jobs);
	ask(&b, 1, file_for(75));
	pump();
	ask(&a, 1, file_for(90));
	ask(&b, 2, file_for(90));
	pump();
	compile_leave(&a.client);
	assert_int_equal(HASH_COUNT(compile.jobs), 2);
	compile_leave(&b.client);
	assert_int_equal(HASH_COUNT(compile.jobs), 1);
	assert_null(compile.waiting);
}

/* Time and memory, really: a text that keeps the compiler busy. */
static char *bomb(size_t *size)
{
	enum { VALUES = 6000, ROUNDS = 60 };
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	fprintf(out,
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .entry add(.param .u64 p)\n{\n.reg .b64 %%a;\n.reg .f32 %%f<%d>;\n"
		"ld.param.u64 %%a, [p];\n",
		VALUES);
	for (int i = 0; i < VALUES; i++)
		fprintf(out, "ld.global.f32 %%f%d, [%%a+%d];\n", i, 4 * i);
	for (int round = 1; round <= ROUNDS; round++)
		for (int i = 0; i < VALUES; i++)
			fprintf(out, "fma.rn.f32 %%f%d, %%f%d, %%f%d, %%f%d;\n", i, i,
				(i * 7 + round) % VALUES, (i * 13 + 5 * round) % VALUES);
	for (int i = 0; i < VALUES; i++)
		fprintf(out, "st.global.f32 [%%a+%d], %%f%d;\n", 4 * i, i);
	fprintf(out, "ret;\n}\n");
	fclose(out);
	return text;
}

static void expect_limit(const struct config_compile *config, enum helper_outcome outcome)
{
	size_t size;
	char *text = bomb(&size);

	start(config);
	ask(&a, 1, fixture_file("add", text, size, 90, PERSISTENT));
	free(text);
	/* Meanwhile others are served. */
	get(&b, file_for(90));
	assert_int_equal(b.status, WEIR_COMPILE_OK);
	fixture_wait(&loop, &a, 1);
	assert_int_equal(a.status, WEIR_COMPILE_FAILED);
	assert_int_equal(compile.counters.outcomes[outcome], 1);
}

static void test_takes_too_long(void **state)
{
	(void)state;
	expect_limit(&(struct config_compile){.mode = COMPILE_MACHINE_CODE, .seconds = 1},
		     HELPER_TIME);
}

static void test_takes_too_much(void **state)
{
	(void)state;
	expect_limit(&(struct config_compile){.mode = COMPILE_MACHINE_CODE, .memory_mib = 512},
		     HELPER_MEMORY);
}

/* A disk without room costs the cache, not the client. */
static void test_full_disk(void **state)
{
	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	if (mount("none", folder, "tmpfs", 0, "size=4096") < 0)
		skip();
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&a, file_for(90));
	check_object(object_of(&a), true);
	assert_int_equal(ftruncate(a.fd, 0), -1);
	assert_int_equal(pwrite(a.fd, "x", 1, 0), -1);
	get(&a, file_for(90));
	check_object(object_of(&a), true);
	assert_int_equal(compile.counters.unkept, 2);
	assert_int_equal(compile.cache.bytes, 0);
	stop();
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
	start(&(struct config_compile){.mode = COMPILE_PTX});
}

static unsigned count_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_nothing_grows(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	get(&a, file_for(90));
	unsigned before = count_open();
	for (int i = 0; i < 100; i++) {
		get(&a, file_for(90));
		get(&a, fixture_sealed("x", 1, FIXTURE_SEALS));
		get(&a, file_for(90));
	}
	assert_int_equal(count_open(), before);
	assert_int_equal(compile.started, 1);
	assert_null(compile.jobs);
}

static int make_name(void **state)
{
	(void)state;
	log_set_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
	return mkdtemp(folder) ? rmdir(folder) : -1;
}

#define COMPILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		COMPILE_TEST(test_ptx),
		COMPILE_TEST(test_machine_code),
		COMPILE_TEST(test_off),
		COMPILE_TEST(test_hit),
		COMPILE_TEST(test_keys),
		COMPILE_TEST(test_two_at_once),
		COMPILE_TEST(test_survives_the_agent),
		COMPILE_TEST(test_damaged),
		COMPILE_TEST(test_lying_files),
		COMPILE_TEST(test_not_sealed),
		COMPILE_TEST(test_hostile_images),
		COMPILE_TEST(test_forms_refused),
		COMPILE_TEST(test_bad_helpers),
		COMPILE_TEST(test_failures_are_remembered),
		COMPILE_TEST(test_killed_in_the_middle),
		COMPILE_TEST(test_flood),
		COMPILE_TEST(test_all_together_are_bounded),
		COMPILE_TEST(test_fair),
		COMPILE_TEST(test_fair_to_containers),
		COMPILE_TEST(test_client_dies),
		COMPILE_TEST(test_client_dies_early),
		COMPILE_TEST(test_takes_too_long),
		COMPILE_TEST(test_takes_too_much),
		COMPILE_TEST(test_full_disk),
		COMPILE_TEST(test_nothing_grows),
	};

	if (strcmp(argv[0], "weir-compile") == 0)
		return misbehave(argc, argv);
	return cmocka_run_group_tests(tests, make_name, NULL);
}
