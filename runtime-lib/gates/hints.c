/* What programs tell by weir/weir.h. */
#include "client/level-binding.h"
#include "gates/demand.h"
#include "gates/expect.h"

#include <errno.h>

#define WEIR_LIBRARY
#include "weir/weir.h"

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
