/* What the policy decides reaches the pages of clients, and what their pages say reaches the
 * policy. Looks are at times that the test chooses. */
#include "../scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../tenants.h"

#define MS 1000000ull
#define N  3

static struct {
	struct loop loop;
	struct scheduler scheduler;
	struct gpu gpu, *gpus;
	struct weir_control_page control[N];
	struct weir_status_page status[N];
	struct weir_demand_page demand[WEIR_DEMAND_LEVELS];
	struct tenant tenants[N];
	struct client clients[N];
	uint64_t now;
} world;

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.gpu.open = true;
	memcpy(world.gpu.id, "GPU-x", sizeof("GPU-x"));
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++)
		world.gpu.region.demand[level] = &world.demand[level];
	HASH_ADD(hh, world.gpus, uuid, sizeof(world.gpu.uuid), &world.gpu);
	assert_int_equal(loop_init(&world.loop), 0);
	return scheduler_init(&world.scheduler, &world.loop, policy_find("ffs"), &policy_defaults,
			      &world.gpus);
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N; i++)
		tenant_free_usages(&world.tenants[i]);
	scheduler_deinit(&world.scheduler);
	loop_deinit(&world.loop);
	HASH_CLEAR(hh, world.gpus);
	return 0;
}

static void come(unsigned i, uint8_t level, uint32_t share)
{
	struct client *client = &world.clients[i];

	world.tenants[i] = (struct tenant){.share = share, .level = level, .clients = client};
	*client = (struct client){
		.gpu = &world.gpu,
		.number = i + 1,
		.tenant = &world.tenants[i],
		.level = level,
		.pages = {.control = &world.control[i], .status = &world.status[i]}};
	memcpy(client->command, "app", sizeof("app"));
	DL_APPEND2(world.gpu.clients, client, gpu_prev, gpu_next);
	world.gpu.n_level[level]++;
	scheduler_add(&world.scheduler, client);
	world.now = loop_now();
}

static void go(unsigned i)
{
	struct client *client = &world.clients[i];

	scheduler_remove(client);
	DL_DELETE2(world.gpu.clients, client, gpu_prev, gpu_next);
	world.gpu.n_level[client->level]--;
	scheduler_change(&world.scheduler, &world.gpu);
	world.now = loop_now();
}

static void work(unsigned i, uint64_t remaining)
{
	world.status[i].outstanding = remaining > 0;
	world.status[i].remaining = remaining;
}

/* How long until the next look. */
static uint64_t look_after(uint64_t ns)
{
	world.now += ns;
	return scheduler_look(&world.scheduler, &world.gpu, world.now) - world.now;
}

static unsigned held(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += world.control[i].hold;
	return n;
}

static void test_alone(void **state)
{
	(void)state;
	come(0, 0, 100);
	come(1, 1, 100);
	work(0, MS);
	work(1, MS);
	look_after(MS);
	assert_int_equal(held(), 0);
	assert_false(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_int_equal(loop_step(&world.loop, 60), 0);
}

static void test_contention(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_true(world.control[1].flags & WEIR_CONTROL_HOLDABLE);
	work(0, MS);
	look_after(MS);
	assert_int_equal(held(), 0);
	assert_false(world.control[0].flags & WEIR_CONTROL_CONTENDED); /* alone with its work */
	assert_true(world.control[1].flags & WEIR_CONTROL_CONTENDED);
	work(1, MS);
	look_after(MS);
	assert_true(world.control[0].flags & WEIR_CONTROL_CONTENDED);
	assert_int_equal(held(), 1);
	assert_true(world.control[1].hold);
	assert_true(world.control[1].hold_until > world.now);
	world.control[1].hold = 0; /* as its client does when we do not look for long */
	look_after(MS);
	assert_true(world.control[1].hold);
	work(0, 0);
	look_after(MS);
	assert_int_equal(held(), 0);
	work(0, MS);
	look_after(MS);
	assert_int_equal(held(), 1);
	go(0);
	look_after(MS);
	assert_int_equal(held(), 0);
	assert_false(world.control[1].flags & WEIR_CONTROL_HOLDABLE);
}

/* The agent's own timer, on the real clock. */
static void test_timer(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, MS);
	work(1, MS);
	for (unsigned i = 0; i < 1000 && held() == 0; i++)
		assert_true(loop_step(&world.loop, 1000) >= 0);
	assert_int_equal(held(), 1);
}

/* A client that predicts nothing is not taken for one that is as good as done. */
static void test_unpredicted(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	scheduler_set_policy(&world.scheduler, &policy_hpf);
	world.now = loop_now();
	work(0, 5 * MS);
	look_after(MS);
	world.status[1].outstanding = 3;
	look_after(MS);
	assert_false(world.control[0].hold);
	assert_true(world.control[1].hold);
	world.status[1].remaining = MS;
	look_after(MS);
	assert_true(world.control[0].hold);
	assert_false(world.control[1].hold);
}

static void launch(unsigned i, uint64_t launches, uint64_t each)
{
	world.status[i].outstanding = launches;
	world.status[i].remaining = launches * each;
}

static void come_below_mps(unsigned i)
{
	world.status[i].flags = WEIR_STATUS_CONCURRENT;
	come(i, 1, 100);
}

/* Below MPS `hpf` holds whose kernels are long, as long as somebody has less left, and tells it to
 * expect that; all others run side by side. */
static void test_abreast(void **state)
{
	const uint32_t told = WEIR_CONTROL_CONTENDED | WEIR_CONTROL_URGENT;

	(void)state;
	come_below_mps(0);
	come_below_mps(1);
	scheduler_set_policy(&world.scheduler, &policy_hpf);
	world.now = loop_now();
	launch(0, 100, MS / 20);
	launch(1, 200, MS / 20);
	look_after(MS);
	assert_int_equal(held(), 0);
	assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	assert_false((world.control[0].flags | world.control[1].flags) & told);
	assert_int_equal(world.control[0].beside, 0);
	world.control[0].above = world.control[1].above = 1;
	look_after(MS);
	assert_int_equal(world.control[0].beside, 2);
	assert_int_equal(world.control[1].beside, 2);
	launch(1, 1, 10 * MS);
	look_after(MS);
	assert_int_equal(world.control[0].beside, 1);
	assert_int_equal(held(), 1);
	assert_true(world.control[1].hold);
	assert_int_equal(world.control[1].flags & told, told);
	assert_false(world.control[0].flags & told);
	launch(0, 200, MS / 20); /* about as much as the other has */
	look_after(MS);
	assert_int_equal(held(), 0);
	launch(1, 0, 0);
	look_after(MS);
	assert_int_equal(world.control[1].flags & told, told); /* its next launch may be as long */
	look_after(SCHEDULER_LONG_FOR);
	assert_false(world.control[1].flags & told);
}

/* Forms that leave at once cost more: only for a policy that wants them. All of those that let an
 * equal take the turn see its work soon. */
static void test_urgent(void **state)
{
	const struct {
		const char *policy;
		bool urgent, keen;
	} cases[] = {{"hpf", true, true},
		     {"dynamic", false, true},
		     {"static", false, true},
		     {"ffs", false, false}};

	(void)state;
	come(0, 1, 50);
	come(1, 1, 50);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scheduler_set_policy(&world.scheduler, policy_find(cases[i].policy));
		world.now = loop_now();
		work(0, 50 * MS);
		work(1, 60 * MS);
		look_after(MS);
		assert_int_equal(!!(world.control[0].flags & WEIR_CONTROL_URGENT), cases[i].urgent);
		assert_true(world.control[0].flags & WEIR_CONTROL_CONTENDED);
		assert_int_equal(!!(world.control[0].flags & WEIR_CONTROL_TELL), cases[i].keen);
		work(1, 0);
		assert_int_equal(look_after(MS) <= SCHEDULER_KEEN_NS, cases[i].keen);
	}
}

/* Who says that it has got work has the turn at once, where it may take that. */
static void test_heard(void **state)
{
	const char *const policies[] = {"ffs", "hpf"};

	(void)state;
	come(0, 1, 50);
	come(1, 1, 50);
	for (unsigned hpf = 0; hpf < 2; hpf++) {
		work(0, 50 * MS);
		work(1, 0);
		scheduler_set_policy(&world.scheduler, policy_find(policies[hpf]));
		assert_int_equal(held(), 0);
		work(1, MS);
		scheduler_hear(&world.scheduler, &world.clients[1]);
		assert_int_equal(world.control[0].hold, hpf);
		assert_int_equal(world.control[1].hold, 0);
	}
}

/* Turns are for all of a level as soon as one of it runs in time slices, or has an objective. */
static void test_not_abreast(void **state)
{
	(void)state;
	come_below_mps(0);
	come_below_mps(1);
	scheduler_set_policy(&world.scheduler, &policy_hpf);
	world.now = loop_now();
	launch(0, 100, MS / 20);
	launch(1, 200, MS / 20);
	look_after(MS);
	assert_int_equal(held(), 0);
	world.status[0].flags = 0;
	look_after(MS);
	assert_int_equal(held(), 1);
	world.status[0].flags = WEIR_STATUS_CONCURRENT;
	look_after(MS);
	assert_int_equal(held(), 0);
	world.tenants[1].slo = 2 * MS;
	scheduler_change(&world.scheduler, &world.gpu);
	world.now = loop_now();
	look_after(MS);
	assert_int_equal(held(), 1);
}

/* The GPU is idle until the end of a turn is seen: where turns are short and many, that is soon. */
static void test_end_is_looked_for(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, 3 * MS / 10);
	look_after(MS);
	work(1, 50 * MS);
	look_after(0);
	assert_int_equal(world.control[1].hold, 1);
	assert_true(look_after(3 * MS / 10 - 1000) > SCHEDULER_END_NS); /* no objective */
	world.tenants[0].slo = 10 * MS;
	scheduler_change(&world.scheduler, &world.gpu);
	world.now = loop_now();
	while (world.control[0].hold)
		look_after(MS);
	work(0, 3 * MS / 10 + 1); /* news */
	assert_true(look_after(0) <= 3 * MS / 10 + 1 - SCHEDULER_LATE_NS);
	assert_int_equal(world.control[0].hold, 0);
	assert_int_equal(look_after(3 * MS / 10 + 1 - SCHEDULER_LATE_NS), 1);
	assert_int_equal(look_after(SCHEDULER_WATCH_NS - 1), 1);
	assert_int_equal(look_after(1), SCHEDULER_END_NS); /* it is not kept up for ever */
	assert_int_equal(look_after(SCHEDULER_END_NS), SCHEDULER_END_NS);
	work(1, 0); /* nobody waits for it */
	assert_true(look_after(SCHEDULER_END_NS) > SCHEDULER_END_NS);
}

/* Runs who is not held, @late at most behind the time that was asked for; ms of each. */
static void run_turns(uint64_t total[N], uint64_t duration, uint64_t late)
{
	uint64_t end = world.now + duration;
	unsigned random = 1;

	while (world.now < end) {
		uint64_t next = scheduler_look(&world.scheduler, &world.gpu, world.now);
		uint64_t then = next + (late ? (random = random * 1103515245 + 12345) % late : 0);
		for (unsigned i = 0; i < N; i++)
			if (world.status[i].outstanding && !world.control[i].hold)
				total[i] += then - world.now;
		world.now = then;
	}
}

static void test_shares(void **state)
{
	const char *const policies[] = {"ffs", "wfq"};

	(void)state;
	come(0, 1, 50);
	come(1, 1, 25);
	come(2, 1, 25);
	for (unsigned i = 0; i < N; i++)
		work(i, 50 * MS);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t total[N] = {0};
		scheduler_set_policy(&world.scheduler, policy_find(policies[i]));
		world.now = loop_now();
		run_turns(total, 10000 * MS, 700000);
		double sum = (double)(total[0] + total[1] + total[2]);
		assert_float_equal((double)total[0] / sum, 0.5, 0.01);
		assert_float_equal((double)total[1] / sum, 0.25, 0.01);
		assert_float_equal((double)total[2] / sum, 0.25, 0.01);
	}
}

/* Its kernels do not leave, and it says that they ran on: it pays for that, once. What it says is
 * late, and in lumps. */
static void test_overhang(void **state)
{
	uint64_t total[N] = {0}, ran = 0;

	(void)state;
	come(0, 1, 50);
	come(1, 1, 50);
	work(0, 50 * MS);
	work(1, 50 * MS);
	uint64_t left = 0;
	/* What it ran before we knew it is nobody's. */
	for (unsigned i = 0; i < 2; i++) {
		total[i] = 3600000 * MS;
		world.status[i].executed = total[i];
	}
	for (unsigned i = 0; i < 40000; i++) {
		bool was_held = world.control[0].hold;
		look_after(500000);
		bool evicted = !was_held && world.control[0].hold;
		/* Three of four times a whole kernel is in the way. */
		if (evicted && i % 4)
			left = 3;
		unsigned runs = world.control[0].hold && !left ? 1 : 0;
		for (unsigned c = 0; c < 2; c++)
			if (runs != c || total[c] >= world.status[c].executed + 1500000)
				world.status[c].executed = total[c];
		total[runs] += 500000;
		ran += left ? 500000 : 0;
		left -= left > 0;
	}
	total[0] -= 3600000 * MS;
	total[1] -= 3600000 * MS;
	double sum = (double)(total[0] + total[1]);
	assert_true(ran > (uint64_t)(0.03 * sum));
	assert_float_equal((double)total[0] / sum, 0.5, 0.01);
}

/* Its kernels are shorter than it predicts, and it leaves at once: late tellings are no debt. */
static void test_wrong_predictions(void **state)
{
	uint64_t total[2] = {0};

	(void)state;
	for (unsigned c = 0; c < 2; c++) {
		come(c, 1, 50);
		work(c, 50 * MS);
		world.status[c].outstanding = 1000;
	}
	for (unsigned i = 0; i < 40000; i++) {
		look_after(250000);
		if (i % 3 == 0) {
			world.status[0].executed = 1 + total[0] * 5 / 4;
			world.status[1].executed = 1 + total[1];
		}
		total[world.control[0].hold ? 1 : 0] += 250000;
	}
	assert_float_equal((double)total[0] / (double)(total[0] + total[1]), 0.5, 0.004);
}

/* A client of a GPU: it always has kernels of so many ns, and so long they need to leave. */
struct player {
	uint64_t kernel, leave;
	uint64_t total, begun, leaving; /* ns that it ran; of the kernel; until it has left */
	uint64_t tick, ended, ran;      /* when it tells; total of kernels that had ended then */
	double tells;                   /* of each ns that it ran */
};

/* As libweir does: kernels that ended, and what it has seen of the next. */
static void tell(struct player *player, volatile struct weir_status_page *status, bool held)
{
	const uint64_t tick = 550000, queued = 4 * player->kernel;
	uint64_t ended = player->total - player->begun;

	player->ran = ended == player->ended ? player->ran + (held ? 0 : tick) : 0;
	player->ended = ended;
	player->tick += tick;
	status->executed = 1 + (uint64_t)(player->tells * (double)ended);
	status->gpu_time = status->executed + queued;
	status->remaining = queued > player->ran ? queued - player->ran : 1;
	status->outstanding = 4;
}

/* It had the GPU for @ns. */
static void play(struct player *player, uint64_t ns)
{
	player->total += ns;
	player->begun = (player->begun + ns) % player->kernel;
	player->leaving -= ns < player->leaving ? ns : player->leaving;
}

/* Who is still leaving, else who may run. */
static unsigned who_runs(const struct player players[2])
{
	for (unsigned i = 0; i < 2; i++)
		if (players[i].leaving)
			return i;
	return world.control[0].hold ? 1 : 0;
}

/* The first one's part of the GPU. */
static double play_both(struct player players[2])
{
	const uint64_t step = 10000, end = world.now + 20000 * MS;
	uint64_t next = world.now;
	unsigned random = 1;

	for (; world.now < end; world.now += step) {
		bool held[2] = {world.control[0].hold, world.control[1].hold};
		if (world.now >= next) {
			next = scheduler_look(&world.scheduler, &world.gpu, world.now);
			next += (random = random * 1103515245 + 12345) / 65536 % 60000;
		}
		for (unsigned i = 0; i < 2; i++) {
			struct player *player = &players[i];
			if (!held[i] && world.control[i].hold)
				player->leaving = player->leave ? player->leave
								: player->kernel - player->begun;
			if (world.now >= player->tick)
				tell(player, &world.status[i], held[i]);
		}
		play(&players[who_runs(players)], step);
	}
	return (double)players[0].total / (double)(players[0].total + players[1].total);
}

/* Kernels that are waited for to their end, and such that leave: what each has is its share,
 * whatever part of a turn a kernel is; and what short ones tell wrongly is put right. */
static void test_kernels_and_shares(void **state)
{
	const struct player pairs[][2] = {
		{{.kernel = 550000, .tells = 1}, {.kernel = 7400000, .leave = 150000, .tells = 1}},
		{{.kernel = 720000, .tells = 1}, {.kernel = 14600000, .leave = 100000, .tells = 1}},
		{{.kernel = 1500000, .tells = 1}, {.kernel = 7400000, .leave = 150000, .tells = 1}},
		{{.kernel = 520000, .leave = 60000, .tells = 1}, {.kernel = 950000, .tells = 1}},
		{{.kernel = 100000, .tells = 1}, {.kernel = 5000000, .leave = 150000, .tells = 1}},
		{{.kernel = 100000, .tells = 1}, {.kernel = 550000, .tells = 1}},
		{{.kernel = 100000, .tells = 1.3}, {.kernel = 100000, .tells = 0.9}},
	};

	(void)state;
	scheduler_set_policy(&world.scheduler, policy_find("ffs"));
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct player players[2] = {pairs[i][0], pairs[i][1]};
		for (unsigned c = 0; c < 2; c++) {
			world.status[c].executed = 0;
			come(c, 1, c ? 33 : 66);
			work(c, 50 * MS);
		}
		players[0].tick = players[1].tick = world.now;
		double part = play_both(players);
		printf("# %zu: %.4f\n", i, part);
		assert_float_equal(part, 66.0 / 99, 0.006);
		for (unsigned c = 0; c < 2; c++) {
			go(c);
			tenant_free_usages(&world.tenants[c]);
		}
	}
}

/* Below a level with demand no turn gets older. */
static void test_blocked(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, MS);
	work(1, MS);
	look_after(MS);
	unsigned first = world.control[0].hold ? 1 : 0;
	world.demand[1].word = 4;
	for (unsigned i = 0; i < 1000; i++)
		look_after(MS);
	assert_false(world.control[first].hold);
	world.demand[1].word = 0;
	for (unsigned i = 0; i < 20 && !world.control[first].hold; i++)
		look_after(MS);
	assert_true(world.control[first].hold);
}

static void test_change_of_policy(void **state)
{
	const struct policy *const policies[] = {&policy_hpf, &policy_static, &policy_dynamic,
						 &policy_wfq, &policy_ffs};

	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, MS);
	work(1, MS);
	for (unsigned i = 0; i < 5; i++) {
		scheduler_set_policy(&world.scheduler, policies[i]);
		world.now = loop_now();
		look_after(MS);
		assert_int_equal(held(), 1);
		assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
		scheduler_set_policy(&world.scheduler, &policy_levels);
		world.now = loop_now();
		assert_int_equal(held(), 0);
		assert_false(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
		look_after(MS);
		assert_int_equal(held(), 0);
	}
}

/* Each client that comes has its GPU configured once more. */
static void test_commanded(void **state)
{
	struct scheduler *scheduler = &world.scheduler;

	(void)state;
	scheduler_configure(scheduler, &world.gpu, &policy_ffs, &policy_defaults);
	assert_ptr_equal(world.gpu.policy, &policy_ffs);
	scheduler_set_policy(scheduler, &policy_wfq);
	assert_ptr_equal(world.gpu.policy, &policy_wfq);
	come(0, 1, 50);
	scheduler_configure(scheduler, &world.gpu, &policy_ffs, &policy_defaults);
	come(1, 1, 50);
	assert_ptr_equal(world.gpu.policy, &policy_wfq);
	assert_ptr_equal(world.gpu.turns.policy, &policy_wfq);
	scheduler_take(scheduler, &policy_hpf, &policy_defaults);
	scheduler_configure(scheduler, &world.gpu, &policy_hpf, &policy_defaults);
	assert_ptr_equal(world.gpu.policy, &policy_hpf);
	assert_ptr_equal(world.gpu.turns.policy, &policy_hpf);
}

static void test_other_level(void **state)
{
	(void)state;
	come(0, 1, 100);
	come(1, 1, 100);
	work(0, MS);
	work(1, MS);
	look_after(MS);
	assert_int_equal(held(), 1);
	world.clients[1].level = 2;
	world.gpu.n_level[1]--;
	world.gpu.n_level[2]++;
	scheduler_change(&world.scheduler, &world.gpu);
	assert_int_equal(held(), 0);
	assert_int_equal(world.control[0].flags, 0);
}

static void test_share(void **state)
{
	(void)state;
	come(0, 1, 40);
	come(1, 1, 60);
	assert_int_equal(world.control[0].share, 40);
	assert_int_equal(world.clients[0].policy.weight, 40 * POLICY_WEIGHT_ONE);
	/* Another process of the first one's container. */
	world.tenants[0].clients->tenant_next = &world.clients[2];
	world.clients[2] = (struct client){.gpu = &world.gpu};
	scheduler_change(&world.scheduler, &world.gpu);
	assert_int_equal(world.clients[0].policy.weight, 20 * POLICY_WEIGHT_ONE);
	world.tenants[0].slo = 2 * MS;
	scheduler_change(&world.scheduler, &world.gpu);
	assert_int_equal(world.control[0].latency_slo, 2 * MS);
}

static void test_by_hand(void **state)
{
	(void)state;
	come(0, 1, 100);
	work(0, MS);
	scheduler_hold(&world.scheduler, &world.clients[0], 10 * MS);
	world.now = loop_now();
	assert_true(world.control[0].hold);
	assert_true(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	scheduler_hold(&world.scheduler, &world.clients[0], 0);
	assert_false(world.control[0].hold);
	assert_int_equal(world.control[0].flags, 0);
	scheduler_hold(&world.scheduler, &world.clients[0], 10 * MS);
	world.now = loop_now();
	look_after(MS);
	assert_true(world.control[0].hold);
	look_after(10 * MS);
	assert_false(world.control[0].hold);
}

static void test_recording(void **state)
{
	char message[128];
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
	char *text = record_end(&world.scheduler.record, world.now + MS);
	assert_non_null(text);
	FILE *in = fmemopen(text, strlen(text), "r");
	if (trace_read(&trace, in, "recording", message, sizeof(message)) < 0)
		fail_msg("%s", message);
	fclose(in);
	free(text);
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

/* What evictions cost reaches the policy, if it is more than any switch does. */
static void test_costly_evictions(void **state)
{
	const uint64_t least = policy_defaults.cost;
	struct turn *turn = &world.gpu.turns.levels[1];

	(void)state;
	world.status[0].eviction_cost = 3 * least;
	come(0, 1, 100);
	come(1, 1, 100);
	assert_int_equal(world.clients[0].policy.cost, 3 * least);
	assert_int_equal(world.clients[1].policy.cost, 0);
	work(0, 50 * MS);
	work(1, 50 * MS);
	look_after(MS);
	assert_int_equal(turn->costs, 4 * least);

	world.status[1].eviction_cost = 2 * least;
	look_after(MS);
	assert_int_equal(turn->costs, 5 * least);
	world.status[1].eviction_cost = 2 * least + least / 10;
	look_after(MS);
	assert_int_equal(turn->costs, 5 * least);
	world.status[1].eviction_cost = UINT64_MAX;
	look_after(MS);
	assert_int_equal(turn->costs, 3 * least + SCHEDULER_COSTLY * least);
	world.status[1].eviction_cost = least / 2;
	look_after(MS);
	assert_int_equal(turn->costs, 4 * least);
	go(0);
	go(1);
	assert_int_equal(turn->costs, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_alone),
		TEST(test_contention),
		TEST(test_timer),
		TEST(test_shares),
		TEST(test_overhang),
		TEST(test_blocked),
		TEST(test_wrong_predictions),
		TEST(test_kernels_and_shares),
		TEST(test_other_level),
		TEST(test_change_of_policy),
		TEST(test_commanded),
		TEST(test_share),
		TEST(test_by_hand),
		TEST(test_recording),
		TEST(test_unpredicted),
		TEST(test_abreast),
		TEST(test_urgent),
		TEST(test_heard),
		TEST(test_not_abreast),
		TEST(test_end_is_looked_for),
		TEST(test_costly_evictions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
