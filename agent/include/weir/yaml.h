/* YAML into structs by a table of fields. The first thing that is wrong ends the reading with one
 * line: file, line, column, and what was expected there. A key that no field has is wrong. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#define YAML_TEXT_MAX    255
#define YAML_ENTRIES_MAX 256 /* of a list or map */

struct yaml_file {
	const char *name;
	yaml_document_t document;
	char *message;
	size_t message_size;
};

struct yaml_field {
	const char *key;
	/* Reads @value into @target, which is the struct's start + offset. 0, or a negative errno
	 * from yaml_fail(). */
	int (*read)(struct yaml_file *file, const yaml_node_t *value,
		    const struct yaml_field *field, void *target);
	size_t offset;
	const struct yaml_field *fields; /* of yaml_read_section; ends with a row without key */
	uint32_t min, max;               /* of yaml_read_number */
	const char *const *words;        /* of yaml_read_word; ends with NULL */
	const char *text;                /* what a char * is where the file does not say */
};

/* Gives each text of @fields and its sections that has a default this default; it was NULL before.
 * 0, or -ENOMEM, and then some have theirs. */
int yaml_set_texts(const struct yaml_field *fields, void *target);
/* Frees them, whatever they became, and those that were never set. */
void yaml_free_texts(const struct yaml_field *fields, void *target);

/* The bytes of a file of at most @max, for the caller to free, with room for one more. Else a
 * negative errno, and one line in @message. */
int yaml_load_file(const char *path, size_t max, char **text_out, size_t *size_out, char *message,
		   size_t message_size);

/* @message gets the error of this and all later calls. */
int yaml_file_init(struct yaml_file *file, const char *name, const char *text, size_t size,
		   char *message, size_t message_size);
void yaml_file_deinit(struct yaml_file *file);

/* The whole document, a mapping or nothing at all. */
int yaml_read(struct yaml_file *file, const struct yaml_field *fields, void *target);
/* Says `name:line:column: ...` of @node and returns -EINVAL. */
int yaml_fail(struct yaml_file *file, const yaml_node_t *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Readers for tables. Strings replace what was there, which is freed. */
int yaml_read_section(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target);
int yaml_read_text(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target); /* char * */
int yaml_read_path(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target); /* char *, absolute */
int yaml_read_number(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target); /* uint32_t */
int yaml_read_bool(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target); /* bool */
int yaml_read_word(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target); /* an enum: which of the words it is */
int yaml_read_log_level(struct yaml_file *file, const yaml_node_t *value,
			const struct yaml_field *field, void *target); /* enum log_level */

/* The text of a scalar, valid as long as the file. NULL: it is
 * something else or too long; @what says what was expected. */
const char *yaml_scalar(struct yaml_file *file, const yaml_node_t *node, const char *what);
/* How many entries a list or map has, -EINVAL: it is neither @type nor empty, or too long. */
int yaml_entries(struct yaml_file *file, const yaml_node_t *node, yaml_node_type_t type);
/* A new array of as many zeroed entries of @size bytes, for *@entries and *@n_out, which were NULL
 * and 0: a key that comes twice is refused. 0, -EINVAL as above, or -ENOMEM. */
int yaml_new_entries(struct yaml_file *file, const yaml_node_t *node, yaml_node_type_t type,
		     void *entries, size_t *n_out, size_t size);
/* Entry @i. */
const yaml_node_t *yaml_item(struct yaml_file *file, const yaml_node_t *list, size_t i);
const yaml_node_t *yaml_pair(struct yaml_file *file, const yaml_node_t *map, size_t i,
			     const yaml_node_t **key);
