#include "gates/demand-pages.h"

#include "client/stream-level.h"
#include "gates/need-auto.h"
#include "gates/need-choice.h"

#define MANY      65536u           /* more than any GPU has */
#define RETURN    (25 * NS_PER_US) /* ns of the whole GPU that a return costs lower levels (H100) */
#define KEPT_MAX  (2 * NS_PER_MS)  /* ns */
#define SHORT     (60 * NS_PER_US) /* ns: about as long as lower levels take to leave */
#define GIVEN_MIN 8u               /* SMs that MPS gives a process at least */
#define SHARE_MAX 8u               /* blocks that are packed into an SM */

/* Launches of many blocks do with one in so many SMs, or need all. */
static const uint32_t parts[NEED_WAYS] = {
	[NEED_PLACES] = 3, [NEED_PACKED] = 3, [NEED_APART] = 2, [NEED_WHOLE] = 1};

struct sms sms_table[CLIENTS_MAX];
static uint32_t always;   /* WEIR_YIELD_SMS, for measurements; 0: not set */
static double percentage; /* of the SMs that MPS gives this process; 0: all */

void sms_settings(void)
{
	const char *setting = getenv("WEIR_YIELD_SMS");
	unsigned long n = setting ? strtoul(setting, NULL, 10) : 0;

	always = n < MANY ? (uint32_t)n : 0;
	setting = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	percentage = setting ? strtod(setting, NULL) : 0;
}

uint32_t sms_given(double percent, uint32_t sms)
{
	if (!(percent > 0 && percent < 100))
		return sms;
	uint32_t n = (uint32_t)(percent * sms / 100) + 1;
	return (uint32_t)smaller(larger(n + n % 2, GIVEN_MIN), sms);
}

/* With the client's context current. */
void sms_open(struct client *client)
{
	int n = driver_attribute(client->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);

	struct sms *sms = sms_of(client);

	sms->of_gpu = n > 0 ? (uint32_t)n : 0;
	sms->unused = sms->of_gpu - sms_given(percentage, sms->of_gpu);
}

static uint32_t count(const struct geometry *geometry)
{
	unsigned __int128 blocks = geometry->grid[0];

	blocks *= geometry->grid[1];
	blocks *= geometry->grid[2];
	return blocks < MANY ? (uint32_t)blocks : MANY;
}

static bool are_few(const struct sms *sms, uint32_t n)
{
	return n && 4 * n <= 3 * sms->of_gpu;
}

bool sms_are_few(const struct client *client, const struct geometry *geometry)
{
	return are_few(sms_of(client), count(geometry));
}

/* Another stream has, or may have, work that runs beside this launch. */
static bool is_beside(struct stream *stream)
{
	struct stream *first = NULL;

	return !atomic_compare_exchange_strong(&sms_of(stream->client)->stream, &first, stream) &&
	       first != stream;
}

/* If the SMs idle for @gap ns, that costs lower levels less than a return. */
static bool pays(const struct sms *sms, uint32_t n, uint64_t gap)
{
	return gap && gap <= KEPT_MAX && gap * n < RETURN * sms->of_gpu;
}

/* SMs for so many blocks that stay shown until the next launch; all, if it comes too late for that.
 * The gap varies: the number holds while it pays and is more than half of what would. */
static uint32_t packed(struct sms *sms, uint32_t blocks)
{
	uint32_t n = load_relaxed(&sms->packed);
	uint64_t gap = atomic_load(&sms->gap);

	if (!gap || gap > KEPT_MAX)
		return blocks;
	uint64_t most = smaller((RETURN * sms->of_gpu - 1) / gap, MANY);
	if (n > most || 2 * n < most) {
		n = (uint32_t)(most - most / 4);
		store_relaxed(&sms->packed, n);
	}
	return n < blocks && blocks <= SHARE_MAX * n ? n : blocks;
}

static uint32_t need_in_way(struct sms *sms, enum need_way way, uint32_t blocks)
{
	switch (way) {
	case NEED_PLACES:
		return blocks;
	case NEED_PACKED:
		return packed(sms, blocks) | SMS_PACKED;
	case NEED_APART:
		return blocks | SMS_APART;
	default:
		return SMS_WHOLE;
	}
}

/* A short kernel beside others is done sooner than these leave SMs to it, and costs them less. */
static bool needs_places(uint64_t ahead)
{
	return ahead && ahead <= SHORT;
}

static uint32_t add_percent(uint32_t n, uint32_t percent)
{
	return n + (n * percent + 99) / 100;
}

/* SMs for launches of many blocks. */
static uint32_t part_of(const struct sms *sms, enum need_way way, uint32_t percent)
{
	return add_percent(sms->of_gpu / parts[way], percent);
}

static uint32_t need_of_many(struct client *client, const struct level_binding *binding,
			     uint32_t percent)
{
	const struct sms *sms = sms_of(client);

	if (!are_few(sms, part_of(sms, NEED_PLACES, percent)))
		return SMS_WHOLE;
	uint32_t part = part_of(sms, need_way_of_many(client, binding), percent);
	return are_few(sms, part) ? part | SMS_APART : SMS_WHOLE;
}

/* Beside launches of many blocks those of few need no more SMs. */
static uint32_t need_beside_many(struct client *client, const struct level_binding *binding,
				 uint32_t n, uint32_t percent)
{
	const struct sms *sms = sms_of(client);

	if (n <= part_of(sms, NEED_PLACES, percent))
		return n;
	return (uint32_t)smaller(n, part_of(sms, need_way_beside_many(client, binding), percent));
}

/* SMs that the pod names for each launch of few blocks; 0: none. */
static uint32_t named(uint32_t yield)
{
	uint32_t n = yield - WEIR_YIELD_NUMBER;

	return n <= WEIR_YIELD_NUMBER_MAX ? n : 0;
}

/* With WEIR_YIELD_AUTO. */
static uint32_t need_by_itself(struct client *client, uint64_t blocks, uint64_t ahead)
{
	const struct sms *sms = sms_of(client);
	enum need_way way = need_auto_way(client);
	bool few = are_few(sms, (uint32_t)blocks);
	uint32_t n = few ? (uint32_t)blocks : part_of(sms, way, 0);

	if (way == NEED_WHOLE || !are_few(sms, n))
		return SMS_WHOLE;
	if (!few)
		store_relaxed(&need_choices_of(client)->many, 1 + (int)way);
	return few && way == NEED_PLACES && needs_places(ahead) ? n : n | SMS_APART;
}

/* An SM for each block, as the GPU places them while there are enough. On the fewest that hold the
 * blocks a kernel takes up to a third longer (H100). */
kept_apart uint32_t sms_count(struct stream *stream, const struct level_binding *binding,
			      const struct geometry *geometry, uint64_t ahead, enum sms_known known)
{
	struct sms *sms = sms_of(stream->client);
	uint32_t yield = load_relaxed(&control_page(binding)->yield);
	uint32_t percent = named(yield) ? 0 : yield - 1;
	bool by_itself = need_is_auto(binding);

	if (is_beside(stream) || atomic_load(&streams_have_levels) ||
	    (percent > WEIR_YIELD_MORE_MAX && !by_itself))
		return SMS_WHOLE;
	if (always && !by_itself)
		return always | SMS_APART;
	if (by_itself)
		return need_by_itself(stream->client, known == SMS_COUNTED ? count(geometry) : 0,
				      ahead);
	uint32_t n = known == SMS_COUNTED ? add_percent(count(geometry), percent) : 0;
	if (!are_few(sms, n))
		return need_of_many(stream->client, binding, percent);
	if (named(yield))
		return named(yield) < sms->of_gpu ? named(yield) | SMS_APART : SMS_WHOLE;
	n = need_beside_many(stream->client, binding, n, percent);
	enum need_way way = need_way_of(stream->client, binding, kernel_key(geometry),
					needs_places(ahead) ? NEED_PLACES : NEED_APART);
	return need_in_way(sms, way == NEED_PLACES && !ahead ? NEED_APART : way, n);
}

static void raise_by(_Atomic uint32_t *need, uint32_t more)
{
	uint32_t seen = atomic_load(need);

	while (sms_both(seen, more) != seen &&
	       !atomic_compare_exchange_weak(need, &seen, sms_both(seen, more)))
		;
}

kept_apart void sms_ask(struct sms *sms, uint32_t n)
{
	raise_by(&sms->asked, n);
	if (n == SMS_WHOLE)
		atomic_store(&sms->guessed, false);
}

void sms_raise(struct client *client, uint32_t need)
{
	raise_by(&sms_of(client)->need, need);
}

/* A guess that is too large holds until the bits are cleared. */
void sms_guess(struct client *client)
{
	struct sms *sms = sms_of(client);
	uint32_t last = atomic_load(&sms->last);

	atomic_store(&sms->guessed, true);
	sms_raise(client, last ? last : SMS_WHOLE);
}

bool sms_are_whole(const struct client *client)
{
	return sms_needed(client) == SMS_WHOLE || atomic_load(&streams_have_levels);
}

/* What the client adds to the sum of each page of @binding. */
static uint32_t wanted(const struct client *client, const struct level_binding *binding)
{
	if (sms_are_whole(client) || binding->bit == WEIR_BIT_SHARED ||
	    binding_flag(binding, WEIR_CONTROL_LEAVES))
		return 0;
	return (uint32_t)larger(sms_number(sms_needed(client)), atomic_load(&sms_of(client)->kept));
}

static void set_page(struct page *page, uint32_t sms)
{
	if (atomic_load(&page->sms) == sms)
		return;
	uint32_t before = atomic_exchange(&page->sms, sms);
	/* Modulo 2^32, so a sum that is too small for a moment becomes right again. */
	atomic_fetch_add(&demand_page(page)->sms, sms - before);
}

static bool has_page(const struct level_binding *binding, const struct page *page)
{
	for (unsigned q = 0; binding && q < binding->level; q++) {
		if (binding->below[q] == page)
			return true;
	}
	return false;
}

void sms_leave(const struct level_binding *former, const struct level_binding *now)
{
	for (unsigned q = 0; q < former->level; q++) {
		if (!has_page(now, former->below[q]))
			set_page(former->below[q], 0);
	}
}

/* The note in the status page is never less than what is in the sums, if one thread does this. */
static void set_pages(const struct level_binding *binding, uint32_t sms)
{
	_Atomic uint32_t *note = &status_page(binding)->demand_sms;

	if (atomic_load(note) < sms)
		atomic_store(note, sms);
	for (unsigned q = 0; q < binding->level; q++)
		set_page(binding->below[q], sms);
	if (atomic_load(note) != sms)
		atomic_store(note, sms);
}

static void sms_publish(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding), *now;
	uint32_t sms;

	while (binding) {
		sms = wanted(client, binding);
		set_pages(binding, sms);
		now = atomic_load(&client->binding);
		if (now == binding && sms == wanted(client, binding))
			return;
		if (now != binding)
			sms_leave(binding, now);
		binding = now;
	}
}

/* The SMs of @need stay shown, if their idling costs less than a return. */
static void keep(struct sms *sms, uint32_t need, uint64_t gap)
{
	bool stays = need != SMS_WHOLE && (need & SMS_OWN) && pays(sms, sms_number(need), gap);

	atomic_store(&sms->gap, gap);
	atomic_store(&sms->kept_until, client_now() + smaller(2 * gap, KEPT_MAX));
	atomic_store(&sms->kept, stays ? sms_number(need) : 0);
}

bool sms_stay(struct client *client, uint64_t now)
{
	struct sms *sms = sms_of(client);

	if (!atomic_load(&sms->kept))
		return false;
	if (now < atomic_load(&sms->kept_until) || sms_needed(client))
		return true;
	atomic_store(&sms->kept, 0);
	sms_publish(client);
	return false;
}

static void sms_clear(struct client *client, uint64_t gap)
{
	struct sms *sms = sms_of(client);
	uint32_t need = atomic_exchange(&sms->need, 0), asked = atomic_exchange(&sms->asked, 0);

	if (atomic_exchange(&sms->guessed, false))
		need = asked;
	if (need)
		atomic_store(&sms->last, need);
	atomic_store(&sms->stream, NULL);
	add_relaxed(&need_choices_of(client)->idled, 1);
	keep(sms, need, gap);
	sms_publish(client);
}

/* Returns what was in the word. */
static uint64_t set_bit(_Atomic uint64_t *word, uint64_t bit)
{
	uint64_t before = atomic_load(word);

	return before & bit ? before : atomic_fetch_or(word, bit);
}

static void clear_bit(_Atomic uint64_t *word, uint64_t bit)
{
	if (atomic_load(word) & bit)
		atomic_fetch_and(word, ~bit);
}

uint64_t pages_set_below(const struct level_binding *binding, unsigned level, bool whole)
{
	uint64_t own = 1ull << binding->bit % 64, others = UINT64_MAX;

	for (unsigned q = 0; q < level; q++) {
		struct weir_demand_page *page = demand_page(binding->below[q]);
		if (whole)
			set_bit(&page->whole, own);
		others = set_bit(&page->word, own);
	}
	return others & ~own;
}

/* Lower levels remember for seconds that somebody needed SMs, so these bits must never lag behind.
 */
static void set_places(const struct client *client, const struct level_binding *binding, bool whole)
{
	uint64_t own = 1ull << binding->bit % 64;
	bool places = !whole && !(sms_needed(client) & SMS_OWN);

	for (unsigned q = 0; binding->bit != WEIR_BIT_SHARED && q < binding->level; q++) {
		struct weir_demand_page *page = demand_page(binding->below[q]);
		if (places)
			set_bit(&page->places, own);
		else
			clear_bit(&page->places, own);
	}
}

void sms_withdraw_if_left(struct client *client, const struct level_binding *binding)
{
	if (binding_flag(binding, WEIR_CONTROL_LEAVES) &&
	    atomic_load(&status_page(binding)->demand_sms))
		sms_publish(client);
}

bool pages_say_too_much(const struct client *client, const struct level_binding *binding)
{
	uint64_t own = 1ull << binding->bit % 64, whole = 0;

	if (binding->bit == WEIR_BIT_SHARED || sms_are_whole(client) ||
	    binding_flag(binding, WEIR_CONTROL_LEAVES))
		return false;
	for (unsigned q = 0; q < binding->level; q++)
		whole |= load_relaxed(&demand_page(binding->below[q])->whole);
	return whole & own;
}

/* While the client leaves the GPU to others, the agent takes its bit away, and gives it back.
 *
 * The SMs stand in the pages before the bit does, and until `whole` takes their place. */
bool pages_set(struct client *client, const struct level_binding *binding)
{
	bool whole = sms_are_whole(client);

	set_places(client, binding, whole);
	if (binding_flag(binding, WEIR_CONTROL_LEAVES))
		return false;
	if (!whole)
		sms_publish(client);
	bool first =
		binding->bit != WEIR_BIT_SHARED && !pages_set_below(binding, binding->level, whole);
	if (whole)
		sms_publish(client);
	return first;
}

void pages_clear(const struct level_binding *binding, const struct level_binding *kept)
{
	unsigned level = 0;

	if (binding->bit == WEIR_BIT_SHARED)
		return;
	for (; level < binding->level; level++) {
		struct page *page = binding->below[level];
		if (kept && kept->bit == binding->bit && level < kept->level &&
		    kept->below[level] == page)
			continue;
		atomic_fetch_and(&demand_page(page)->word, ~(1ull << binding->bit));
		clear_bit(&demand_page(page)->whole, 1ull << binding->bit);
	}
}

void pages_withdraw(struct client *client, const struct level_binding *binding, uint64_t gap)
{
	pages_clear(binding, NULL);
	sms_clear(client, gap);
}

void pages_take_from(const struct level_binding *binding, unsigned from)
{
	uint64_t own = 1ull << binding->bit % 64;

	for (; from < binding->level; from++) {
		clear_bit(&demand_page(binding->below[from])->word, own);
		clear_bit(&demand_page(binding->below[from])->whole, own);
	}
}

void pages_unset_whole(const struct level_binding *binding)
{
	for (unsigned q = 0; q < binding->level; q++)
		clear_bit(&demand_page(binding->below[q])->whole, 1ull << binding->bit % 64);
}
