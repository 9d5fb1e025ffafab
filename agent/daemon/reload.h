/* The configuration of a running agent, read again when its file changes or at SIGHUP. A wrong file
 * is logged and reported with the place of the mistake, and the configuration in force stays. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "weir/file-watch.h"

struct config;
struct reload;
typedef void reload_fn(struct reload *reload);

struct reload {
	struct config *config;
	reload_fn *apply;   /* puts in force what has just changed in @config */
	reload_fn *refused; /* tells others of the mistake */
	const char *path;   /* NULL: there is no file */
	struct file_watch watch;
	uint64_t hash;     /* 48 bits of the SHA-256 of the file in force */
	uint64_t tried;    /* the same of the file read last */
	int64_t loaded;    /* s since 1970 */
	char mistake[512]; /* in the file read last, with its place; empty: none */
	char waiting[512]; /* keys that take effect at the next start; empty: none */
	uint64_t good, bad;
};

/* @config was read from @path already, and is read again now: the file may have changed since.
 * @path stays the caller's; NULL: SIGHUP does nothing. */
int reload_init(struct reload *reload, struct loop *loop, struct config *config, const char *path,
		reload_fn *apply, reload_fn *refused);
void reload_deinit(struct reload *reload);
/* Reads the file now, even if it has not changed. */
void reload_now(struct reload *reload);
void reload_metrics_write(FILE *out, const struct reload *reload);
