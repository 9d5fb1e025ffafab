/* What an agent of many clients costs, and how soon it decides. Prints one line of JSON.
 *
 *   idle     all are connected, none has work: the agent's time on a processor, and its memory
 *   hold     a client works, and one of its level with less work comes: until the first is held
 *   wake     the second client is done: until another client may run
 *   busy     the same while all clients have work, and the agent's time meanwhile
 *   asleep   no client had work for a second; then two have: until one of them is held */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base.h>

#include "fake-clients.h"
#include "samples.h"
#include "workload.h"

#define LONG_NS    10000000000ull
#define SHORT_NS   100000ull
#define DECIDED_NS 2000000000ull /* longer than this counts as never */

static uint64_t agent_pid;

/* ns */
static uint64_t processor_time(void)
{
	unsigned long long ns = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/schedstat", (unsigned)agent_pid);
	FILE *file = fopen(path, "re");
	if (!file || fscanf(file, "%llu", &ns) != 1)
		workload_fail("%s: %s", path, strerror(errno));
	fclose(file);
	return ns;
}

static unsigned resident_kib(void)
{
	char path[64], line[128];
	unsigned kib = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", (unsigned)agent_pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %u", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* In hundredths of a processor. */
static double share_of_processor(double seconds)
{
	uint64_t began = now_ns(), before = processor_time();

	sleep_until_ns(began + (uint64_t)(seconds * 1e9));
	return 100 * (double)(processor_time() - before) / (double)(now_ns() - began);
}

static void work(const struct fake_client *client, uint64_t ns)
{
	atomic_store(&client->status->remaining, ns);
	atomic_store(&client->status->outstanding, ns > 0);
}

static void expect_decision(uint64_t since)
{
	if (now_ns() > since + DECIDED_NS)
		workload_fail("the agent does not decide");
}

/* us */
static double until_held(const struct fake_client *client, uint64_t since)
{
	while (!atomic_load(&client->control->hold))
		expect_decision(since);
	return (double)(now_ns() - since) / 1e3;
}

static void print_samples(const char *name, struct samples *samples)
{
	samples_sort(samples);
	printf(", \"%s\": {\"n\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}", name,
	       samples->n, samples_quantile(samples, 0.5), samples_quantile(samples, 0.99),
	       samples_quantile(samples, 1));
	samples_deinit(samples);
}

/* Clients of one level on one GPU run in turn. */
static bool are_same_level(const struct fake_client *a, const struct fake_client *b)
{
	return a->gpu == b->gpu && a->level == b->level && a->pod != b->pod;
}

static const struct fake_client *same_level_of(const struct fake_clients *fake,
					       const struct fake_client *client)
{
	for (size_t i = 0; i < fake->n; i++)
		if (are_same_level(&fake->clients[i], client))
			return &fake->clients[i];
	workload_fail("no two clients are equals: more of them, or fewer pods");
}

/* The client of @other's level that may run. NULL: none yet. */
static const struct fake_client *running(const struct fake_clients *fake,
					 const struct fake_client *other)
{
	for (size_t i = 0; i < fake->n; i++) {
		const struct fake_client *client = &fake->clients[i];
		if (client != other && are_same_level(client, other) &&
		    atomic_load(&client->status->outstanding) &&
		    !atomic_load(&client->control->hold))
			return client;
	}
	return NULL;
}

static void pause_randomly(struct random *random)
{
	sleep_until_ns(now_ns() + 2000000 + random_below(random, 3000000));
}

/* us until a client may run. */
static double until_running(const struct fake_clients *fake, const struct fake_client *other,
			    uint64_t since)
{
	while (!running(fake, other))
		expect_decision(since);
	return (double)(now_ns() - since) / 1e3;
}

/* @name: prefix of the printed names. */
static void measure(struct workload *workload, const struct fake_clients *fake, const char *name)
{
	const struct fake_client *comer = &fake->clients[fake->n - 1], *first;
	struct random random = {workload->seed};
	struct samples hold = {0}, wake = {0};
	char text[64];

	for (uint64_t i = 0; i < workload->iterations; i++) {
		pause_randomly(&random);
		while (!(first = running(fake, comer)))
			usleep(1000);
		uint64_t began = now_ns();
		work(comer, SHORT_NS);
		samples_add(&hold, until_held(first, began));
		pause_randomly(&random);
		began = now_ns();
		work(comer, 0);
		samples_add(&wake, until_running(fake, comer, began));
	}
	snprintf(text, sizeof(text), "%s%s", name, "hold");
	print_samples(text, &hold);
	snprintf(text, sizeof(text), "%s%s", name, "wake");
	print_samples(text, &wake);
}

static void measure_asleep(const struct fake_clients *fake, unsigned rounds)
{
	const struct fake_client *one = &fake->clients[0], *other = same_level_of(fake, one);
	struct samples samples = {0};

	while (rounds--) {
		usleep(1300000);
		uint64_t began = now_ns();
		work(one, LONG_NS);
		work(other, SHORT_NS);
		samples_add(&samples, until_held(one, began));
		work(one, 0);
		work(other, 0);
	}
	print_samples("asleep", &samples);
}

/* This program spins, so the agent gets processors of its own. */
static void part_from_agent(void)
{
	cpu_set_t ours, rest;

	CPU_ZERO(&ours);
	CPU_SET(0, &ours);
	CPU_ZERO(&rest);
	for (int i = 1; i < sysconf(_SC_NPROCESSORS_ONLN) && i < CPU_SETSIZE; i++)
		CPU_SET(i, &rest);
	if (CPU_COUNT(&rest) == 0 || sched_setaffinity((pid_t)agent_pid, sizeof(rest), &rest) < 0)
		return;
	(void)sched_setaffinity(0, sizeof(ours), &ours);
}

static void measure_all(struct workload *workload, const struct fake_clients *fake)
{
	part_from_agent();
	usleep(2500000); /* until the work of their registration is over */
	double idle = share_of_processor(workload->seconds);
	printf("{\"clients\": %zu, \"pods\": %zu, \"idle_percent\": %.3f, \"rss_kib\": %u", fake->n,
	       fake->n_pods, idle, resident_kib());
	measure_asleep(fake, 8);
	work(same_level_of(fake, &fake->clients[fake->n - 1]), LONG_NS);
	measure(workload, fake, "");
	for (size_t i = 0; i + 1 < fake->n; i++)
		work(&fake->clients[i], LONG_NS);
	usleep(100000);
	printf(", \"busy_percent\": %.2f", share_of_processor(workload->seconds / 4));
	measure(workload, fake, "busy_");
	printf("}\n");
}

int main(int argc, char **argv)
{
	uint64_t clients = 500, pods = 100;
	const char *cgroup = NULL;
	const struct workload_option options[] = {
		{"agent", OPTION_NUMBER, &agent_pid, "its pid"},
		{"cgroup", OPTION_TEXT, &cgroup, "folder for the pods' cgroups"},
		{"clients", OPTION_NUMBER, &clients, "in all (500)"},
		{"pods", OPTION_NUMBER, &pods, "that they are in (100)"},
		{0},
	};
	struct workload workload = {.seconds = 10, .iterations = 300};
	struct fake_clients *fake = calloc(1, sizeof(*fake));

	workload_parse(&workload, argc, argv, "what an agent of many clients costs", options);
	if (!fake || !cgroup || !agent_pid || pods < 1 || pods > FAKE_PODS_MAX || clients < pods ||
	    clients > FAKE_CLIENTS_MAX)
		workload_fail("--agent and --cgroup, 1 to %u pods, and to %u clients",
			      FAKE_PODS_MAX, FAKE_CLIENTS_MAX);
	CU(cuInit(0));
	fake_clients_start(fake, cgroup, (unsigned)pods, (unsigned)clients);
	measure_all(&workload, fake);
	fake_clients_stop(fake);
	free(fake);
	return 0;
}
