/* What programs tell by weir/weir.h. */
#include "client/stream-level.h"
#include "client/worker.h"
#include "gates/demand.h"
#include "gates/expect.h"

#include <errno.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

static_assert(WEIR_LEVEL_CRITICAL == WEIR_LEVELS - 1, "levels of the protocol");
static_assert(WEIR_EXPECT_MAX_US * NS_PER_US == EXPECT_MAX, "as programs are told");

/* The client of the current context, and its binding. NULL: not governed. */
static struct client *here(const struct level_binding **binding)
{
	struct client *client = driver_ready() ? client_here() : NULL;

	*binding = client ? load_acquire(&client->binding) : NULL;
	return *binding ? client : NULL;
}

EXPORT int weir_available(void)
{
	const struct level_binding *binding;

	return here(&binding) != NULL;
}

EXPORT int weir_expect(unsigned within_us)
{
	const struct level_binding *binding;
	struct client *client = here(&binding);

	if (!client)
		return -EAGAIN;
	if (expect_way() != EXPECT_OFF)
		demand_expect(client, binding, smaller(within_us * NS_PER_US, EXPECT_MAX));
	return 0;
}

static int set_level(struct stream *stream, uint8_t level)
{
	const struct level_binding *binding = load_acquire(&stream->client->binding);

	if (level != STREAM_LEVEL_OWN && binding && level > binding->level)
		return -EPERM;
	/* Gates of the lower level could be closed by what later launches show. */
	if (level > atomic_load(&stream->level) && stream_outstanding(stream))
		return -EBUSY;
	if (level < WEIR_DEMAND_LEVELS) {
		atomic_fetch_or(&streams_of(stream->client)->levels, 1u << level);
		atomic_store(&streams_have_levels, 1);
	}
	atomic_store(&stream->level, level);
	worker_wake();
	return 0;
}

EXPORT int weir_set_priority(CUstream handle, int level)
{
	if (level < WEIR_LEVEL_OWN || level > WEIR_LEVEL_CRITICAL)
		return -EINVAL;
	struct stream *stream = driver_ready() ? stream_find(handle, false) : NULL;
	if (!stream)
		return -EAGAIN;
	return set_level(stream, level == WEIR_LEVEL_OWN ? STREAM_LEVEL_OWN : (uint8_t)level);
}
