/* Recordings of what clients launch, as traces for weir-sim. */
#include "scheduler-world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Frees @text. */
static void read_back(char *text, struct trace *trace)
{
	char message[128];

	assert_non_null(text);
	FILE *in = fmemopen(text, strlen(text), "r");
	if (trace_read(trace, in, "recording", message, sizeof(message)) < 0)
		fail_msg("%s", message);
	fclose(in);
	free(text);
}

static void test_recording(void **state)
{
	struct trace trace;

	(void)state;
	come(0, 2, 30);
	world.status[0].gpu_time = 5 * MS;
	assert_int_equal(scheduler_record(&world.scheduler, &world.gpu), 0);
	assert_int_equal(scheduler_record(&world.scheduler, &world.gpu), -EBUSY);
	world.now = loop_now();
	world.status[0].gpu_time = 9 * MS;
	look_after(MS);
	look_after(MS);
	come(1, 0, 100);
	world.status[1].gpu_time = 2 * MS;
	look_after(MS);
	read_back(record_end(&world.scheduler.record, world.now + MS), &trace);
	assert_int_equal(trace.n_clients, 2);
	assert_string_equal(trace.clients[0].name, "app.1");
	assert_int_equal(trace.clients[0].level, 2);
	assert_int_equal(trace.clients[0].share, 30);
	assert_int_equal(trace.n_work, 2);
	assert_int_equal(trace.work[0].length, 4 * MS);
	assert_int_equal(trace.work[1].length, 2 * MS);
	assert_true(trace.end > trace.work[1].at);
	trace_deinit(&trace);
}

/* A pod may become known during a recording; its client keeps its name. */
static void test_recording_keeps_names(void **state)
{
	struct tenant *tenant = &world.tenants[0];
	struct trace trace;

	(void)state;
	come(0, 2, 30);
	snprintf(tenant->pod, sizeof(tenant->pod), "0b1c2d3e");
	assert_int_equal(scheduler_record(&world.scheduler, &world.gpu), 0);
	snprintf(tenant->pod, sizeof(tenant->pod), "web");
	record_launches(&world.scheduler.record, &world.clients[0].recorded, MS, loop_now());
	read_back(record_end(&world.scheduler.record, loop_now()), &trace);
	assert_int_equal(trace.n_work, 1);
	trace_deinit(&trace);
}

/* However many clients come, a recording stays below its limit and can be read. */
static void test_recording_of_many(void **state)
{
	struct record *record = &world.scheduler.record;
	struct trace trace;

	(void)state;
	come(0, 2, 30);
	assert_int_equal(scheduler_record(&world.scheduler, &world.gpu), 0);
	for (unsigned i = 0; i < 1u << 20; i++) {
		struct trace_client traits = {.share = 30};
		snprintf(traits.name, sizeof(traits.name), "app.%u", i + 2);
		record_add(record, &world.clients[0].recorded, &traits);
	}
	record_launches(record, &world.clients[0].recorded, MS, loop_now());
	char *text = record_end(record, loop_now());
	assert_true(text && strlen(text) < RECORD_MAX + 1024);
	read_back(text, &trace);
	trace_deinit(&trace);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_recording),
		WORLD_TEST(test_recording_keeps_names),
		WORLD_TEST(test_recording_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
