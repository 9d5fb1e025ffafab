#include "launch/learn.h"

#include "client/stream-level.h"
#include "gates/gate.h"
#include "gates/need-choice.h"
#include "gates/start.h"
#include "measure/kernel.h"
#include "measure/predict.h"
#include "measure/sample.h"
#include "preempt/tuning.h"

#define UNSEEN        (2 * NS_PER_MS) /* ns: between two looks so far apart gates may have been closed */
#define SAMPLE_EVERY  (5 * NS_PER_MS)  /* ns: one launch is measured, whatever is known of it; */
#define SAMPLE_WITHIN (20 * NS_PER_MS) /* then a short one, too */

/* ns, of a continuation that finds nothing to do, with its gate (H200). */
#define LINK_NS 4600u
#define KEEP    (7.0 / 8)

struct learning learning_table[CLIENTS_MAX];

static void judge(struct client *client, const struct sampled *of, uint64_t ns)
{
	if (!of->predicted)
		return;
	learning_of(client)->predictions++;
	learning_of(client)->prediction_error += (uint64_t)(kernel_error(of->predicted, ns) * 1e6);
}

/* An eviction costs the time of the two parts, less the time of the whole kernel. */
static void learn_eviction(const struct sample *sample)
{
	struct kernel_time *kernel = sample->of.kernel;
	uint64_t ran = sample_ran(sample), mean = kernel_mean(kernel);

	if (ran && mean)
		kernel_learn_eviction(kernel, sample->of.key, ran > mean ? ran - mean : 1);
}

/* The time without that of continuations, whose number varies. */
static uint64_t without_links(const struct sample *sample, uint64_t ns)
{
	uint64_t first = sample_first(sample);

	if (first)
		return smaller(first, ns);
	bool flew = atomic_load(&sample->flight) != SAMPLE_PLAIN;
	uint64_t links = flew ? (uint64_t)sample->chain * LINK_NS : 0;

	return links < ns / 2 ? ns - links : ns / 2;
}

/* A kernel is evicted in proportion to its time. A kernel that cannot leave costs nothing. A launch
 * that only served a comparison does not count. */
static void weigh(struct client *client, const struct sample *sample)
{
	const struct sampled *of = &sample->of;
	bool leaves = atomic_load(&sample->flight) != SAMPLE_PLAIN;
	bool compared = of->tuned && !autotune_uses(&of->tuned->tuner, of->candidate);
	double cost = (double)atomic_load(&of->kernel->eviction);
	double time = (double)kernel_mean(of->kernel);

	if (compared || (leaves && cost <= 0))
		return;
	learning_of(client)->run_time = learning_of(client)->run_time * KEEP + time;
	learning_of(client)->eviction_cost =
		learning_of(client)->eviction_cost * KEEP + (leaves ? cost * time : 0);
}

/* A time that has doubled or halved is measured again soon. It may be wrong: same-level clients run
 * beside the kernel until the agent sees that they have work. */
static void watch_change(struct client *client, uint64_t before, uint64_t ns)
{
	if (before && (ns > 2 * before || before > 2 * ns))
		atomic_store(&sampler_of(client)->due, SAMPLE_DUE);
}

static void learn_time(struct client *client, const struct sample *sample, uint64_t ns,
		       enum kernel_crowd crowd)
{
	const struct sampled *of = &sample->of;
	uint64_t before = kernel_mean(of->kernel);
	uint64_t believed = kernel_believe(of->kernel, of->key, ns, crowd);

	if (!believed)
		return;
	judge(client, of, believed);
	kernel_learn(of->kernel, of->key, believed,
		     predict_learn(&of->geometry, &of->arguments, of->unloads, believed), crowd);
	watch_change(client, before, believed);
}

static void learn_need(struct client *client, const struct sample *sample, uint64_t ns)
{
	const struct sampled *of = &sample->of;

	if (of->few && !sample->disturbed && !sample_evicted(sample))
		need_learn(client, of->key, (enum need_way)of->way, ns);
}

static enum kernel_crowd crowd_of(const struct client *client, const struct sample *sample)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	/* A client that is ahead of its minimum rate runs beside others. So does one whose workers
	 * are bounded by now, with launches that were queued before that, too. */
	bool shares = binding &&
		      (binding_flag(binding, WEIR_CONTROL_SLICED) ||
		       binding_flag(binding, WEIR_CONTROL_LEAVES) || binding_is_bounded(binding));

	if (sample->bounded || sample->of.beside || shares)
		return KERNEL_SLICED;
	return gate_is_contended(client) || sample->disturbed ||
			       (binding && learn_waits_for_lower(client, binding))
		       ? KERNEL_CROWDED
		       : KERNEL_ALONE;
}

/* True under a policy that decides which clients run at the same time. When a client's turn begins,
 * the last kernel of the client before may still run, and make a sample too long. */
static bool takes_turns(const struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	return binding && binding_flag(binding, WEIR_CONTROL_MEASURED);
}

static void learn_sample(void *data, const struct sample *sample, uint64_t ns)
{
	struct client *client = data;
	enum kernel_crowd crowd = crowd_of(client, sample);

	uint64_t alone = without_links(sample, ns);

	if (sample->early) {
		learn_need(client, sample, alone);
		start_ended(client, sample);
		return;
	}
	if (!sample_evicted(sample))
		learn_time(client, sample, alone,
			   crowd == KERNEL_ALONE && takes_turns(client) ? KERNEL_CROWDED : crowd);
	else if (atomic_load(&sample->flight) == SAMPLE_EVICTED_ONCE)
		learn_eviction(sample);
	start_ended(client, sample);
	weigh(client, sample);
	if (!sample->bounded)
		tuning_learn(client, sample, tuning_is_unknown(&sample->of) ? alone : ns,
			     crowd != KERNEL_ALONE);
}

static void learn_runs(void *data, const struct sample *sample, uint64_t ns)
{
	struct client *client = data;
	enum kernel_crowd crowd = crowd_of(client, sample);
	uint64_t before = kernel_mean(sample->of.kernel);

	/* If others on the GPU make it longer, only a first estimate counts. */
	if ((!sample->disturbed && crowd != KERNEL_SLICED && !takes_turns(client)) || !before)
		kernel_at_least(sample->of.kernel, sample->of.key, ns);
	watch_change(client, before, kernel_mean(sample->of.kernel));
	if (!sample->bounded)
		tuning_runs(client, sample, ns, crowd != KERNEL_ALONE);
}

void learn_open(struct client *client)
{
	beside_captures();
	sampler_init(sampler_of(client));
}

void learn_look(struct client *client, struct tick *tick)
{
	tick->samples = atomic_load(&sampler_of(client)->armed) != 0;
}

void learn_drive(struct client *client, struct tick *tick)
{
	const struct level_binding *binding = streams_binding(client);
	/* The program's own driver calls may delay ours for as long as gates are closed. */
	bool held = binding && (binding_closed(binding) ||
				(binding_contended(binding) && tick->unattended > UNSEEN));

	sampler_read(sampler_of(client), &(struct sample_reader){.ended = learn_sample,
								 .runs = learn_runs,
								 .data = client,
								 .now = tick->now,
								 .held = held});
}

/* Below the top level it matters how long kernels take today. */
void learn_work(struct client *client, struct tick *tick)
{
	struct learning *learning = learning_of(client);
	_Atomic int *wanted = &sampler_of(client)->due;
	bool late = learning->late && !binding_contended(tick->binding) &&
		    !binding_flag(tick->binding, WEIR_CONTROL_SLICED);
	int due = SAMPLE_NOT_DUE;

	if (!tick->binding->wait || tick->now - learning->sampled_at < SAMPLE_EVERY)
		return;
	learning->sampled_at = tick->now;
	learning->late = false;
	if (atomic_compare_exchange_strong(wanted, &due, SAMPLE_DUE))
		learning->due_at = tick->now;
	else if (due != SAMPLE_DOUBTED && tick->now - learning->due_at >= SAMPLE_WITHIN)
		atomic_store(wanted, SAMPLE_OVERDUE);
	if (late)
		atomic_store(wanted, SAMPLE_DOUBTED);
}
