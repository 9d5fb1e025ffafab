/* The agent's status as a table. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

enum table_view {
	TABLE_STATUS, /* sums since the client connected */
	TABLE_TOP,    /* rates: top.h */
};

/* @status: the answer to `status`. Missing or malformed fields show as `-`. */
void table_print(FILE *out, const cJSON *status, enum table_view view);
