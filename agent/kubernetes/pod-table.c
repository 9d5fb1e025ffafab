#include "kubernetes/pod-table.h"

#include "kubernetes/pod-claims.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#include <errno.h>
#include <string.h>
#include <uthash.h>

struct pod_entry {
	UT_hash_handle hh;
	uint64_t generation;
	struct pod *pod;
};

static bool is_full(const struct pod_table *table)
{
	bool full = HASH_COUNT(table->pods) >= POD_TABLE_MAX;

	if (full)
		log_limited(LOG_WARNING, 60, "more than %d pods on this node; others are ignored",
			    POD_TABLE_MAX);
	return full;
}

int pod_table_put(struct pod_table *table, struct pod *pod)
{
	struct pod_entry *entry;

	HASH_FIND_STR(table->pods, pod->uid, entry);
	bool news = !entry || !pod_equal(entry->pod, pod);
	if (!entry && is_full(table)) {
		free(pod);
		return 0;
	}
	if (entry) {
		/* The key is a part of the pod. */
		HASH_DEL(table->pods, entry);
		free(entry->pod);
	} else if (!(entry = calloc(1, sizeof(*entry)))) {
		free(pod);
		return error_origin(-ENOMEM);
	}
	entry->pod = pod;
	entry->generation = table->generation;
	HASH_ADD_KEYPTR(hh, table->pods, entry->pod->uid, strlen(entry->pod->uid), entry);
	if (news)
		table->changed(table);
	return 0;
}

static void remove_entry(struct pod_table *table, struct pod_entry *entry)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed is not in it any more */
	HASH_DEL(table->pods, entry);
	free(entry->pod);
	free(entry);
}

void pod_table_remove(struct pod_table *table, const char *uid)
{
	struct pod_entry *entry;

	HASH_FIND_STR(table->pods, uid, entry);
	if (!entry)
		return;
	remove_entry(table, entry);
	table->changed(table);
}

void pod_table_remove_older(struct pod_table *table)
{
	struct pod_entry *entry, *next;

	HASH_ITER (hh, table->pods, entry, next)
		if (entry->generation != table->generation) {
			remove_entry(table, entry);
			table->changed(table);
		}
}

void pod_table_deinit(struct pod_table *table)
{
	struct pod_entry *entry, *next;

	HASH_ITER (hh, table->pods, entry, next) {
		remove_entry(table, entry);
	}
}

void pod_table_apply(struct pod_table *table, const struct claims *claims)
{
	for (struct pod_entry *entry = table->pods; entry; entry = entry->hh.next)
		if (pod_claims_apply(entry->pod, claims))
			table->changed(table);
}

const struct pod *pod_table_find(const struct pod_table *table, const char *uid)
{
	struct pod_entry *entry;

	/* The API's UIDs first: users cannot choose them. */
	HASH_FIND_STR(table->pods, uid, entry);
	if (entry)
		return entry->pod;
	for (entry = table->pods; entry; entry = entry->hh.next)
		if (strcmp(entry->pod->cgroup_uid, uid) == 0)
			return entry->pod;
	return NULL;
}

const struct pod *pod_table_search(const struct pod_table *table, bool (*is)(const struct pod *pod))
{
	for (const struct pod_entry *entry = table->pods; entry; entry = entry->hh.next)
		if (is(entry->pod))
			return entry->pod;
	return NULL;
}

void pod_table_each(const struct pod_table *table,
		    void (*each)(void *userdata, const struct pod *pod), void *userdata)
{
	for (const struct pod_entry *entry = table->pods; entry; entry = entry->hh.next)
		each(userdata, entry->pod);
}
