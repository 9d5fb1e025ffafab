/* The configuration of a running agent: taken anew when its file changes, or at SIGHUP. One that is
 * wrong is said, with its place, and the one before stays in force. What is in force for each GPU
 * is applied from here, too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "weir/file-watch.h"

struct agent;
struct gpu;

struct reload {
	struct agent *agent;
	const char *path; /* NULL: there is no file */
	struct file_watch watch;
	uint64_t hash;     /* 48 bits of the SHA-256 of what is in force */
	uint64_t tried;    /* the same of what was read last */
	int64_t loaded;    /* when, in s since 1970 */
	bool failed;       /* what was read last is not in force */
	char waiting[512]; /* keys that wait for the next agent; empty: none */
	uint64_t good, bad;
};

/* @path stays the caller's; NULL: SIGHUP does nothing. The agent has read it already, and
 * what it says by now is taken. */
int reload_init(struct reload *reload, struct agent *agent, const char *path);
void reload_deinit(struct reload *reload);
/* Now; also if the file is what it was. */
void reload_now(struct reload *reload);
void reload_metrics_write(FILE *out, const struct reload *reload);

/* Puts in force on @gpu what the configuration says of it. Nothing happens where that is so. */
void agent_configure_gpu(struct agent *agent, struct gpu *gpu);
