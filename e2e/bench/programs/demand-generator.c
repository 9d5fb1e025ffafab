/* A client that shows demand at random moments, for random times, and does nothing with the GPU.
 * Clients of lower levels leave and come back all the time. Prints one line of JSON.
 */
#include <stdio.h>

#include <weir/base.h>

#include "agent-client.h"
#include "workload.h"

static uint64_t some_ns(struct random *random, uint64_t at_most_us)
{
	return random_below(random, (uint32_t)(at_most_us * 1000)) + 1;
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	uint64_t gap_us = 400, hold_us = 100, times = 0;
	const struct workload_option own[] = {
		{"gap-us", OPTION_NUMBER, &gap_us, "without demand, at most"},
		{"hold-us", OPTION_NUMBER, &hold_us, "with demand, at most"},
		{0},
	};
	struct agent_client client;

	workload_parse(&w, argc, argv, "wants the GPU at random moments", own);
	if (!gap_us || gap_us > 1000000 || !hold_us || hold_us > 1000000)
		workload_fail("--gap-us, --hold-us: 1 to a million");
	if (!(w.seconds > 0) && !w.stop_file)
		w.seconds = 1;
	CU(cuInit(0));
	CU(cuDeviceGet(&w.device, 0));
	agent_client_join(&client, w.device);
	if (!client.level || client.bit >= WEIR_BITS_OWN)
		workload_fail("level %u, bit %u: there is no lower level", client.level,
			      client.bit);
	struct random random = {w.seed};
	workload_ready(&w);
	for (; !workload_stopped(&w); times++) {
		sleep_until_ns(now_ns() + some_ns(&random, gap_us));
		agent_client_demand(&client, true);
		sleep_until_ns(now_ns() + some_ns(&random, hold_us));
		agent_client_demand(&client, false);
	}
	printf("{\"program\": \"demand-generator\", \"times\": %llu}\n", (unsigned long long)times);
	return 0;
}
