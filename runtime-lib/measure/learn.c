#include "measure/learn.h"

#include "preempt/tuning.h"
#include "launch/gate.h"
#include "measure/kernel.h"
#include "measure/predict.h"
#include "client/start.h"

/* What a chain's continuation that finds nothing to do costs with its gate (H200). */
#define LINK_NS 4600u
#define KEEP    (7.0 / 8)

static void judge(struct client *client, const struct sampled *of, uint64_t ns)
{
	if (!of->predicted)
		return;
	client->worker.predictions++;
	client->worker.prediction_error += (uint64_t)(kernel_error(of->predicted, ns) * 1e6);
}

/* GPU time lost: that of the two parts, less what the kernel takes when nobody wants it to leave.
 */
static void learn_eviction(const struct sample *sample)
{
	struct kernel_time *kernel = sample->of.kernel;
	uint64_t ran = sample_ran(sample), mean = kernel_mean(kernel);

	if (ran && mean)
		kernel_learn_eviction(kernel, sample->of.key, ran > mean ? ran - mean : 1);
}

/* Without the chain that it went through for nothing, whose length is another one each time. */
static uint64_t without_links(const struct sample *sample, uint64_t ns)
{
	bool flew = atomic_load(&sample->flight) != SAMPLE_PLAIN;
	uint64_t links = flew ? (uint64_t)sample->chain * LINK_NS : 0;

	return links < ns / 2 ? ns - links : ns / 2;
}

/* Who runs for longer is more likely to be evicted. A kernel that cannot leave is not; the gate
 * behind it costs nothing worth counting. One that was launched as it is for comparison says
 * nothing. */
static void weigh(struct client *client, const struct sample *sample)
{
	const struct sampled *of = &sample->of;
	bool leaves = atomic_load(&sample->flight) != SAMPLE_PLAIN;
	bool in_turn = of->tuned && !autotune_uses(&of->tuned->tuner, of->candidate);
	double cost = (double)atomic_load(&of->kernel->eviction);
	double time = (double)kernel_mean(of->kernel);

	if (in_turn || (leaves && cost <= 0))
		return;
	client->worker.run_time = client->worker.run_time * KEEP + time;
	client->worker.eviction_cost =
		client->worker.eviction_cost * KEEP + (leaves ? cost * time : 0);
}

static bool is_crowded(const struct client *client)
{
	return atomic_load(&client->gate_interval) <= GATE_INTERVAL_CONTENDED;
}

/* What changes by so much is measured again soon: equals run beside it until the agent sees that
 * they have work. */
static void watch_change(struct client *client, uint64_t before, uint64_t ns)
{
	if (before && (ns > 2 * before || before > 2 * ns))
		atomic_store(&client->sampler.due, SAMPLE_DUE);
}

static void learn_time(struct client *client, const struct sample *sample, uint64_t ns,
		       bool crowded)
{
	const struct sampled *of = &sample->of;
	uint64_t before = kernel_mean(of->kernel);
	uint64_t believed = kernel_believe(of->kernel, of->key, ns, crowded);

	if (!believed)
		return;
	judge(client, of, believed);
	kernel_learn(of->kernel, of->key, believed, predict_learn(sample, believed), crowded);
	watch_change(client, before, believed);
}

void learn_sample(void *data, const struct sample *sample, uint64_t ns)
{
	struct client *client = data;
	bool crowded = is_crowded(client) || sample->disturbed;

	if (!sample_evicted(sample)) {
		learn_time(client, sample, without_links(sample, ns), crowded);
	} else if (atomic_load(&sample->flight) == SAMPLE_EVICTED_ONCE) {
		learn_eviction(sample);
	}
	start_ended(client, sample);
	weigh(client, sample);
	tuning_learn(client, sample, ns, crowded);
}

void learn_runs(void *data, const struct sample *sample, uint64_t ns)
{
	struct client *client = data;
	bool crowded = is_crowded(client) || sample->disturbed;
	uint64_t before = kernel_mean(sample->of.kernel);

	/* Among others it runs for longer than it takes. */
	if (!sample->disturbed || !before)
		kernel_at_least(sample->of.kernel, sample->of.key, ns);
	watch_change(client, before, kernel_mean(sample->of.kernel));
	tuning_runs(client, sample, ns, crowded);
}
