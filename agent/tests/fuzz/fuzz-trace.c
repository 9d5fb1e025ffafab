/* Reads any text as a trace: it is refused with its place, or all values are in range. */
#include "scheduler/trace.h"

#include <stdlib.h>
#include <string.h>

#include "weir/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct trace *trace)
{
	for (size_t i = 0; i < trace->n_clients; i++) {
		const struct trace_client *client = &trace->clients[i];
		if (!*client->name || !memchr(client->name, '\0', sizeof(client->name)) ||
		    client->level >= WEIR_LEVELS || client->share < 1 || client->share > 100 ||
		    client->work == 0 || (client->always && client->every) ||
		    client->fit > WEIR_SM_WORKERS || client->memory > 1000)
			abort();
	}
	for (size_t i = 0; i < trace->n_work; i++)
		if (trace->work[i].client >= trace->n_clients || trace->work[i].length == 0 ||
		    (i > 0 && trace->work[i].at < trace->work[i - 1].at))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char message[256] = "";
	struct trace trace;
	FILE *in = size ? fmemopen((void *)data, size, "r") : NULL;

	if (!in)
		return 0;
	if (trace_read(&trace, in, "trace", message, sizeof(message)) == 0) {
		check(&trace);
		trace_deinit(&trace);
	} else if (strncmp(message, "trace:", 6) != 0) {
		abort();
	}
	fclose(in);
	return 0;
}
