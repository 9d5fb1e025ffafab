#include "scheduler/record.h"

#include <errno.h>
#include <string.h>

#include "policy/account.h"

#include "weir/base.h"
#include "weir/error.h"

int record_begin(struct record *record, const struct gpu *gpu, const char *id, uint64_t now)
{
	if (record->gpu)
		return -EBUSY;
	*record = (struct record){.begun = now, .last = now};
	record->out = open_memstream(&record->text, &record->size);
	if (!record->out)
		return error_origin(-ENOMEM);
	record->gpu = gpu;
	fprintf(record->out, "# recorded on %s\n", id);
	return 0;
}

static void note_size(struct record *record)
{
	record->full |= ftell(record->out) > (long)RECORD_MAX;
}

void record_add(struct record *record, struct record_client *client, struct trace_client *traits)
{
	if (record->full)
		return;
	trace_name(traits->name);
	memcpy(client->name, traits->name, sizeof(client->name));
	trace_write_client(record->out, traits);
	note_size(record);
	record->full |= ++record->n_clients == TRACE_CLIENTS_MAX;
}

void record_launches(struct record *record, struct record_client *client, uint64_t gpu_time,
		     uint64_t now)
{
	uint64_t before = client->gpu_time;

	client->gpu_time = gpu_time;
	if (record->full || gpu_time <= before || gpu_time - before > ACCOUNT_STEP_MAX)
		return;
	trace_write_work(record->out, now - record->begun, client->name, gpu_time - before);
	record->last = now;
	note_size(record);
}

char *record_end(struct record *record, uint64_t now)
{
	if (!record->gpu)
		return NULL;
	if (record->full)
		fputs("# the limit of a recording is reached: it ends here\n", record->out);
	trace_write_end(record->out, (record->full ? record->last : now) - record->begun);
	record->gpu = NULL;
	bool failed = ferror(record->out) != 0;
	if (fclose(record->out) != 0 || failed)
		free(take(record->text));
	return take(record->text);
}
