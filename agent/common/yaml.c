#include "weir/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "weir/units.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"

int yaml_fail(struct yaml_file *file, const yaml_node_t *node, const char *format, ...)
{
	const yaml_mark_t *mark = &node->start_mark;
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* What it quotes may have line ends. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	snprintf(file->message, file->message_size, "%s:%zu:%zu: %s", file->name, mark->line + 1,
		 mark->column + 1, text);
	return -EINVAL;
}

int yaml_open(struct yaml_file *file, const char *text, size_t size)
{
	yaml_parser_t parser;
	int r = 0;

	if (!yaml_parser_initialize(&parser))
		return error_origin(-ENOMEM);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	if (!yaml_parser_load(&parser, &file->document)) {
		memset(&file->document, 0, sizeof(file->document));
		const yaml_node_t at = {.start_mark = parser.problem_mark};
		r = yaml_fail(file, &at, "%s", parser.problem ? parser.problem : "not YAML");
	}
	yaml_parser_delete(&parser);
	return r;
}

static bool is_null(const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;

	return node->type == YAML_SCALAR_NODE &&
	       node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

const char *yaml_scalar(struct yaml_file *file, const yaml_node_t *node, const char *what)
{
	const char *text = (const char *)node->data.scalar.value;

	if (node->type != YAML_SCALAR_NODE || strlen(text) != node->data.scalar.length) {
		yaml_fail(file, node, "expected %s", what);
		return NULL;
	}
	if (node->data.scalar.length > YAML_TEXT_MAX) {
		yaml_fail(file, node, "expected %s of at most %d bytes", what, YAML_TEXT_MAX);
		return NULL;
	}
	return text;
}

int yaml_entries(struct yaml_file *file, const yaml_node_t *node, yaml_node_type_t type)
{
	const char *what = type == YAML_MAPPING_NODE ? "a mapping" : "a list";
	ptrdiff_t n;

	if (is_null(node))
		return 0;
	if (node->type != type)
		return yaml_fail(file, node, "expected %s", what);
	n = type == YAML_MAPPING_NODE
		    ? node->data.mapping.pairs.top - node->data.mapping.pairs.start
		    : node->data.sequence.items.top - node->data.sequence.items.start;
	if (n > YAML_ENTRIES_MAX)
		return yaml_fail(file, node, "expected %s of at most %d entries", what,
				 YAML_ENTRIES_MAX);
	return (int)n;
}

const yaml_node_t *yaml_item(struct yaml_file *file, const yaml_node_t *list, size_t i)
{
	return yaml_document_get_node(&file->document, list->data.sequence.items.start[i]);
}

static const yaml_node_t *pair_at(struct yaml_file *file, const yaml_node_t *map, size_t i,
				  const yaml_node_t **key)
{
	const yaml_node_pair_t *pair = &map->data.mapping.pairs.start[i];

	*key = yaml_document_get_node(&file->document, pair->key);
	return yaml_document_get_node(&file->document, pair->value);
}

static const struct yaml_field *find_field(const struct yaml_field *fields, const char *key)
{
	for (; fields->read; fields++)
		if (strcmp(fields->key, key) == 0)
			return fields;
	return NULL;
}

/* The row of @key, or of the key that is used instead of it. */
static const struct yaml_field *choose_field(struct yaml_file *file, const yaml_node_t *key,
					     const struct yaml_field *fields, const char *name)
{
	const struct yaml_field *field = find_field(fields, name);

	if (!field || !field->instead)
		return field;
	log_warning("%s:%zu:%zu: `%s` is deprecated: use `%s`", file->name,
		    key->start_mark.line + 1, key->start_mark.column + 1, name, field->instead);
	return find_field(fields, field->instead);
}

static int read_field(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target)
{
	char *at = (char *)target + field->offset;
	int r = field->read(file, value, field, at);

	if (r == 0 && file->mask && !field->fields)
		memset(at + file->mask, 0xff, field->size);
	return r;
}

static int read_fields(struct yaml_file *file, const yaml_node_t *node,
		       const struct yaml_field *fields, void *target)
{
	uint64_t seen = 0;
	int n = yaml_entries(file, node, YAML_MAPPING_NODE);

	for (int i = 0; i < n; i++) {
		const yaml_node_t *key, *value = pair_at(file, node, (size_t)i, &key);
		const char *name = yaml_scalar(file, key, "a key");
		if (!name)
			return -EINVAL;
		const struct yaml_field *field = choose_field(file, key, fields, name);
		if (!field)
			return yaml_fail(file, key, "unknown key `%s`", name);
		if (seen & 1ull << (field - fields))
			return yaml_fail(file, key, "key `%s` is there twice", name);
		seen |= 1ull << (field - fields);
		int r = read_field(file, value, field, target);
		if (r < 0)
			return r;
	}
	return n < 0 ? n : 0;
}

int yaml_parse(const struct yaml_field *fields, void *target, const char *name, const char *text,
	       size_t size, char *message, size_t message_size)
{
	struct yaml_file file = {.name = name, .message = message, .message_size = message_size};
	int r = yaml_open(&file, text, size);
	const yaml_node_t *root = r < 0 ? NULL : yaml_document_get_root_node(&file.document);

	if (root)
		r = read_fields(&file, root, fields, target);
	yaml_document_delete(&file.document);
	return r;
}

int yaml_read_section(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target)
{
	return read_fields(file, value, field->fields, target);
}

/* Texts, lists, and what owns them */

struct list {
	char *all;
	size_t n;
};

const char yaml_null[] = "";

static int store(char **target, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return error_origin(-ENOMEM);
	free(*target);
	*target = copy;
	return 0;
}

int yaml_set_texts(const struct yaml_field *fields, void *target)
{
	int r = 0;

	for (; fields->read && r == 0; fields++) {
		void *at = (char *)target + fields->offset;
		if (fields->text && fields->text != YAML_NULL)
			r = store(at, fields->text);
		else if (fields->fields)
			r = yaml_set_texts(fields->fields, at);
	}
	return r;
}

static void free_list(const struct yaml_entry *entry, struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		yaml_free(entry->fields, list->all + i * entry->size);
	free(list->all);
	*list = (struct list){0};
}

void yaml_free(const struct yaml_field *fields, void *target)
{
	for (; fields->read; fields++) {
		void *at = (char *)target + fields->offset;
		if (fields->text) {
			free(*(char **)at);
			*(char **)at = NULL;
		} else if (fields->entry) {
			free_list(fields->entry, at);
		} else if (fields->fields) {
			yaml_free(fields->fields, at);
		}
	}
}

static int read_entry(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_entry *entry, struct list *list, size_t i)
{
	const struct yaml_field *fields = entry->fields;
	char *at = list->all + i * entry->size;
	const yaml_node_t *node;
	int r;

	if (entry->standard)
		memcpy(at, entry->standard, entry->size);
	if (value->type == YAML_MAPPING_NODE) {
		const yaml_node_t *second = pair_at(file, value, i, &node);
		r = read_field(file, node, &fields[0], at);
		if (r == 0)
			r = read_field(file, second, &fields[1], at);
	} else {
		node = yaml_item(file, value, i);
		r = fields->key ? read_fields(file, node, fields, at)
				: read_field(file, node, fields, at);
	}
	return r == 0 && entry->check ? entry->check(file, node, entry, list->all, i) : r;
}

int yaml_read_list(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target)
{
	const struct yaml_entry *entry = field->entry;
	bool map = !entry->fields[0].key && entry->fields[1].read;
	int n = yaml_entries(file, value, map ? YAML_MAPPING_NODE : YAML_SEQUENCE_NODE);
	struct list *list = target;
	size_t mask = file->mask;
	int r = n < 0 ? n : 0;

	if (r < 0)
		return r;
	list->all = calloc((size_t)n + 1, entry->size);
	if (!list->all)
		return error_origin(-ENOMEM);
	list->n = (size_t)n;
	file->mask = entry->mask;
	for (size_t i = 0; i < list->n && r == 0; i++)
		r = read_entry(file, value, entry, list, i);
	file->mask = mask;
	return r;
}

/* A configuration that changes */

static void exchange(char *a, char *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char byte = a[i];
		a[i] = b[i];
		b[i] = byte;
	}
}

static bool differs(const struct yaml_field *field, const void *a, const void *b)
{
	return field->text ? strcmp(*(char *const *)a, *(char *const *)b) != 0
			   : memcmp(a, b, field->size) != 0;
}

/* @section: the key of the section that @fields are in, with a point behind it. */
static void update(const struct yaml_field *fields, bool at_start, const char *section,
		   char *target, char *next, char *waiting, size_t size)
{
	for (; fields->read; fields++) {
		char *a = target + fields->offset, *b = next + fields->offset;
		bool stays = at_start || fields->at_start;
		size_t n = strlen(waiting);
		char inner[64];
		if (fields->instead)
			continue;
		if (fields->fields) {
			snprintf(inner, sizeof(inner), "%s%s.", section, fields->key);
			update(fields->fields, stays, inner, a, b, waiting, size);
		} else if (!stays) {
			exchange(a, b, fields->size);
		} else if (differs(fields, a, b)) {
			snprintf(waiting + n, size - n, "%s%s%s", n ? ", " : "", section,
				 fields->key);
		}
	}
}

void yaml_update(const struct yaml_field *fields, void *target, void *next, char *waiting,
		 size_t size)
{
	waiting[0] = '\0';
	update(fields, false, "", target, next, waiting, size);
}

/* Readers */

int yaml_read_typed(struct yaml_file *file, const yaml_node_t *value,
		    const struct yaml_field *field, void *target)
{
	const struct yaml_type *type = field->type;
	const char *text = yaml_scalar(file, value, type->what);

	if (!text)
		return -EINVAL;
	if (!type->parse(text, field->text ? NULL : target))
		return yaml_fail(file, value, "expected %s, not `%s`", type->expected, text);
	return field->text ? store(target, text) : 0;
}

int yaml_read_text(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target)
{
	const char *text = yaml_scalar(file, value, "text");

	(void)field;
	return text ? store(target, text) : -EINVAL;
}

int yaml_read_path(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target)
{
	const char *text = yaml_scalar(file, value, "a path");

	(void)field;
	if (!text)
		return -EINVAL;
	if (text[0] != '/')
		return yaml_fail(file, value, "expected an absolute path");
	return store(target, text);
}

int yaml_read_path_or_empty(struct yaml_file *file, const yaml_node_t *value,
			    const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a path");

	if (text && !*text)
		return store(target, text);
	return text ? yaml_read_path(file, value, field, target) : -EINVAL;
}

int yaml_read_number(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a number");
	uint64_t number;

	if (!text)
		return -EINVAL;
	if (!number_parse(text, field->min, field->max, &number))
		return yaml_fail(file, value, "expected a number from %u to %u", field->min,
				 field->max);
	*(uint32_t *)target = (uint32_t)number;
	return 0;
}

int yaml_read_bool(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target)
{
	const char *text = yaml_scalar(file, value, "true or false");

	(void)field;
	if (!text)
		return -EINVAL;
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return yaml_fail(file, value, "expected true or false");
	*(bool *)target = strcmp(text, "true") == 0;
	return 0;
}

/* a, b or c */
static void list_words(const char *const *words, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; words[i] && n < size; i++) {
		const char *between = i == 0 ? "" : words[i + 1] ? ", " : " or ";
		n += (size_t)snprintf(out + n, size - n, "%s%s", between, words[i]);
	}
}

int yaml_read_word(struct yaml_file *file, const yaml_node_t *value, const struct yaml_field *field,
		   void *target)
{
	char expected[128] = "";

	list_words(field->words, expected, sizeof(expected));
	const char *text = yaml_scalar(file, value, expected);
	if (!text)
		return -EINVAL;
	for (int i = 0; field->words[i]; i++) {
		if (strcmp(text, field->words[i]) == 0) {
			*(int *)target = i;
			return 0;
		}
	}
	return yaml_fail(file, value, "expected %s, not `%s`", expected, text);
}

static bool parse_log_level(const char *text, void *target)
{
	return log_level_parse(text, target);
}

const struct yaml_type yaml_log_level = {"a log level", "error, warning, info or debug",
					 parse_log_level};

int yaml_load_file(const char *path, size_t max, char **text_out, size_t *size_out, char *message,
		   size_t message_size)
{
	cleanup(freep) char *text = malloc(max + 2);

	if (!text)
		return error_origin(-ENOMEM);
	ssize_t size = file_read(AT_FDCWD, path, text, max + 2);
	if (size > (ssize_t)max)
		size = -EFBIG;
	if (size < 0) {
		snprintf(message, message_size, "%s: %s", path, strerror((int)-size));
		return (int)size;
	}
	*text_out = take(text);
	*size_out = (size_t)size;
	return 0;
}
