/* The agent's status as a table for people. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

enum table_view {
	TABLE_STATUS, /* sums since the client came */
	TABLE_TOP,    /* rates, see top.h */
};

/* @status: the answer to `status`. Whatever is missing or odd in it shows as `-`. */
void table_print(FILE *out, const cJSON *status, enum table_view view);
