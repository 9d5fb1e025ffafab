#include "gates/need-choice.h"

#include "client/stream.h"
#include "gates/need-auto.h"

#include "weir/log.h"

#define WAY       3ull            /* in the lowest bits */
#define REST      (30 * NS_PER_S) /* between two trials of a kernel; twice as long after one that */
#define REST_MAX  (480 * NS_PER_S)  /* found the same */
#define APART     NS_PER_S          /* between any two trials */
#define PATIENCE  (5 * NS_PER_S)    /* for the launches of a way */
#define IDLED_FOR (100 * NS_PER_MS) /* the client's work has ended within this time */
#define MANY      16ull             /* all launches of many blocks: one kernel, whose key is 0 */
#define MANY_FOR  NS_PER_S          /* beside these no kernel of few blocks is measured */

/* ns and launches in a way before the first that counts. Lower-level clients see by looking which
 * way it is, and have launches queued: four of 16 ms end within that time. */
#define SETTLE  (80 * NS_PER_MS)
#define SKIPPED 8u

struct need_choices need_choices_table[CLIENTS_MAX];

/* The golden ratio's bits (Knuth). */
static uint64_t beside(uint64_t kernel, uint32_t company)
{
	return kernel ^ ((company * 0x9e3779b97f4a7c15u) & ~15ull);
}

static size_t slot_of(uint64_t subject)
{
	return (subject >> 4) % NEED_CHOICES;
}

static enum need_way way_of(struct need_choices *choices, const struct level_binding *binding,
			    uint64_t kernel, enum need_way usual)
{
	uint32_t company = load_relaxed(&control_page(binding)->company);

	if (!company)
		company = load_relaxed(&choices->company);
	if (!company)
		return usual;
	if (load_acquire(&choices->tried) == kernel) {
		add_relaxed(&choices->launches, 1);
		return (enum need_way)load_relaxed(&choices->way);
	}
	uint64_t subject = beside(kernel, company);
	uint64_t chosen = load_relaxed(&choices->chosen[slot_of(subject)]);
	return (chosen & ~WAY) == subject ? (enum need_way)(chosen & WAY) : usual;
}

enum need_way need_way_of(struct client *client, const struct level_binding *binding, uint64_t key,
			  enum need_way usual)
{
	struct need_choices *choices = need_choices_of(client);
	uint64_t kernel = need_kernel(key);

	if ((load_relaxed(&choices->wanted) & ~WAY) != MANY)
		store_relaxed(&choices->wanted, kernel | (uint64_t)usual);
	return way_of(choices, binding, kernel, usual);
}

enum need_way need_way_of_many(struct client *client, const struct level_binding *binding)
{
	struct need_choices *choices = need_choices_of(client);
	enum need_way way = way_of(choices, binding, MANY, NEED_WHOLE);

	store_relaxed(&choices->wanted, MANY | NEED_WHOLE);
	store_relaxed(&choices->many, 1 + (int)way);
	return way;
}

enum need_way need_way_beside_many(struct client *client, const struct level_binding *binding)
{
	return way_of(need_choices_of(client), binding, MANY, NEED_WHOLE);
}

static uint64_t launches_of(struct client *client)
{
	uint64_t n = atomic_load(&streams_of(client)->gone_launches);

	stream_for_each (stream, client)
		n += atomic_load(&stream->begun);
	return n;
}

void need_learn_period(struct client *client, bool whole, uint64_t ns)
{
	struct need_choices *choices = need_choices_of(client);
	uint64_t begun = launches_of(client), before = atomic_exchange(&choices->begun, begun);
	int many = atomic_exchange(&choices->many, 0);
	uint64_t way = whole ? NEED_WHOLE : (uint64_t)many - 1;

	need_auto_ended(client, whole, begun - before, ns);
	if (many && ns && begun > before && load_relaxed(&choices->measures))
		atomic_store(&choices->period, ns / (begun - before) << 2 | way);
}

/* Worker. */

static void end(struct need_choices *choices, uint64_t now)
{
	atomic_store(&choices->measures, 0);
	atomic_store(&choices->tried, 0);
	choices->next = now + APART;
}

static void launch_in(struct need_choices *choices, enum need_way way, uint64_t now)
{
	atomic_store(&choices->measures, 0);
	choices->from = now + SETTLE;
	choices->until = now + PATIENCE;
	atomic_store(&choices->launches, 0);
	atomic_store(&choices->way, (int)way);
}

static void choose(struct need_choices *choices, enum need_way way, uint64_t now)
{
	uint64_t subject = beside(atomic_load(&choices->tried), choices->beside);
	uint64_t next = subject | (uint64_t)way;
	size_t slot = slot_of(subject);
	bool same = atomic_load(&choices->chosen[slot]) == next;

	choices->rest[slot] = same ? smaller(2 * choices->rest[slot], REST_MAX) : REST;
	choices->due[slot] = now + choices->rest[slot];
	atomic_store(&choices->chosen[slot], next);
	end(choices, now);
}

void need_learn(struct client *client, uint64_t key, enum need_way way, uint64_t ns)
{
	struct need_choices *choices = need_choices_of(client);
	const struct need_trial *trial = &choices->trial;
	enum need_way before = trial->way;
	uint64_t now = client_now();

	if (!need_is_measured(client, key))
		return;
	if (need_trial_learn(&choices->trial, way, ns, now)) {
		log_debug("kernel %016llx beside %08x: ns in places (0: work of many blocks on a "
			  "third) %llu, packed into SMs that stay free %llu, with SMs of its own "
			  "(half) %llu, with all %llu",
			  (unsigned long long)key, choices->beside,
			  (unsigned long long)trial->typical[NEED_PLACES],
			  (unsigned long long)trial->typical[NEED_PACKED],
			  (unsigned long long)trial->typical[NEED_APART],
			  (unsigned long long)trial->typical[NEED_WHOLE]);
		choose(choices, trial->way, now);
	} else if (trial->way != before) {
		launch_in(choices, trial->way, now);
	}
}

static bool is_due(const struct need_choices *choices, uint64_t subject, uint64_t now)
{
	size_t slot = slot_of(subject);

	return (atomic_load(&choices->chosen[slot]) & ~WAY) != subject || now >= choices->due[slot];
}

static void begin(struct need_choices *choices, uint64_t wanted, uint32_t company, uint64_t now)
{
	choices->usual = (enum need_way)(wanted & WAY);
	if ((wanted & ~WAY) == MANY)
		need_trial_begin(&choices->trial, &need_terms_work);
	else
		need_trial_begin(&choices->trial, choices->usual == NEED_APART ? &need_terms_long
									       : &need_terms_short);
	choices->beside = company;
	launch_in(choices, choices->trial.way, now);
	atomic_store(&choices->tried, wanted & ~WAY);
}

static bool has_idled(struct need_choices *choices, uint64_t now)
{
	uint64_t idled = load_relaxed(&choices->idled);

	if (idled != choices->seen)
		choices->idle_at = now;
	choices->seen = idled;
	return now - choices->idle_at < IDLED_FOR;
}

/* What is to be measured; 0: nothing. Launches of few blocks that follow some of many ask for no
 * room of their own. */
static uint64_t wanted_now(struct need_choices *choices, uint64_t now)
{
	uint64_t wanted = atomic_exchange(&choices->wanted, 0);

	if ((wanted & ~WAY) == MANY)
		choices->many_at = now;
	else if (choices->many_at && now - choices->many_at < MANY_FOR)
		return 0;
	return wanted;
}

static void learn_period(struct client *client)
{
	uint64_t period = atomic_exchange(&need_choices_of(client)->period, 0);

	if (period)
		need_learn(client, 0, (enum need_way)(period & WAY), period >> 2);
}

void need_choice_work(struct client *client, struct tick *tick)
{
	struct need_choices *choices = need_choices_of(client);
	uint32_t company = load_relaxed(&control_page(tick->binding)->company);
	uint64_t now = tick->now, wanted = wanted_now(choices, now);
	bool idled = has_idled(choices, now);

	learn_period(client);
	if (company)
		atomic_store(&choices->company, company);
	if (atomic_load(&choices->tried)) {
		if (company && company != choices->beside)
			end(choices, now);
		else if (!company) /* what is known stays, and they get used to the way again */
			launch_in(choices, choices->trial.way, now);
		else if (now >= choices->until)
			choose(choices, choices->usual, now);
		else if (now >= choices->from && atomic_load(&choices->launches) >= SKIPPED)
			atomic_store(&choices->measures, 1);
	} else if (wanted && company && idled && now >= choices->next &&
		   is_due(choices, beside(wanted & ~WAY, company), now)) {
		begin(choices, wanted, company, now);
	}
}
