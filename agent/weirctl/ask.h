/* Asks the agent over its control socket. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Of the command line. */
struct arguments {
	const char *socket;
	const char *command, *operand, *gpu;
	const char *file, *namespace_; /* of `profile` */
	bool all;
	uint64_t wait;     /* ns */
	uint64_t duration; /* ns; 0: the command's default */
	uint64_t records;  /* ns that the agent records before it answers */
	uint64_t times;    /* of top; 0: until interrupted */
	uint64_t workers;  /* of bound */
	bool json;
};

/* Takes @request. Returns the answer, or NULL after an error message. */
cJSON *ask(const struct arguments *arguments, cJSON *request);
/* A line on standard output. */
void print_json(const cJSON *answer);
