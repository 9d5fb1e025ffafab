#include "preempt/launch-queue.h"

#include "shim/connect.h"
#include "shim/driver.h"

#include "weir/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "CUDA_SCALE_LAUNCH_QUEUES"
#define LONGEST  "4x"
#define FOLLOWS  12060 /* cuDriverGetVersion() of a driver that is known to follow it */

static unsigned quarters = 4; /* of the usual length */

/* Not by setenv(): it may free the list of variables while another thread reads it. The old list
 * stays as it is, and nobody frees the new one. Without memory there is no variable. */
static void set_variable(void)
{
	static char setting[] = VARIABLE "=" LONGEST;
	static char **list;
	size_t n = 0;

	while (environ && environ[n])
		n++;
	list = calloc(n + 2, sizeof(*list));
	if (!list)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = environ[i];
	list[n] = setting;
	__atomic_store_n(&environ, list, __ATOMIC_RELEASE);
}

void launch_queue_lengthen(void)
{
	int version = 0;

	if (access(connect_path(), F_OK) == 0 &&
	    real(cuDriverGetVersion)(&version) == CUDA_SUCCESS && version >= FOLLOWS &&
	    !getenv(VARIABLE))
		set_variable();
}

/* As the driver reads it. Other values are the usual length, for the driver, too. */
void launch_queue_settings(void)
{
	static const struct {
		const char *scale;
		unsigned quarters;
	} queues[] = {{"0.25x", 1}, {"0.5x", 2}, {"2x", 8}, {LONGEST, 16}};
	const char *scale = getenv(VARIABLE);

	quarters = 4;
	for (size_t i = 0; scale && i < countof(queues); i++) {
		if (strcmp(scale, queues[i].scale) == 0)
			quarters = queues[i].quarters;
	}
}

uint32_t launch_queue_of(uint32_t usual)
{
	return usual * quarters / 4;
}
