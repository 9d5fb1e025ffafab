/* Random programs against the rules of streams. A program is a list of calls on a few streams:
 * kernels, host functions and graphs that append to a list, records and waits of events. The model
 * here knows only the rules and tells which append must come before which; the list must agree. */
#include "driver-test.h"

#define CALLS  120u
#define EVENTS 4u
#define ROUNDS 30u

enum { LEGACY, BLOCKING_A, BLOCKING_B, PER_THREAD, APART_A, APART_B, STREAMS };

/* For each call, stream and event: the calls that must be over by then. */
struct past {
	uint64_t bits[(CALLS + 63) / 64];
};

static void join(struct past *to, const struct past *from)
{
	for (size_t i = 0; i < countof(to->bits); i++)
		to->bits[i] |= from->bits[i];
}

static void put(struct past *p, unsigned call)
{
	p->bits[call / 64] |= 1ull << call % 64;
}

static bool has(const struct past *p, unsigned call)
{
	return p->bits[call / 64] >> call % 64 & 1;
}

struct model {
	unsigned appends;
	struct past streams[STREAMS], events[EVENTS], before[CALLS];
};

/* What an operation in @s now comes after. */
static struct past before_now(const struct model *m, unsigned s)
{
	struct past p = m->streams[s];

	if (s == LEGACY)
		for (unsigned i = BLOCKING_A; i <= PER_THREAD; i++)
			join(&p, &m->streams[i]);
	else if (s <= PER_THREAD)
		join(&p, &m->streams[LEGACY]);
	return p;
}

struct append {
	uint32_t value;
};

static void append_by_host(void *data)
{
	uint32_t *list = fx.host + 512, at = __atomic_fetch_add(list, 1, __ATOMIC_SEQ_CST);

	set_word(list + 1 + at, ((struct append *)data)->value);
}

static void append_by_graph(CUstream s, uint32_t value)
{
	CUstream capturing = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraphExec exec;
	CUgraph graph;

	ok(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
	append(capturing, value);
	ok(cuStreamEndCapture(capturing, &graph));
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphLaunch(exec, s));
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	ok(cuStreamDestroy(capturing));
}

static void append_late(CUstream s, uint32_t value)
{
	CUdeviceptr list = pointer_to(fx.host + 512);

	ok(launch2(fx.late, 1, s, &list, &value));
}

static void append_somehow(unsigned call, CUstream stream)
{
	static struct append appends[CALLS];

	appends[call].value = call;
	switch (rand() % 4) {
	case 0:
		ok(cuLaunchHostFunc(stream, append_by_host, &appends[call]));
		break;
	case 1:
		append_by_graph(stream, call);
		break;
	case 2:
		append_late(stream, call);
		break;
	default:
		append(stream, call);
	}
}

/* One call on the driver and on the model. */
static void step(struct model *m, unsigned call, unsigned s, CUstream stream, CUevent *events)
{
	unsigned e = (unsigned)rand() % EVENTS;
	struct past p = before_now(m, s);

	switch (rand() % 8) {
	case 0:
		ok(cuEventRecord(events[e], stream));
		m->events[e] = p;
		break;
	case 1:
		ok(cuStreamWaitEvent(stream, events[e], 0));
		join(&p, &m->events[e]);
		break;
	case 2:
		ok(cuMemsetD8Async(fx.memory, 1, 4096, stream));
		break;
	default:
		append_somehow(call, stream);
		m->before[call] = p;
		put(&p, call);
		m->appends++;
	}
	m->streams[s] = p;
}

static void check(const struct model *m)
{
	struct past seen = {0};
	uint32_t n = get_word(fx.host + 512);

	assert_int_equal(n, m->appends);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t call = list_at(i);

		assert_true(call < CALLS);
		assert_false(has(&seen, call));
		for (unsigned b = 0; b < CALLS; b++)
			if (has(&m->before[call], b) && !has(&seen, b))
				fail_msg("call %u came before call %u", call, b);
		put(&seen, call);
	}
}

static void round_of(unsigned seed)
{
	static struct model m;
	CUstream streams[STREAMS] = {NULL,
				     new_stream(CU_STREAM_DEFAULT),
				     new_stream(CU_STREAM_DEFAULT),
				     CU_STREAM_PER_THREAD,
				     new_stream(CU_STREAM_NON_BLOCKING),
				     new_stream(CU_STREAM_NON_BLOCKING)};
	CUevent events[EVENTS];

	srand(seed);
	memset(&m, 0, sizeof(m));
	memset(fx.host, 0, 4096);
	for (size_t i = 0; i < EVENTS; i++)
		ok(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	/* all starts at a gate, so that much is queued before anything runs */
	ok(cuStreamWaitValue32(streams[seed % 2 ? LEGACY : APART_A], pointer_to(fx.host), 1,
			       CU_STREAM_WAIT_VALUE_EQ));
	for (unsigned call = 0; call < CALLS; call++) {
		unsigned s = (unsigned)rand() % STREAMS;

		step(&m, call, s, streams[s], events);
		if (call == CALLS / 2)
			set_word(fx.host, 1);
	}
	ok(cuCtxSynchronize());
	check(&m);
	for (size_t i = 0; i < EVENTS; i++)
		ok(cuEventDestroy(events[i]));
	for (size_t i = 0; i < STREAMS; i++)
		if (streams[i] && streams[i] != CU_STREAM_PER_THREAD)
			ok(cuStreamDestroy(streams[i]));
}

static void test_random_programs(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < ROUNDS; seed++)
		round_of(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random_programs, setup, teardown),
	};
	int failed;

	own_machine("3", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
