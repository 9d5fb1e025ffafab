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

void launch_queue_lengthen(void)
{
	int version = 0;

	if (access(connect_path(), F_OK) == 0 &&
	    real(cuDriverGetVersion)(&version) == CUDA_SUCCESS && version >= FOLLOWS)
		setenv(VARIABLE, LONGEST, 0);
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
