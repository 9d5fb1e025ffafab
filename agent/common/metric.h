/* Prometheus' text format. A metric is a row of a table: its name, its help, and the member of
 * a struct that holds its value. One table belongs to one kind of object: a container, a GPU, the
 * compile service. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The value of an object that does not have this metric: its series is left out. */
#define METRIC_NONE UINT64_MAX

enum metric_unit {
	METRIC_ONE,
	METRIC_NS,         /* nanoseconds, written as seconds */
	METRIC_MILLIONTHS, /* written as a fraction */
};

struct metric {
	const char *name, *help;
	enum metric_unit unit;
	/* The value: an unsigned member or a bool (METRIC_AT), or what @get returns. */
	size_t offset, size;
	uint64_t (*get)(const void *object);
	/* If @label is set, the member is an array (METRIC_ARRAY). Its elements @first to @end - 1
	 * are series of their own, which differ in this label. */
	const char *label;
	const char *(*label_value)(unsigned i);
	unsigned first, end;
	size_t stride; /* between elements, if they are members of a larger struct */
	bool skip_zeros;
};

#define METRIC_AT(type, member) \
	.offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define METRIC_ARRAY(type, member) METRIC_AT(type, member[0])

/* What a table is written for: one object, or all of a list. */
struct metric_objects {
	const void *first;
	size_t next; /* offset of the pointer to the next object; 0: there is one object */
	void (*labels)(FILE *out, const void *object); /* writes `a="b",c="d"`; NULL: no labels */
};

#define METRIC_OBJECT(object) (&(struct metric_objects){.first = (object)})

/* Writes all metrics of @table, which ends with a row without name. A metric that was renamed is
 * also written under its old name (metric.c has the list). */
void metric_write_table(FILE *out, const struct metric *table,
			const struct metric_objects *objects);

/* For metrics that are no members: the head, then any number of series. A metric whose name ends
 * with _total is a counter; any other one is a gauge. */
void metric_head(FILE *out, const char *name, const char *help);
/* `name="value"`, escaped. */
void metric_label(FILE *out, const char *name, const char *value);
/* A metric of value 1, whose label carries the information. */
void metric_info(FILE *out, const char *name, const char *help, const char *label,
		 const char *value);
