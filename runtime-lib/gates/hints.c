/* What programs tell by weir/weir.h. */
#include "client/stream-level.h"
#include "client/worker.h"
#include "gates/demand.h"
#include "gates/expect.h"

#include <errno.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

static_assert(WEIR_LEVEL_CRITICAL == WEIR_LEVELS - 1, "levels of the protocol");

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

/* Without setting another context up. The default streams are those of the current one. */
static bool is_of(CUstream handle, const struct client *client)
{
	CUcontext context;

	return (uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD ||
	       (real(cuStreamGetCtx)(handle, &context) == CUDA_SUCCESS &&
		context == client->context);
}

/* What is launched in a stream of a lower level may wait. */
static bool is_lowered(const struct stream *stream, const struct level_binding *binding)
{
	return atomic_load(&stream->level) < binding->level;
}

EXPORT int weir_expect(CUstream handle, unsigned within_us)
{
	uint64_t ns = smaller(within_us, WEIR_EXPECT_MAX_US) * NS_PER_US;
	const struct level_binding *binding;
	struct client *client = here(&binding);

	if (!client)
		return -EAGAIN;
	if (!is_of(handle, client))
		return -EINVAL;
	struct stream *stream = stream_find(handle, false);
	if (!stream)
		return -EAGAIN;
	if (expect_way() != EXPECT_OFF && !is_lowered(stream, binding) &&
	    demand_expect(client, binding, ns))
		expect_begin(stream, binding, ns);
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
