#include "weirctl/table.h"

#include <string.h>

#include "config/config.h"

#include "weir/base.h"

/* Widths adapt to what is in the cells, up to what fits a cell. */
#define CELL 64

enum column {
	CLIENT,
	POD,
	CONTAINER,
	PID,
	LEVEL,
	ACTING,
	SHARE,
	MEMORY,
	LIMIT,
	STATE,
	GPU_TIME,
	LAUNCHES,
	WAITS,
	WAITED,
	EVICTIONS,
	GPU_RATE,
	WAIT_RATE,
	LAUNCH_RATE,
	GPU,
	COLUMNS,
};

#define BOTH (1u << TABLE_STATUS | 1u << TABLE_TOP)

static const struct {
	const char *title;
	bool right;
	unsigned views;
} columns[COLUMNS] = {
	[CLIENT] = {"CLIENT", true, BOTH},
	[POD] = {"POD", false, BOTH},
	[CONTAINER] = {"CONTAINER", false, BOTH},
	[PID] = {"PID", true, BOTH},
	[LEVEL] = {"LEVEL", false, BOTH},
	[ACTING] = {"ACTING", false, 1u << TABLE_STATUS},
	[SHARE] = {"SHARE", true, BOTH},
	[MEMORY] = {"MEMORY", true, 1u << TABLE_STATUS},
	[LIMIT] = {"LIMIT", true, 1u << TABLE_STATUS},
	[STATE] = {"STATE", false, BOTH},
	[GPU_TIME] = {"GPU TIME", true, 1u << TABLE_STATUS},
	[LAUNCHES] = {"LAUNCHES", true, 1u << TABLE_STATUS},
	[WAITS] = {"WAITS", true, 1u << TABLE_STATUS},
	[WAITED] = {"WAITED", true, 1u << TABLE_STATUS},
	[EVICTIONS] = {"EVICTIONS", true, 1u << TABLE_STATUS},
	[GPU_RATE] = {"GPU %", true, 1u << TABLE_TOP},
	[WAIT_RATE] = {"WAIT %", true, 1u << TABLE_TOP},
	[LAUNCH_RATE] = {"LAUNCHES/S", true, 1u << TABLE_TOP},
	[GPU] = {"GPU", false, BOTH},
};

struct row {
	char cell[COLUMNS][CELL];
};

static const char *text_of(const cJSON *client, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(client, name));

	return text ? text : "";
}

static void put_text(char *cell, const char *text)
{
	snprintf(cell, CELL, "%s", *text ? text : "-");
	/* It goes to a terminal. */
	for (char *c = cell; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static void put_count(char *cell, const cJSON *client, const char *name)
{
	const cJSON *number = cJSON_GetObjectItem(client, name);

	if (cJSON_IsNumber(number))
		snprintf(cell, CELL, "%.0f", number->valuedouble);
	else
		put_text(cell, "");
}

static void put_seconds(char *cell, const cJSON *client, const char *name)
{
	const cJSON *number = cJSON_GetObjectItem(client, name);

	if (cJSON_IsNumber(number))
		snprintf(cell, CELL, "%.3f s", number->valuedouble);
	else
		put_text(cell, "");
}

static void put_percent(char *cell, const cJSON *client, const char *name)
{
	const cJSON *number = cJSON_GetObjectItem(client, name);

	if (cJSON_IsNumber(number))
		snprintf(cell, CELL, "%.1f", 100 * number->valuedouble);
	else
		put_text(cell, "");
}

static void put_mebibytes(char *cell, const cJSON *client, const char *name)
{
	const cJSON *number = cJSON_GetObjectItem(client, name);

	if (cJSON_IsNumber(number))
		snprintf(cell, CELL, "%.0f MiB", number->valuedouble / (1 << 20));
	else
		put_text(cell, "");
}

static void put_level(char *cell, const cJSON *client, const char *name)
{
	const cJSON *number = cJSON_GetObjectItem(client, name);

	if (cJSON_IsNumber(number) && number->valuedouble >= 0 && number->valuedouble < 4)
		put_text(cell, config_level_name((uint8_t)number->valuedouble));
	else
		put_text(cell, "");
}

/* A pod by its name; else who runs it: the user, and the command for the container. */
static void put_owner(struct row *row, const cJSON *client)
{
	const char *namespace_ = text_of(client, "namespace"), *pod = text_of(client, "pod");
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s", namespace_, *namespace_ ? "/" : "", pod);
	put_text(row->cell[POD], text);
	put_text(row->cell[CONTAINER], text_of(client, "container"));
	if (*pod)
		return;
	snprintf(text, sizeof(text), "uid %.0f",
		 cJSON_GetNumberValue(cJSON_GetObjectItem(client, "uid")));
	put_text(row->cell[POD], text);
	put_text(row->cell[CONTAINER], text_of(client, "command"));
}

static void fill_row(struct row *row, const cJSON *client)
{
	put_count(row->cell[CLIENT], client, "client");
	put_owner(row, client);
	put_count(row->cell[PID], client, "pid");
	put_level(row->cell[LEVEL], client, "level");
	put_level(row->cell[ACTING], client, "actingLevel");
	put_count(row->cell[SHARE], client, "share");
	put_mebibytes(row->cell[MEMORY], client, "memoryReserved");
	put_mebibytes(row->cell[LIMIT], client, "memoryLimit");
	put_text(row->cell[STATE], text_of(client, "state"));
	put_seconds(row->cell[GPU_TIME], client, "gpuSeconds");
	put_count(row->cell[LAUNCHES], client, "launches");
	put_count(row->cell[WAITS], client, "waits");
	put_seconds(row->cell[WAITED], client, "waitSeconds");
	put_count(row->cell[EVICTIONS], client, "evictions");
	put_percent(row->cell[GPU_RATE], client, "gpuShare");
	put_percent(row->cell[WAIT_RATE], client, "waitShare");
	put_count(row->cell[LAUNCH_RATE], client, "launchRate");
	put_text(row->cell[GPU], text_of(client, "gpu"));
}

static void print_row(FILE *out, const struct row *row, const int *widths, enum table_view view)
{
	const char *between = "";

	for (int i = 0; i < COLUMNS; i++) {
		int width = i == COLUMNS - 1 ? 0 : columns[i].right ? widths[i] : -widths[i];
		if (!(columns[i].views & 1u << view))
			continue;
		fprintf(out, "%s%*s", between, width, row->cell[i]);
		between = "  ";
	}
	fputc('\n', out);
}

void table_print(FILE *out, const cJSON *status, enum table_view view)
{
	const cJSON *clients = cJSON_GetObjectItem(status, "clients"), *client;
	int n = cJSON_GetArraySize(clients) + 1, at = 1, widths[COLUMNS] = {0};
	cleanup(freep) struct row *rows = calloc((size_t)n, sizeof(*rows));

	if (!rows)
		return;
	for (int i = 0; i < COLUMNS; i++)
		put_text(rows[0].cell[i], columns[i].title);
	for (client = cJSON_GetArrayItem(clients, 0); client; client = client->next)
		fill_row(&rows[at++], client);
	for (int row = 0; row < n; row++) {
		for (int i = 0; i < COLUMNS; i++) {
			int width = (int)strlen(rows[row].cell[i]);
			if (width > widths[i])
				widths[i] = width;
		}
	}
	for (int row = 0; row < n; row++)
		print_row(out, &rows[row], widths, view);
	if (n == 1)
		fputs("no clients\n", out);
}
