/* Clients that always have work get their parts of the GPU under whpf, the default policy, second
 * by second and with few switches: under time-slicing and under MPS, with kernels that are much
 * shorter than a run. */
#include "scheduler-world.h"

#include "hardware/slices.h"
#include "scheduler/preemption.h"

#include <stdio.h>

#include "weir/base.h"

#define CLIENTS 4 /* that work; a fifth one is idle */
#define SECONDS 3

/* ns */
#define STEP   10000ull
#define KERNEL 500000ull /* the usual one */
#define LEAVE  60000ull  /* for a kernel that leaves to be gone */
#define SWITCH 200000ull /* of contexts */
#define SLICE  (2 * MS)  /* of the hardware */
#define SAMPLE (5 * MS)  /* between two kernels that libweir measures */
#define SETTLE (500 * MS)

static const uint32_t shares[CLIENTS] = {10, 20, 30, 40};

/* Launches outstanding. The program refills its queue when it has less than @least. */
static const struct depth {
	unsigned least, most;
} steady_queue = {4, 4}, refilled_queue = {2, 8}, long_queue = {16, 16};

/* A program, its libweir, and its part of the GPU. */
struct worker {
	struct depth depth;
	uint64_t ended, queued;           /* kernels */
	uint64_t began, progress;         /* of its kernel: when; ns that it ran */
	uint64_t leaving;                 /* ns until it has left */
	uint64_t gate;                    /* ns until its next kernel can begin */
	bool held;                        /* at the last step */
	uint64_t mean, sampled;           /* of a kernel, ns; when it was measured */
	uint64_t known, seen, since_seen; /* kernels known to have ended; at the last report; ns */
	uint64_t report_at;
	uint64_t ran; /* ns on the GPU */
};

struct machine {
	bool mps;
	bool hardware;   /* hardware preemption works */
	uint64_t kernel; /* ns */
	uint64_t gate;   /* ns, between two kernels of a client; others may run meanwhile */
	struct worker workers[CLIENTS];
	unsigned on; /* the client on the GPU */
	uint64_t switching, slice;
	unsigned switches;
	uint64_t next_look, random;
};

/* Ends of kernels are known where markers are wanted: at once if the client expects holds, else
 * when the worker looks at last, each 10 ms. */
static void report(struct worker *worker, unsigned i)
{
	struct weir_status_page *status = &world.status[i];
	uint32_t flags = world.control[i].flags;
	uint64_t tick = flags & WEIR_CONTROL_CONTENDED ? MS / 2 : MS;

	if (flags & WEIR_CONTROL_CONTENDED ||
	    (flags & WEIR_CONTROL_SLICED && worker->since_seen > 10 * MS))
		worker->known = worker->ended;
	uint64_t done = worker->known - worker->seen;
	uint64_t outstanding = worker->ended + worker->queued - worker->known;
	uint64_t left = outstanding * worker->mean;

	worker->since_seen = done ? 0 : worker->since_seen + (worker->held ? 0 : tick);
	worker->seen = worker->known;
	status->executed += done * worker->mean;
	status->outstanding = outstanding;
	status->remaining = left > worker->since_seen ? left - worker->since_seen : 1;
	worker->report_at = world.now + tick;
}

/* Others only lengthen a kernel: of one that ran among others a longer time does not count. */
static void measure(struct worker *worker, uint32_t flags)
{
	uint64_t ns = world.now - worker->began;

	if (world.now - worker->sampled < SAMPLE)
		return;
	worker->sampled = world.now;
	if (ns < worker->mean || !(flags & (WEIR_CONTROL_SLICED | WEIR_CONTROL_CONTENDED)))
		worker->mean = (worker->mean * 7 + ns) / 8;
}

static void end_kernel(struct worker *worker, uint32_t flags)
{
	measure(worker, flags);
	worker->ended++;
	worker->queued--;
	if (worker->queued < worker->depth.least)
		worker->queued = worker->depth.most;
	worker->progress = worker->leaving = 0;
	worker->began = world.now;
}

/* A held client's kernel goes on until it leaves or ends. */
static bool runs(const struct machine *machine, unsigned i)
{
	const struct worker *worker = &machine->workers[i];

	return (!world.control[i].hold || worker->leaving) && !worker->gate;
}

static unsigned next_client(const struct machine *machine)
{
	for (unsigned n = 1; n <= CLIENTS; n++)
		if (runs(machine, (machine->on + n) % CLIENTS))
			return (machine->on + n) % CLIENTS;
	return machine->on;
}

/* Under MPS kernels come in turn, and there are no switches. */
static void choose_client(struct machine *machine)
{
	uint64_t us = world.clients[machine->on].channels.slice;
	bool over = machine->mps ? machine->workers[machine->on].progress == 0
				 : machine->slice >= (us ? us * 1000 : SLICE);
	unsigned next = machine->on;

	if (over || !runs(machine, machine->on))
		next = next_client(machine);
	machine->slice = over ? 0 : machine->slice;
	if (next == machine->on)
		return;
	machine->on = next;
	machine->slice = machine->hardware ? SLICE_RESTORE * NS_PER_US : 0;
	machine->switching = machine->mps ? 0 : SWITCH;
	machine->switches += !machine->mps;
}

static void run_gpu(struct machine *machine)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		machine->workers[i].gate -= machine->workers[i].gate ? STEP : 0;
	choose_client(machine);
	struct worker *worker = &machine->workers[machine->on];
	if (machine->switching) {
		machine->switching -= STEP;
		return;
	}
	if (!runs(machine, machine->on))
		return;
	machine->slice += STEP;
	worker->ran += STEP;
	worker->progress += STEP;
	worker->leaving -= worker->leaving ? STEP : 0;
	if (worker->progress != machine->kernel)
		return;
	end_kernel(worker, world.control[machine->on].flags);
	worker->gate = machine->gate;
}

static void see_hold(struct worker *worker, unsigned i, uint64_t kernel)
{
	bool held = world.control[i].hold;
	uint64_t left = kernel - worker->progress;

	if (held && !worker->held && worker->progress)
		worker->leaving =
			world.control[i].flags & WEIR_CONTROL_URGENT ? smaller(LEAVE, left) : left;
	worker->held = held;
}

static void run_for(struct machine *machine, uint64_t ns)
{
	for (uint64_t end = world.now + ns; world.now < end; world.now += STEP) {
		if (world.now >= machine->next_look) {
			machine->random = machine->random * 1103515245 + 12345;
			machine->next_look =
				scheduler_look(&world.scheduler, &world.gpu, world.now) +
				machine->random / 65536 % 60000;
		}
		for (unsigned i = 0; i < CLIENTS; i++) {
			see_hold(&machine->workers[i], i, machine->kernel);
			if (world.now >= machine->workers[i].report_at)
				report(&machine->workers[i], i);
		}
		run_gpu(machine);
	}
}

/* The next second: how far the worst is from its part of what all ran, in points. @used: by all, a
 * part of the time. */
static double worst_of_second(struct machine *machine, double *used)
{
	uint64_t before[CLIENTS], sum = 0;
	double worst = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		before[i] = machine->workers[i].ran;
	run_for(machine, 1000 * MS);
	for (unsigned i = 0; i < CLIENTS; i++)
		sum += machine->workers[i].ran - before[i];
	for (unsigned i = 0; i < CLIENTS; i++) {
		uint64_t ran = machine->workers[i].ran - before[i];
		double off = 100.0 * (double)ran / (double)sum - shares[i];
		worst = off > worst ? off : -off > worst ? -off : worst;
		printf("%s%.2f", i ? ":" : "# ", off + shares[i]);
	}
	*used = (double)sum / (1000 * (double)MS);
	printf(", %.1f %% used\n", 100 * *used);
	return worst;
}

static void begin(struct machine *machine, struct depth depth)
{
	for (unsigned i = 0; i <= CLIENTS; i++) {
		come(i, 1, i < CLIENTS ? shares[i] : 100);
		world.status[i].flags = machine->mps ? WEIR_STATUS_CONCURRENT : 0;
		world.clients[i].channels.usable = machine->hardware;
	}
	scheduler_set_policy(&world.scheduler, &policy_whpf);
	world.now = loop_now();
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct worker *worker = &machine->workers[i];
		/* They predict with errors of up to 4 %. */
		*worker =
			(struct worker){.depth = depth,
					.queued = depth.most,
					.mean = machine->kernel + i * 7 % 4 * machine->kernel / 75};
		world.status[i].executed = 1;
		report(worker, i);
	}
}

static void judge(struct machine *machine, double within, unsigned switches)
{
	machine->switches = 0;
	for (unsigned second = 0; second < SECONDS; second++) {
		double used, worst = worst_of_second(machine, &used);
		assert_true(worst <= within);
		assert_true(used >= 0.9);
	}
	printf("# %u switches a second\n", machine->switches / SECONDS);
	assert_true(machine->switches <= SECONDS * switches);
}

static void play(bool mps, struct depth depth)
{
	struct machine machine = {.mps = mps, .kernel = KERNEL, .random = 1};

	begin(&machine, depth);
	run_for(&machine, SETTLE);
	judge(&machine, 1.7, 70);
}

static void test_time_slicing(void **state)
{
	(void)state;
	play(false, steady_queue);
}

/* What is left of such clients' work says nothing of when they are done: they do not take over from
 * each other for it. */
static void test_refilled(void **state)
{
	(void)state;
	play(false, refilled_queue);
}

/* Kernels that nobody can make leave, of which a short run has two or three. When the clients begin
 * they predict them wrongly, and all kernels take longer than alone. */
static void test_predicted_wrongly(void **state)
{
	static const uint64_t tenths[CLIENTS] = {25, 20, 10, 4};
	struct machine machine = {.kernel = 1600000, .random = 1};

	(void)state;
	begin(&machine, long_queue);
	for (unsigned i = 0; i < CLIENTS; i++)
		machine.workers[i].mean = machine.kernel * tenths[i] / 10;
	run_for(&machine, SETTLE);
	for (unsigned i = 0; i < CLIENTS; i++)
		machine.workers[i].mean = machine.kernel * 7 / 8;
	run_for(&machine, 8 * SETTLE);
	judge(&machine, 4, 200);
}

/* Work that comes after a pause is served at once. Short launches need not leave for it, long ones
 * must. */
static void test_fresh(void **state)
{
	struct machine machine = {.kernel = KERNEL, .random = 1};

	(void)state;
	begin(&machine, steady_queue);
	run_for(&machine, SETTLE);
	work(CLIENTS, MS / 10);
	run_for(&machine, MS);
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_true(world.control[i].hold);
		assert_false(world.control[i].flags & WEIR_CONTROL_URGENT);
	}
	assert_false(world.control[CLIENTS].hold);
	work(0, SCHEDULER_LONG_NS);
	look_after(MS);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(!(world.control[i].flags & WEIR_CONTROL_URGENT), i > 0);
}

static void assert_slices(uint64_t us_of_share)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(world.clients[i].channels.slice,
				 shares[i] * us_of_share + SLICE_RESTORE);
}

/* Where the hardware can, it shares the GPU among clients that always have work, however their
 * kernels are predicted. Work that comes after a pause is served as without. */
static void test_slices(void **state)
{
	struct machine machine = {.hardware = true, .kernel = 1600000, .random = 1};

	(void)state;
	begin(&machine, long_queue);
	for (unsigned i = 0; i < CLIENTS; i++)
		machine.workers[i].mean = machine.kernel * (i + 1) / 4;
	run_for(&machine, 3 * SETTLE);
	assert_int_equal(n_held(), 0);
	assert_true(world.control[0].flags & WEIR_CONTROL_SLICED);
	assert_slices(500);
	judge(&machine, 1, 110);
	/* Beside a compute limit long slices are too coarse. */
	world.tenants[1].compute_limit = 90;
	preemption_set_slices(&world.gpu);
	assert_slices(400);
	world.tenants[1].compute_limit = 0;
	preemption_set_slices(&world.gpu);
	assert_slices(500);
	/* For work that may come any time only long launches must leave. */
	work(0, SCHEDULER_LONG_NS);
	look_after(MS);
	assert_int_equal(n_held(), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(!(world.control[i].flags & WEIR_CONTROL_URGENT), i > 0);
	work(CLIENTS, MS / 10);
	run_for(&machine, MS);
	assert_int_equal(n_held(), CLIENTS);
	assert_false(world.control[CLIENTS].hold);
	assert_false(world.control[0].flags & WEIR_CONTROL_SLICED);
	work(CLIENTS, 0);
	run_for(&machine, MS);
	assert_int_equal(n_held(), 0);
	/* One that had a pause is not known to have work all the time. */
	work(0, 0);
	look_after(MS);
	assert_int_equal(n_held(), 0);
	look_after(3 * MS);
	work(0, 10 * MS);
	look_after(MS);
	assert_int_equal(n_held(), CLIENTS - 1);
	assert_false(world.control[0].hold);
	/* Nor does the hardware do it for one that it cannot slice. */
	world.clients[CLIENTS].channels.usable = false;
	scheduler_change(&world.scheduler, &world.gpu);
	world.now = loop_now();
	work(0, 0);
	look_after(MS);
	assert_int_equal(n_held(), CLIENTS - 2);
}

static void test_mps(void **state)
{
	(void)state;
	play(true, steady_queue);
}

static void test_refilled_mps(void **state)
{
	(void)state;
	play(true, refilled_queue);
}

/* Where a client runs alone for a while, the GPU is idle at its gates. That says nothing of what it
 * uses beside others. */
static void test_gates_mps(void **state)
{
	struct machine machine = {.mps = true, .kernel = KERNEL, .gate = KERNEL / 5, .random = 1};

	(void)state;
	begin(&machine, steady_queue);
	run_for(&machine, SETTLE);
	judge(&machine, 1.7, 70);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_time_slicing),
		WORLD_TEST(test_refilled),
		WORLD_TEST(test_predicted_wrongly),
		WORLD_TEST(test_fresh),
		WORLD_TEST(test_slices),
		WORLD_TEST(test_mps),
		WORLD_TEST(test_refilled_mps),
		WORLD_TEST(test_gates_mps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
