/* Reads YAML files into structs by tables of fields. Reading stops at the first mistake, with one
 * line `name:line:column: what was expected`. An unknown key is a mistake. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#define YAML_TEXT_MAX    255
#define YAML_ENTRIES_MAX 256 /* of a list or mapping */

struct yaml_file {
	const char *name;
	yaml_document_t document;
	char *message;
	size_t message_size;
	size_t mask; /* as in struct yaml_entry, while its entries are read */
};

struct yaml_field;
typedef int yaml_read_fn(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target);

/* A value that is written as one word. */
struct yaml_type {
	const char *what, *expected; /* "a level"; "a level: low or high" */
	/* Stores the value in @target. For a member with a default text, @target is NULL: the
	 * text itself is stored if it is valid. */
	bool (*parse)(const char *text, void *target);
};

/* What one entry of a list or mapping is read into. */
struct yaml_entry {
	size_t size;
	const void *standard; /* the entry before it is read; NULL: all zero */
	/* Of a list: the keys of a mapping, or one row without key for a scalar. Of a mapping: a
	 * row for the key and a row for the value, both without key. */
	const struct yaml_field *fields;
	/* Entry @i is read from @node; NULL: nothing to check. */
	int (*check)(struct yaml_file *file, const yaml_node_t *node,
		     const struct yaml_entry *entry, const void *entries, size_t i);
	/* Distance from a member to its mask: where the file gives a member, its mask becomes all
	 * ones. 0: no masks. */
	size_t mask;
};

/* A row of a table; the last row has no reader. */
struct yaml_field {
	const char *key;
	/* Reads @value into @target, which is the struct's start + offset. 0, or a negative errno
	 * from yaml_fail(). */
	yaml_read_fn *read;
	size_t offset, size; /* by YAML_AT or YAML_AT_LIST */
	/* What the reader needs. */
	const struct yaml_field *fields; /* yaml_read_section */
	const struct yaml_type *type;    /* yaml_read_typed */
	const struct yaml_entry *entry;  /* yaml_read_list */
	const char *const *words;        /* yaml_read_word; ends with NULL */
	uint32_t min, max;               /* yaml_read_number */
	/* The default of a char * member, which owns its text; YAML_NULL: NULL. */
	const char *text;
	bool at_start;       /* yaml_update() leaves the member, or the section, as it is */
	const char *instead; /* this key is deprecated; the row of that key reads it */
};

extern const char yaml_null[];
#define YAML_NULL yaml_null

/* offset and size of a member. */
#define YAML_AT(type, member) offsetof(type, member), sizeof(((type *)0)->member)
/* The same of a list: the member points to the entries, and their number @n follows it. */
#define YAML_AT_LIST(type, member, n)                                                        \
	offsetof(type, member) +                                                             \
		0 * sizeof(char[offsetof(type, n) == offsetof(type, member) + sizeof(void *) \
					? 1                                                  \
					: -1]),                                              \
		sizeof(void *) + sizeof(size_t)

/* Parses @text into file->document, which the caller deletes, even if it fails. The rest of @file
 * is set. 0; or -EINVAL, and one line in the message; or -ENOMEM. */
int yaml_open(struct yaml_file *file, const char *text, size_t size);

/* Sets the default texts of @fields and their sections. 0, or -ENOMEM with some of them set. */
int yaml_set_texts(const struct yaml_field *fields, void *target);
/* Frees all texts and lists of @fields and their sections. */
void yaml_free(const struct yaml_field *fields, void *target);
/* Reads @text into @target, which has its defaults. 0, or a negative errno and one line in
 * @message. */
int yaml_parse(const struct yaml_field *fields, void *target, const char *name, const char *text,
	       size_t size, char *message, size_t message_size);
/* Exchanges all members of @target and @next but those that are at_start. Writes the keys of these
 * that differ to @waiting, separated by commas. */
void yaml_update(const struct yaml_field *fields, void *target, void *next, char *waiting,
		 size_t size);

/* The bytes of a file of at most @max, and a NUL, for the caller to free. Else a negative errno,
 * and one line in @message. */
int yaml_load_file(const char *path, size_t max, char **text_out, size_t *size_out, char *message,
		   size_t message_size);

/* Writes `name:line:column: ...` of @node and returns -EINVAL. */
int yaml_fail(struct yaml_file *file, const yaml_node_t *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Readers for tables. Texts replace what was there. */
yaml_read_fn yaml_read_section;
yaml_read_fn yaml_read_typed;
yaml_read_fn yaml_read_list; /* a YAML_AT_LIST; a list or a mapping, as its entry says */
yaml_read_fn yaml_read_text; /* char * */
yaml_read_fn yaml_read_path; /* char *, absolute */
yaml_read_fn yaml_read_path_or_empty;
yaml_read_fn yaml_read_number; /* uint32_t */
yaml_read_fn yaml_read_bool;
yaml_read_fn yaml_read_word;                  /* an enum: the index of the word */
extern const struct yaml_type yaml_log_level; /* enum log_level */

/* For readers. The text of a scalar, valid as long as the file. NULL: it is no scalar or too long;
 * the message says that @what was expected. */
const char *yaml_scalar(struct yaml_file *file, const yaml_node_t *node, const char *what);
/* The number of entries of a list or mapping. -EINVAL: neither @type nor empty, or too many. */
int yaml_entries(struct yaml_file *file, const yaml_node_t *node, yaml_node_type_t type);
const yaml_node_t *yaml_item(struct yaml_file *file, const yaml_node_t *list, size_t i);
