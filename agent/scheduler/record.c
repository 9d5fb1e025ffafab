#include "scheduler/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/client.h"
#include "scheduler/gpu.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/error.h"

static void name_client(struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const char *who = *tenant->pod ? tenant->pod : client->command;

	snprintf(client->recorded, sizeof(client->recorded), "%.40s.%llu", who,
		 (unsigned long long)client->number);
	trace_name(client->recorded);
}

int record_begin(struct record *record, const struct gpu *gpu, uint64_t now)
{
	if (record->gpu)
		return -EBUSY;
	*record = (struct record){.begun = now, .last = now};
	record->out = open_memstream(&record->text, &record->size);
	if (!record->out)
		return error_origin(-ENOMEM);
	record->gpu = gpu;
	fprintf(record->out, "# recorded on %s\n", gpu->id);
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		record_client(record, client);
	return 0;
}

static void note_size(struct record *record)
{
	record->full |= ftell(record->out) > (long)RECORD_MAX;
}

void record_client(struct record *record, struct client *client)
{
	struct trace_client traits = {.level = client->level,
				      .share = client->tenant->share,
				      .slo = client->tenant->slo,
				      .evict = client->entry.cost};

	if (!record->gpu || client->gpu != record->gpu || record->full)
		return;
	name_client(client);
	memcpy(traits.name, client->recorded, sizeof(traits.name));
	trace_write_client(record->out, &traits);
	note_size(record);
	record->full |= ++record->n_clients == TRACE_CLIENTS_MAX;
}

void record_work(struct record *record, const struct client *client, uint64_t ns, uint64_t now)
{
	if (!record->gpu || client->gpu != record->gpu || ns == 0 || record->full)
		return;
	trace_write_work(record->out, now - record->begun, client->recorded, ns);
	record->last = now;
	note_size(record);
}

char *record_end(struct record *record, uint64_t now)
{
	if (!record->gpu)
		return NULL;
	if (record->full)
		fputs("# too much to record: it ends here\n", record->out);
	trace_write_end(record->out, (record->full ? record->last : now) - record->begun);
	record->gpu = NULL;
	bool failed = ferror(record->out) != 0;
	if (fclose(record->out) != 0 || failed)
		free(take(record->text));
	return take(record->text);
}
