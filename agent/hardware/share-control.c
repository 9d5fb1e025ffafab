#include "hardware/share-control.h"

#include <limits.h>

#include "weir/base.h"

#define FACTOR_MIN   (SHARE_ONE / SHARE_BOUND)
#define FACTOR_MAX   (SHARE_ONE * SHARE_BOUND)
#define ALONE_MIN    100000000ull  /* ns alone, to be compared */
#define ALONE_MAX    2000000000ull /* older times count less */
#define SATURATED(t) ((t) / 20 * 19)
#define POSSIBLE(t)  ((t) / 10 * 11)
#define STEP_MAX     (1ull << 48) /* ns; a page may say anything */

static uint64_t step(uint64_t *counter, uint64_t now)
{
	uint64_t more = now > *counter ? now - *counter : 0;

	*counter = now;
	return more <= STEP_MAX ? more : 0;
}

void share_read(struct share_client *client, uint64_t executed, uint64_t demand_time)
{
	uint64_t ran = step(&client->executed, executed);
	uint64_t worked = step(&client->demand_time, demand_time);

	if (client->known) {
		client->got += ran;
		client->worked += worked;
	}
	client->known = true;
}

/* In terms of the clock. */
static uint64_t got(const struct share_client *client)
{
	uint64_t reported = client->alone.reported, by_clock = client->alone.by_clock;

	if (by_clock < ALONE_MIN || !reported)
		return client->got;
	by_clock = smaller(larger(by_clock, reported / 4 * 3), reported / 4 * 5);
	return (uint64_t)((unsigned __int128)client->got * by_clock / reported);
}

static void learn_alone(struct share_client *client)
{
	client->alone.reported += client->got;
	client->alone.by_clock += client->worked;
	if (client->alone.by_clock < ALONE_MAX)
		return;
	client->alone.reported /= 2;
	client->alone.by_clock /= 2;
}

static bool counts(const struct share_client *client, uint64_t window)
{
	return !client->apart && client->worked >= SATURATED(window);
}

/* Of the clients that could have used more. */
struct sums {
	unsigned n, n_worked, n_silent;
	uint64_t got, all, weights; /* `all`: of all clients */
};

static struct sums add_up(const struct share_client *clients, uint64_t window)
{
	struct sums sums = {0};

	for (const struct share_client *client = clients; client; client = client->next) {
		sums.all += got(client);
		sums.n_worked += client->worked || client->got;
		if (!counts(client, window))
			continue;
		sums.n++;
		sums.n_silent += !client->got;
		sums.got += got(client);
		sums.weights += client->weight;
	}
	return sums;
}

static void set_factor(struct share_client *client, int64_t factor)
{
	factor = factor > (int64_t)FACTOR_MAX ? (int64_t)FACTOR_MAX : factor;
	client->factor = factor < (int64_t)FACTOR_MIN ? FACTOR_MIN : (uint32_t)factor;
}

static void return_to_one(struct share_client *client)
{
	int64_t factor = client->factor;

	set_factor(client, factor + ((int64_t)SHARE_ONE - factor) / SHARE_FADE);
}

/* The difference relative to the larger of both is no larger than one, whatever they are. Rounds to
 * the nearest, so that no factor drifts. */
static void correct(struct share_client *client, const struct sums *sums)
{
	double wanted = (double)client->weight / (double)sums->weights;
	double part = (double)got(client) / (double)sums->got;
	double off = (wanted - part) / (wanted > part ? wanted : part);

	set_factor(client, (int64_t)((double)client->factor * (1 + off / SHARE_GAIN) + 0.5));
}

/* Only their ratio counts: their mean by weight becomes one. */
static void normalise(struct share_client *clients, uint64_t window, const struct sums *sums)
{
	uint64_t sum = 0;

	for (const struct share_client *client = clients; client; client = client->next)
		if (counts(client, window))
			sum += client->weight * client->factor;
	uint64_t mean = larger(sum / sums->weights, 1);
	for (struct share_client *client = clients; client; client = client->next)
		if (counts(client, window))
			set_factor(client,
				   (int64_t)((client->factor * SHARE_ONE + mean / 2) / mean));
}

static void judge(struct share_client *clients, uint64_t window, const struct sums *sums)
{
	bool believed = sums->all <= POSSIBLE(window);

	for (struct share_client *client = clients; client; client = client->next) {
		bool idle = !client->worked && !client->got;
		if (sums->n_worked == 1)
			learn_alone(client);
		else if (!idle && (!believed || !counts(client, window)))
			return_to_one(client);
		else if (!idle && sums->n > 1)
			correct(client, sums);
	}
	if (believed && sums->n > 1 && sums->n_worked > 1)
		normalise(clients, window, sums);
}

static void begin(struct share_control *control, struct share_client *clients, uint64_t now)
{
	*control = (struct share_control){.begun = now};
	for (struct share_client *client = clients; client; client = client->next)
		client->got = client->worked = 0;
}

unsigned share_control(struct share_control *control, struct share_client *clients, uint64_t now)
{
	uint64_t window = now - control->begun;

	for (struct share_client *client = clients; client; client = client->next)
		client->factor = client->factor ? client->factor : SHARE_ONE;
	if (!control->begun || now <= control->begun) {
		begin(control, clients, now);
		return 2; /* not known yet */
	}
	if (window < SHARE_WINDOW_NS * (control->n_windows + 1))
		return UINT_MAX;
	struct sums sums = add_up(clients, window);
	if (sums.n > 1 && sums.n_silent && ++control->n_windows < SHARE_WINDOWS)
		return UINT_MAX;
	/* Nobody looked for long: whoever worked then may not have worked at the same time. */
	bool slept = window > 2 * SHARE_WINDOWS * SHARE_WINDOW_NS;
	if (!sums.n_silent && (!slept || sums.n_worked == 1))
		judge(clients, window, &sums);
	for (struct share_client *client = clients; client; client = client->next)
		client->idle = !client->worked && !client->got;
	begin(control, clients, now);
	return sums.n_worked;
}
