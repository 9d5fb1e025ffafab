#include "weirctl/table.h"

#include <string.h>

#include "config/config.h"

#include "weir/base.h"

#define CELL 160 /* with its NUL; longer texts are cut */

#define BOTH (1u << TABLE_STATUS | 1u << TABLE_TOP)
#define SUMS (1u << TABLE_STATUS)
#define RATE (1u << TABLE_TOP)

enum kind { TEXT, POD, CONTAINER, REASON, LEVEL, COUNT, SECONDS, PERCENT, MEBIBYTES };

static const struct {
	const char *title;
	unsigned views;
	enum kind kind;
	const char *key; /* in a client of the answer */
} columns[] = {
	{"CLIENT", BOTH, COUNT, "client"},
	{"POD", BOTH, POD, "pod"},
	{"CONTAINER", BOTH, CONTAINER, "container"},
	{"PID", BOTH, COUNT, "pid"},
	{"LEVEL", BOTH, LEVEL, "level"},
	{"ACTING", SUMS, LEVEL, "actingLevel"},
	{"SHARE", BOTH, COUNT, "share"},
	{"MEMORY", SUMS, MEBIBYTES, "memoryReserved"},
	{"LIMIT", SUMS, MEBIBYTES, "memoryLimit"},
	{"STATE", BOTH, TEXT, "state"},
	{"GPU TIME", SUMS, SECONDS, "gpuSeconds"},
	{"LAUNCHES", SUMS, COUNT, "launches"},
	{"WAITS", SUMS, COUNT, "waits"},
	{"WAITED", SUMS, SECONDS, "waitSeconds"},
	{"EVICTIONS", SUMS, COUNT, "evictions"},
	{"GPU %", RATE, PERCENT, "gpuShare"},
	{"WAIT %", RATE, PERCENT, "waitShare"},
	{"LAUNCHES/S", RATE, COUNT, "launchRate"},
	{"LIMIT %", BOTH, COUNT, "computeLimit"},
	{"MIN RATE %", BOTH, PERCENT, "minRate"},
	{"HAS %", BOTH, PERCENT, "minRateAttained"},
	{"SMS", RATE, COUNT, "smsNeeded"},
	{"SMS LEFT", RATE, COUNT, "smsLeft"},
	{"WORKERS", RATE, COUNT, "workers"},
	{"LOOP", BOTH, TEXT, "loop"},
	{"GPU", BOTH, TEXT, "gpu"},
	{"REASON", SUMS, REASON, "reason"},
};

#define COLUMNS countof(columns)

struct row {
	char cell[COLUMNS][CELL];
};

static const char *text_of(const cJSON *client, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(client, name));

	return text ? text : "";
}

static void put_number(char *cell, enum kind kind, double number)
{
	if (kind == SECONDS)
		snprintf(cell, CELL, "%.3f s", number);
	else if (kind == PERCENT)
		snprintf(cell, CELL, "%.1f", 100 * number);
	else if (kind == MEBIBYTES)
		snprintf(cell, CELL, "%.0f MiB", number / (1 << 20));
	else if (kind == LEVEL)
		snprintf(cell, CELL, "%s",
			 number >= 0 && number < 4 ? config_level_name((unsigned)number) : "");
	else
		snprintf(cell, CELL, "%.0f", number);
}

/* A process in no pod is named by its user and its command. */
static void put_text(char *cell, enum kind kind, const char *key, const cJSON *client)
{
	const char *namespace_ = text_of(client, "namespace");
	bool in_pod = *text_of(client, "pod");

	if (kind == POD && in_pod)
		snprintf(cell, CELL, "%s%s%s", namespace_, *namespace_ ? "/" : "",
			 text_of(client, key));
	else if (kind == POD)
		snprintf(cell, CELL, "uid %.0f",
			 cJSON_GetNumberValue(cJSON_GetObjectItem(client, "uid")));
	else
		snprintf(cell, CELL, "%s",
			 text_of(client, kind == CONTAINER && !in_pod ? "command" : key));
}

/* Why it has its level, and which other annotations do not hold. */
static void put_reason(char *cell, const cJSON *client)
{
	int at = snprintf(cell, CELL, "%s", text_of(client, "reason"));
	const cJSON *problem;

	cJSON_ArrayForEach(problem, cJSON_GetObjectItem(client, "problems"))
	{
		const char *subject = text_of(problem, "subject");
		if (at < CELL && !strstr(subject, "/priority"))
			at += snprintf(cell + at, (size_t)(CELL - at), "; %s %s", subject,
				       text_of(problem, "problem"));
	}
}

/* The same, and what it does not get. */
static void put_reasons(char *cell, const cJSON *client)
{
	const char *why = text_of(client, "minRateWhy");
	size_t at;

	put_reason(cell, client);
	at = strlen(cell);
	if (*why)
		snprintf(cell + at, CELL - at, "; min-rate missed: %s", why);
}

/* The terminal must see no control characters. */
static void make_printable(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static void fill_row(struct row *row, const cJSON *client)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		const cJSON *item = cJSON_GetObjectItem(client, columns[i].key);
		char *cell = row->cell[i];
		if (columns[i].kind == REASON)
			put_reasons(cell, client);
		else if (columns[i].kind <= CONTAINER)
			put_text(cell, columns[i].kind, columns[i].key, client);
		else if (cJSON_IsNumber(item))
			put_number(cell, columns[i].kind, item->valuedouble);
		if (!*cell)
			snprintf(cell, CELL, "-");
		make_printable(cell);
	}
}

static void print_row(FILE *out, const struct row *row, const int *widths, enum table_view view)
{
	const char *between = "";

	for (size_t i = 0; i < COLUMNS; i++) {
		int width = columns[i].kind > LEVEL ? widths[i] : -widths[i];
		if (!(columns[i].views & 1u << view))
			continue;
		if (i == COLUMNS - 1 || (view == TABLE_TOP && i == COLUMNS - 2))
			width = 0;
		fprintf(out, "%s%*s", between, width, row->cell[i]);
		between = "  ";
	}
	fputc('\n', out);
}

/* Also those without a client. */
static void print_problems(FILE *out, const cJSON *status)
{
	const cJSON *pod, *problem;
	char line[1024];

	cJSON_ArrayForEach(pod, cJSON_GetObjectItem(status, "pods"))
	{
		cJSON_ArrayForEach(problem, cJSON_GetObjectItem(pod, "problems"))
		{
			snprintf(line, sizeof(line), "pod %s/%s: %s %s", text_of(pod, "namespace"),
				 text_of(pod, "pod"), text_of(problem, "subject"),
				 text_of(problem, "message"));
			make_printable(line);
			fprintf(out, "%s\n", line);
		}
	}
}

static void print_mistake(FILE *out, const cJSON *status)
{
	char line[1024];

	if (!cJSON_HasObjectItem(status, "configMistake"))
		return;
	snprintf(line, sizeof(line), "%s; the configuration from before stays in force",
		 text_of(status, "configMistake"));
	make_printable(line);
	fprintf(out, "%s\n", line);
}

void table_print(FILE *out, const cJSON *status, enum table_view view)
{
	const cJSON *clients = cJSON_GetObjectItem(status, "clients"), *client;
	int n = cJSON_GetArraySize(clients) + 1, at = 1, widths[COLUMNS] = {0};
	cleanup(freep) struct row *rows = calloc((size_t)n, sizeof(*rows));

	if (!rows)
		return;
	for (size_t i = 0; i < COLUMNS; i++)
		snprintf(rows[0].cell[i], CELL, "%s", columns[i].title);
	for (client = cJSON_GetArrayItem(clients, 0); client; client = client->next)
		fill_row(&rows[at++], client);
	for (int row = 0; row < n; row++) {
		for (size_t i = 0; i < COLUMNS; i++) {
			int width = (int)strlen(rows[row].cell[i]);
			if (width > widths[i])
				widths[i] = width;
		}
	}
	for (int row = 0; row < n; row++)
		print_row(out, &rows[row], widths, view);
	if (n == 1)
		fputs("no clients\n", out);
	if (view != TABLE_STATUS)
		return;
	print_problems(out, status);
	print_mistake(out, status);
}
