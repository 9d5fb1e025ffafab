/* The queue of the compile service: how many may wait, who is next, and what happens when clients
 * go. */
#include "compile-service.h"

#include "weir/base.h"

/* Only as many requests wait as the protocol says; the others are refused at once. */
static void test_flood(void **state)
{
	(void)state;
	start_trick(WAITS, 1);
	for (uint32_t i = 0; i < 1000; i++)
		ask(&one, i, file_for(75 + i));
	assert_int_equal(one.n, 1000 - WEIR_COMPILE_PENDING);
	assert_int_equal(one.status, WEIR_COMPILE_BUSY);
	ask(&two, 1, file_for(90));
	pump();
	assert_int_equal(two.n, 0);
	assert_int_equal(compile.n_requests, WEIR_COMPILE_PENDING + 1);
}

/* @n clients of @container ask for all that they may, and none of it is refused. */
static void flood(struct requester *many, size_t n, struct compile_container *container)
{
	for (size_t i = 0; i < n; i++) {
		fixture_init(&many[i]);
		many[i].client.container = container;
		for (unsigned k = 0; k < WEIR_COMPILE_PENDING; k++)
			ask(&many[i], k, file_for(90));
		assert_int_equal(many[i].n, 0);
	}
}

static void dry(struct requester *many, size_t n)
{
	for (size_t i = 0; i < n; i++)
		compile_leave(&many[i].client);
}

/* One container cannot fill the queue, however many clients it has. */
static void test_container_is_bounded(void **state)
{
	struct requester many[COMPILE_CONTAINER_MAX / WEIR_COMPILE_PENDING], another;
	struct compile_container container = {0};

	(void)state;
	start_trick(WAITS, 1);
	flood(many, countof(many), &container);
	fixture_init(&another);
	another.client.container = &container;
	get(&another, file_for(90));
	assert_int_equal(another.status, WEIR_COMPILE_BUSY);
	assert_int_equal(compile.counters.answers[WEIR_COMPILE_BUSY], 1);
	ask(&one, 1, file_for(90));
	assert_int_equal(one.n, 0);
	/* The room of requests that are gone is free again. */
	compile_leave(&many[0].client);
	ask(&another, 1, file_for(90));
	assert_int_equal(another.n, 1);
	compile_leave(&another.client);
	dry(many, countof(many));
	assert_int_equal(container.n_requests, 0);
}

/* Many containers fill the queue. Another one finds room for its first requests only. */
static void test_all_together_are_bounded(void **state)
{
	enum { CLIENTS = COMPILE_CONTAINER_MAX / WEIR_COMPILE_PENDING };
	static struct requester many[COMPILE_REQUESTS_MAX / COMPILE_CONTAINER_MAX][CLIENTS];
	struct compile_container containers[countof(many)] = {{0}};

	(void)state;
	start_trick(WAITS, 1);
	for (size_t i = 0; i < countof(many); i++)
		flood(many[i], CLIENTS, &containers[i]);
	assert_int_equal(compile.n_requests, COMPILE_REQUESTS_MAX);
	for (unsigned i = 0; i < COMPILE_FIRST; i++)
		ask(&one, i, file_for(90));
	assert_int_equal(one.n, 0);
	two.client.container = one.client.container;
	get(&two, file_for(90));
	assert_int_equal(two.status, WEIR_COMPILE_BUSY);
	for (size_t i = 0; i < countof(many); i++)
		dry(many[i], CLIENTS);
	compile_leave(&one.client);
	assert_int_equal(compile.n_requests, 0);
}

/* A client waits for one request of another client that has eight, not for all eight. */
static void test_fair(void **state)
{
	static const uint32_t sms[WEIR_COMPILE_PENDING] = {75, 80, 86, 87, 89, 90, 100, 120};

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX, .helpers = 1});
	for (unsigned i = 0; i < WEIR_COMPILE_PENDING; i++)
		ask(&one, i, file_for(sms[i]));
	while (!compile.started)
		loop_step(&loop, -1);
	ask(&two, 1, file_for(103));
	fixture_wait(&loop, &two, 1);
	assert_true(one.n <= 2);
	fixture_wait(&loop, &one, WEIR_COMPILE_PENDING);
	assert_int_equal(compile.started, WEIR_COMPILE_PENDING + 1);
}

/* New processes of one container do not overtake another container. */
static void test_fair_to_containers(void **state)
{
	static const uint32_t sms[] = {75, 80, 86, 87};
	struct requester fresh[countof(sms)];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX, .helpers = 1});
	get(&one, file_for(90));
	get(&two, file_for(100));
	/* All in the container of one. */
	for (size_t i = 0; i < countof(sms); i++) {
		fixture_init(&fresh[i]);
		fresh[i].client.container = &one.container;
		ask(&fresh[i], 1, file_for(sms[i]));
	}
	ask(&two, 1, file_for(103));
	fixture_wait(&loop, &two, 2);
	assert_int_equal(fresh[2].n, 0);
	fixture_wait(&loop, &fresh[3], 1);
	for (size_t i = 0; i < countof(sms); i++)
		close(fresh[i].fd);
}

/* The job that its oldest request waits for, alone. */
static const struct compile_job *job_of(const struct requester *requester)
{
	struct compile_job *job = compile.jobs;

	while (job && job->requests != requester->client.requests)
		job = job->hh.next;
	return job;
}

/* A container that has all helpers gives one to another container, and asks for it again later. */
static void test_helper_is_given_up(void **state)
{
	(void)state;
	start_trick(WAITS, 2);
	compile.program.seconds = 60;
	ask(&one, 1, file_for(75));
	ask(&one, 2, file_for(80));
	while (compile.n_running < 2)
		loop_step(&loop, -1);
	const struct compile_job *oldest = job_of(&one);
	ask(&two, 1, file_for(90));
	while (!job_of(&two) || !job_of(&two)->running)
		loop_step(&loop, -1);
	assert_int_equal(one.n, 0);
	assert_int_equal(two.n, 0);
	assert_int_equal(compile.n_running, 2);
	assert_true(oldest->running);
	assert_non_null(compile.waiting);
	assert_false(compile.waiting->yields);
	/* Each has one helper now, and keeps it. */
	ask(&two, 2, file_for(86));
	pump();
	assert_true(oldest->running && !oldest->yields);
	assert_int_equal(compile.started, 3);
	/* Still waits, and is not known as a failure. */
	compile_leave(&two.client);
	assert_int_equal(HASH_COUNT(compile.cache.failures), 0);
}

/* Clients that ask and leave do not keep the helpers. */
static void test_helper_is_taken_from_the_gone(void **state)
{
	(void)state;
	start_trick(WAITS, 1);
	compile.program.seconds = 60;
	ask(&one, 1, file_for(75));
	while (!compile.n_running)
		loop_step(&loop, -1);
	compile_leave(&one.client);
	ask(&two, 1, file_for(90));
	while (!job_of(&two) || !job_of(&two)->running)
		loop_step(&loop, -1);
	assert_int_equal(HASH_COUNT(compile.jobs), 1);
	assert_int_equal(two.n, 0);
	/* It was not its time that ended the other job. */
	assert_int_equal(compile.counters.outcomes[HELPER_TIME], 0);
}

/* Waiting jobs go with their client; a running job goes on, for the cache. */
static void test_client_dies(void **state)
{
	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX, .helpers = 1});
	ask(&one, 1, file_for(90));
	ask(&one, 2, file_for(80));
	while (!compile.waiting)
		loop_step(&loop, -1);
	compile_leave(&one.client);
	assert_int_equal(compile.n_requests, 0);
	assert_null(compile.waiting);
	assert_int_equal(HASH_COUNT(compile.jobs), 1);
	while (compile.jobs)
		loop_step(&loop, -1);
	assert_int_equal(one.n, 0);
	get(&two, file_for(90));
	assert_int_equal(two.status, WEIR_COMPILE_OK);
	assert_int_equal(compile.counters.hits, 1);
	assert_int_equal(compile.started, 1);
}

/* The client goes while its request is hashed, and while it waits for a shared job. */
static void test_client_dies_early(void **state)
{
	(void)state;
	start_trick(WAITS, 1);
	ask(&one, 1, file_for(90));
	compile_leave(&one.client);
	pump();
	assert_null(compile.jobs);
	ask(&two, 1, file_for(75));
	pump();
	ask(&one, 1, file_for(90));
	ask(&two, 2, file_for(90));
	pump();
	compile_leave(&one.client);
	assert_int_equal(HASH_COUNT(compile.jobs), 2);
	compile_leave(&two.client);
	assert_int_equal(HASH_COUNT(compile.jobs), 1);
	assert_null(compile.waiting);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		COMPILE_TEST(test_flood),
		COMPILE_TEST(test_container_is_bounded),
		COMPILE_TEST(test_all_together_are_bounded),
		COMPILE_TEST(test_fair),
		COMPILE_TEST(test_fair_to_containers),
		COMPILE_TEST(test_helper_is_given_up),
		COMPILE_TEST(test_helper_is_taken_from_the_gone),
		COMPILE_TEST(test_client_dies),
		COMPILE_TEST(test_client_dies_early),
	};

	misbehave_if_asked(argc, argv);
	return cmocka_run_group_tests(tests, make_name, NULL);
}
