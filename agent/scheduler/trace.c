#include "scheduler/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "config/config.h"
#include "common/hash.h"
#include "policy/min-rate.h"
#include "policy/yield.h"
#include "weir/protocol.h"
#include "weir/units.h"

#include "weir/base.h"

#define BLANKS " \t\r\n"

struct name {
	char text[TRACE_NAME_MAX];
	uint32_t client;
	UT_hash_handle hh;
};

struct reader {
	struct trace trace;
	struct name *names; /* hash */
	const char *file;
	unsigned line;
	char *message;
	size_t message_size;
	char *at; /* the rest of the line, for strtok_r() */
};

static int __attribute__((format(printf, 2, 3)))
fail(struct reader *reader, const char *format, ...)
{
	char text[160];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	snprintf(reader->message, reader->message_size, "%s:%u: %s", reader->file, reader->line,
		 text);
	return -EINVAL;
}

static bool good_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("._/-", c));
}

static bool good_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if (!good_name_char(name[i]))
			return false;
	return n > 0 && n < TRACE_NAME_MAX;
}

void trace_name(char *name)
{
	for (; *name; name++)
		if (!good_name_char(*name))
			*name = '_';
}

/* The next word of the line. @what: for the message. */
static char *word(struct reader *reader, const char *what)
{
	char *text = strtok_r(NULL, BLANKS, &reader->at);

	if (!text)
		fail(reader, "expected %s at the end of the line", what);
	return text;
}

static int read_time(struct reader *reader, const char *text, uint64_t *out)
{
	return duration_parse(text, 0, DURATION_MAX, out)
		       ? 0
		       : fail(reader, "expected a duration like 250us or 1.5s, not `%.40s`", text);
}

static int read_evict(struct reader *reader, const char *text, uint64_t *out)
{
	if (strcmp(text, "never") == 0)
		*out = TRACE_NEVER;
	else if (!duration_parse(text, 0, DURATION_MAX, out))
		return fail(reader, "expected a duration like 5ms or never, not `%.40s`", text);
	return 0;
}

static int read_yield(struct reader *reader, const char *text, uint32_t *out)
{
	return yield_parse(text, out)
		       ? 0
		       : fail(reader, "expected %s, not `%.40s`", YIELD_EXPECTED, text);
}

/* In thousandths. */
static int read_part(struct reader *reader, const char *text, uint32_t *out)
{
	return min_rate_parse(text, out)
		       ? 0
		       : fail(reader, "expected %s, not `%.40s`", MIN_RATE_EXPECTED, text);
}

static int read_number(struct reader *reader, const char *text, uint32_t max, uint32_t *out)
{
	uint64_t value;

	if (!number_parse(text, 1, max, &value))
		return fail(reader, "expected a number from 1 to %u, not `%.40s`", max, text);
	*out = (uint32_t)value;
	return 0;
}

/* Makes room for one more than @n. The room is 64, or a power of two. */
static int grow(void *entries, size_t n, size_t size)
{
	if (n && (n < 64 || n & (n - 1)))
		return 0;
	void *more = realloc(*(void **)entries, (n ? 2 * n : 64) * size);
	if (!more)
		return -ENOMEM;
	*(void **)entries = more;
	return 0;
}

static int add_client(struct reader *reader, const struct trace_client *client)
{
	struct trace *trace = &reader->trace;
	struct name *name;

	if (trace->n_clients == TRACE_CLIENTS_MAX)
		return fail(reader, "expected at most %u clients", TRACE_CLIENTS_MAX);
	HASH_FIND_STR(reader->names, client->name, name);
	if (name)
		return fail(reader, "client `%s` is defined twice", client->name);
	int r = grow(&trace->clients, trace->n_clients, sizeof(*client));
	if (r < 0 || !(name = calloc(1, sizeof(*name))))
		return -ENOMEM;
	memcpy(name->text, client->name, sizeof(name->text));
	name->client = (uint32_t)trace->n_clients;
	HASH_ADD_STR(reader->names, text, name);
	trace->clients[trace->n_clients++] = *client;
	return 0;
}

static int add_copies(struct reader *reader, const struct trace_client *client, uint32_t copies)
{
	struct trace_client copy = *client;
	int r = 0;

	for (uint32_t i = 0; i < copies && r == 0; i++) {
		int n = snprintf(copy.name, sizeof(copy.name), "%.*s.%u", TRACE_NAME_MAX - 1,
				 client->name, i);
		r = n >= TRACE_NAME_MAX ? fail(reader, "the name `%s` is too long", client->name)
					: add_client(reader, &copy);
	}
	return r;
}

static const struct {
	const char *name;
	uint32_t max;
	size_t offset;
} numbers[] = {
	{"share", 100, offsetof(struct trace_client, share)},
	{"sms", UINT16_MAX, offsetof(struct trace_client, sms)},
	{"fit", WEIR_SM_WORKERS, offsetof(struct trace_client, fit)},
	{"needs", WEIR_SM_WORKERS, offsetof(struct trace_client, needs)},
};

static const struct {
	const char *name;
	size_t offset;
} parts[] = {
	{"min-rate", offsetof(struct trace_client, min_rate)},
	{"arithmetic", offsetof(struct trace_client, arithmetic)},
	{"memory", offsetof(struct trace_client, memory)},
};

static const struct {
	const char *name;
	size_t offset;
} times[] = {
	{"slo", offsetof(struct trace_client, slo)},
	{"every", offsetof(struct trace_client, every)},
	{"work", offsetof(struct trace_client, work)},
	{"launch", offsetof(struct trace_client, launch)},
	{"overlap", offsetof(struct trace_client, overlap)},
};

static int read_option(struct reader *reader, char *option, struct trace_client *client,
		       uint32_t *copies)
{
	char *value = strchr(option, '=');

	if (strcmp(option, "always") == 0) {
		client->always = true;
		return 0;
	}
	if (!value)
		return fail(reader, "unknown option `%.40s`", option);
	*value++ = '\0';
	if (strcmp(option, "copies") == 0)
		return read_number(reader, value, TRACE_CLIENTS_MAX, copies);
	if (strcmp(option, "yield") == 0)
		return read_yield(reader, value, &client->yield);
	if (strcmp(option, "evict") == 0)
		return read_evict(reader, value, &client->evict);
	for (size_t i = 0; i < countof(numbers); i++)
		if (strcmp(option, numbers[i].name) == 0)
			return read_number(reader, value, numbers[i].max,
					   (uint32_t *)((char *)client + numbers[i].offset));
	for (size_t i = 0; i < countof(parts); i++)
		if (strcmp(option, parts[i].name) == 0)
			return read_part(reader, value,
					 (uint32_t *)((char *)client + parts[i].offset));
	for (size_t i = 0; i < countof(times); i++)
		if (strcmp(option, times[i].name) == 0)
			return read_time(reader, value,
					 (uint64_t *)((char *)client + times[i].offset));
	if (strcmp(option, "level") != 0)
		return fail(reader, "unknown option `%.40s`", option);
	return config_level_parse(value, &client->level)
		       ? 0
		       : fail(reader, "expected low, normal, high or critical, not `%.40s`", value);
}

static int read_client(struct reader *reader)
{
	struct trace_client client = {.share = 100, .work = 5 * NS_PER_MS, .yield = YIELD_AUTO};
	const char *name = word(reader, "a client's name");
	uint32_t copies = 0;
	char *option;
	int r = 0;

	if (!name)
		return -EINVAL;
	if (!good_name(name))
		return fail(reader, "expected a name of letters, digits and ._/-, not `%.40s`",
			    name);
	memcpy(client.name, name, strlen(name) + 1);
	while (r == 0 && (option = strtok_r(NULL, BLANKS, &reader->at)))
		r = read_option(reader, option, &client, &copies);
	if (r < 0)
		return r;
	if (client.work == 0)
		return fail(reader, "expected more than no work");
	if (client.always && client.every)
		return fail(reader, "expected either `always` or `every`");
	return copies ? add_copies(reader, &client, copies) : add_client(reader, &client);
}

static int read_work(struct reader *reader)
{
	struct trace *trace = &reader->trace;
	const char *at = word(reader, "a time");
	const char *client = at ? word(reader, "a client's name") : NULL;
	const char *length = client ? word(reader, "a duration") : NULL;
	struct trace_work work = {0};
	struct name *name = NULL;

	if (!length || read_time(reader, at, &work.at) < 0 ||
	    read_time(reader, length, &work.length) < 0)
		return -EINVAL;
	if (work.length == 0)
		return fail(reader, "expected more than no work");
	HASH_FIND_STR(reader->names, client, name);
	if (!name)
		return fail(reader, "no client `%.63s` above", client);
	if (trace->n_work == TRACE_WORK_MAX)
		return fail(reader, "expected at most %u lines of work", TRACE_WORK_MAX);
	work.client = name->client;
	int r = grow(&trace->work, trace->n_work, sizeof(work));
	if (r == 0)
		trace->work[trace->n_work++] = work;
	return r;
}

static int read_end(struct reader *reader)
{
	const char *at = word(reader, "a time");

	return at ? read_time(reader, at, &reader->trace.end) : -EINVAL;
}

static const struct {
	const char *name;
	int (*read)(struct reader *reader);
} statements[] = {
	{"client", read_client},
	{"work", read_work},
	{"end", read_end},
};

static int read_line(struct reader *reader, char *line)
{
	line[strcspn(line, "#")] = '\0';
	const char *first = strtok_r(line, BLANKS, &reader->at);

	for (size_t i = 0; first && i < countof(statements); i++) {
		if (strcmp(first, statements[i].name) != 0)
			continue;
		int r = statements[i].read(reader);
		const char *more = r < 0 ? NULL : strtok_r(NULL, BLANKS, &reader->at);
		return more ? fail(reader, "expected nothing more, not `%.40s`", more) : r;
	}
	return first ? fail(reader, "expected client, work or end, not `%.40s`", first) : 0;
}

static int by_time(const void *left, const void *right)
{
	const struct trace_work *a = left, *b = right;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->client < b->client ? -1 : a->client > b->client;
}

int trace_read(struct trace *out, FILE *in, const char *name, char *message, size_t message_size)
{
	struct reader reader = {.file = name, .message = message, .message_size = message_size};
	cleanup(freep) char *line = NULL;
	size_t size = 0;
	int r = 0;

	while (r == 0 && getline(&line, &size, in) >= 0) {
		reader.line++;
		r = read_line(&reader, line);
	}
	hash_release(reader.names, free);
	if (r == 0 && ferror(in)) {
		snprintf(message, message_size, "%s: %s", name, strerror(EIO));
		r = -EIO;
	}
	if (r < 0) {
		trace_deinit(&reader.trace);
		return r;
	}
	if (reader.trace.n_work)
		qsort(reader.trace.work, reader.trace.n_work, sizeof(*reader.trace.work), by_time);
	*out = reader.trace;
	return 0;
}

void trace_deinit(struct trace *trace)
{
	free(trace->clients);
	free(trace->work);
	*trace = (struct trace){0};
}

void trace_write_client(FILE *out, const struct trace_client *client)
{
	fprintf(out, "client %s level=%s share=%u", client->name, config_level_name(client->level),
		client->share);
	if (client->slo)
		fprintf(out, " slo=%lluns", (unsigned long long)client->slo);
	if (client->evict)
		fprintf(out, " evict=%lluns", (unsigned long long)client->evict);
	fputc('\n', out);
}

void trace_write_work(FILE *out, uint64_t at, const char *name, uint64_t length)
{
	fprintf(out, "work %lluns %s %lluns\n", (unsigned long long)at, name,
		(unsigned long long)length);
}

void trace_write_end(FILE *out, uint64_t at)
{
	fprintf(out, "end %lluns\n", (unsigned long long)at);
}
