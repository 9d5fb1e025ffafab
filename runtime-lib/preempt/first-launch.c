#include "preempt/first-launch.h"

#include "client/worker.h"
#include "preempt/forms.h"
#include "preempt/tuning.h"

#include "weir/log.h"

#include <time.h>

/* A form from the agent's cache is there within 10 ms, one that is compiled within 60 to 200. */
#define WAIT_MS    300
#define PERIOD     (200 * NS_PER_US)
#define SOON       (20 * NS_PER_US) /* where all is known the worker takes some tens of us */
#define SOON_TIMES 10
#define KNOWN      1024u

#define RUNS_AS_IT_IS "a kernel whose time is not known runs as it is, below others: "

enum { FIRST_NONE, FIRST_BEING_SET, FIRST_ASKED };

struct first_launch first_launch_table[CLIENTS_MAX];
uint64_t first_launch_wait_ns = WAIT_MS * NS_PER_MS;
uint64_t first_launch_altogether_ns = 5 * NS_PER_S;

static _Atomic uint64_t waited;       /* ns, by all threads */
static _Atomic uint64_t known[KNOWN]; /* keys of kernels that have waited; some are forgotten */

void first_launch_settings(void)
{
	const char *text = getenv("WEIR_FIRST_LAUNCH_MS");

	if (text)
		first_launch_wait_ns = smaller(strtoull(text, NULL, 10), 10000) * NS_PER_MS;
}

static _Atomic uint64_t *known_at(uint64_t key)
{
	return &known[(key * 0x9e3779b97f4a7c15u >> 32) % KNOWN];
}

/* The worker is asked about one launch at a time. */
static bool ask(struct first_launch *first, const struct sampled *of)
{
	int none = FIRST_NONE;

	if (!atomic_compare_exchange_strong(&first->state, &none, FIRST_BEING_SET))
		return false;
	first->of = *of;
	atomic_store(&first->state, FIRST_ASKED);
	worker_alarm();
	return true;
}

static void await(struct stream *stream, const struct sampled *of, first_launch_ready_fn *ready,
		  uint64_t until)
{
	const struct function *function =
		function_find(stream->client, (CUfunction)of->geometry.function);
	struct first_launch *first = first_launch_of(stream->client);
	struct timespec period = {.tv_nsec = SOON};
	bool asked = false;

	for (int n = 0; function && !function_is_hopeless(function) && !ready(stream, of); n++) {
		if (client_now() > until) {
			log_limited(LOG_INFO, 60, RUNS_AS_IT_IS "its forms were not ready in time");
			return;
		}
		asked = asked || ask(first, of);
		if (n == SOON_TIMES)
			period.tv_nsec = PERIOD;
		nanosleep(&period, NULL);
	}
}

void first_launch_await(struct stream *stream, const struct sampled *of,
			first_launch_ready_fn *ready)
{
	uint64_t begin = client_now();

	if (atomic_load(known_at(of->key)) == of->key || atomic_load(&capture_count))
		return;
	if (atomic_load(&waited) > first_launch_altogether_ns) {
		atomic_store(known_at(of->key), of->key);
		log_limited(LOG_INFO, 60,
			    RUNS_AS_IT_IS "the process has waited for forms for long enough");
		return;
	}
	forms_await(stream->client, true);
	await(stream, of, ready, begin + first_launch_wait_ns);
	forms_await(stream->client, false);
	atomic_store(known_at(of->key), of->key);
	atomic_fetch_add(&waited, client_now() - begin);
}

void first_launch_look(struct client *client, struct tick *tick)
{
	tick->awaited = forms_are_awaited(client);
	tick->forms |= tick->awaited;
}

void first_launch_drive(struct client *client, struct tick *tick)
{
	struct first_launch *first = first_launch_of(client);

	(void)tick;
	if (atomic_load(&first->state) != FIRST_ASKED)
		return;
	tuning_first(client, &first->of);
	atomic_store(&first->state, FIRST_NONE);
}
