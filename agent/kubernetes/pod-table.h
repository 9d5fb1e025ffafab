/* The pods that the API server told of, by their UID there. */
#pragma once

#include "kubernetes/podlist.h"

#define POD_TABLE_MAX 2048

struct claims;

struct pod_table {
	struct pod_entry *pods; /* hash */
	uint64_t generation;    /* of pods that are put */
	/* A pod came, changed, or went. */
	void (*changed)(struct pod_table *table);
};

/* Takes @pod. Pods beyond POD_TABLE_MAX are ignored. -ENOMEM. */
int pod_table_put(struct pod_table *table, struct pod *pod);
void pod_table_remove(struct pod_table *table, const char *uid);
/* Those of other generations. */
void pod_table_remove_older(struct pod_table *table);
/* Frees all, and tells nobody. */
void pod_table_deinit(struct pod_table *table);
/* Gives the containers of all pods what @claims say. */
void pod_table_apply(struct pod_table *table, const struct claims *claims);

/* As pods_find(), pods_search() and pods_each(). */
const struct pod *pod_table_find(const struct pod_table *table, const char *uid);
const struct pod *pod_table_search(const struct pod_table *table,
				   bool (*is)(const struct pod *pod));
void pod_table_each(const struct pod_table *table,
		    void (*each)(void *userdata, const struct pod *pod), void *userdata);
