#include "gates/copies.h"

#include "gates/demand.h"

#include <string.h>

static bool speculation_off;

void copies_settings(void)
{
	const char *setting = getenv("WEIR_EARLY");

	speculation_off = setting && strcmp(setting, "off") == 0;
}

/* A copy to the GPU begins. */
static void speculate(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	struct speculation *speculation = &demand_of(client)->speculation;
	uint64_t now, none = 0;

	if (speculation_off || !binding || !binding->level ||
	    atomic_load(&demand_of(client)->shown))
		return;
	now = client_now();
	if (!atomic_compare_exchange_strong(&speculation->since, &none, now) ||
	    !speculation_pays(speculation))
		return;
	uint64_t lead = atomic_load(&speculation->lead);
	if (!demand_speculate(client, binding, now, 2 * lead))
		atomic_store(&speculation->since, 0);
}

static void copy_begins(void)
{
	struct client *client = driver_ready() ? client_here() : NULL;

	driver_waits();
	if (client)
		speculate(client);
}

#define COPY(name, parameters, arguments)    \
	EXPORT CUresult name parameters      \
	{                                    \
		copy_begins();               \
		return real(name) arguments; \
	}
#define TO_GPU       (CUdeviceptr to, const void *from, size_t size)
#define TO_GPU_ASYNC (CUdeviceptr to, const void *from, size_t size, CUstream stream)
COPY(cuMemcpyHtoD_v2, TO_GPU, (to, from, size))
COPY(cuMemcpyHtoD_v2_ptds, TO_GPU, (to, from, size))
COPY(cuMemcpyHtoDAsync_v2, TO_GPU_ASYNC, (to, from, size, stream))
COPY(cuMemcpyHtoDAsync_v2_ptsz, TO_GPU_ASYNC, (to, from, size, stream))
