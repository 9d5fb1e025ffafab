#include "weir/gpu-select.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define INDEX_MAX 63

const char *const gpu_mode_words[] = {
	[GPU_MODE_TIMESLICE] = "timeslice", [GPU_MODE_MPS] = "mps", NULL};

static int claim(struct yaml_file *file, const yaml_node_t *value, struct gpu_select *select,
		 enum gpu_select_by by)
{
	if (select->by != GPU_SELECT_NONE)
		return yaml_fail(file, value, "expected one of `uuid`, `index` and `product`");
	select->by = by;
	return 0;
}

static bool is_uuid(const char *text)
{
	static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	if (strlen(text) != strlen(form) || strncmp(text, form, 4) != 0)
		return false;
	for (size_t i = 4; form[i]; i++)
		if (form[i] == 'x' ? !strchr("0123456789abcdefABCDEF", text[i]) : text[i] != '-')
			return false;
	return true;
}

int gpu_select_read_uuid(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target)
{
	struct gpu_select *select = target;
	const char *text = yaml_scalar(file, value, "a UUID");

	if (!text)
		return -EINVAL;
	if (!is_uuid(text))
		return yaml_fail(file, value,
				 "expected GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, not `%s`",
				 text);
	int r = claim(file, value, select, GPU_SELECT_UUID);
	return r < 0 ? r : yaml_read_text(file, value, field, &select->text);
}

int gpu_select_read_index(struct yaml_file *file, const yaml_node_t *value,
			  const struct yaml_field *field, void *target)
{
	static const struct yaml_field index = {.max = INDEX_MAX};
	struct gpu_select *select = target;
	int r = claim(file, value, select, GPU_SELECT_INDEX);

	(void)field;
	return r < 0 ? r : yaml_read_number(file, value, &index, &select->index);
}

int gpu_select_read_product(struct yaml_file *file, const yaml_node_t *value,
			    const struct yaml_field *field, void *target)
{
	struct gpu_select *select = target;
	const char *text = yaml_scalar(file, value, "a product's name");

	if (!text)
		return -EINVAL;
	if (!*text)
		return yaml_fail(file, value, "expected a product's name, like `NVIDIA H200*`");
	int r = claim(file, value, select, GPU_SELECT_PRODUCT);
	return r < 0 ? r : yaml_read_text(file, value, field, &select->text);
}

static bool same(const struct gpu_select *a, const struct gpu_select *b)
{
	if (a->by != b->by)
		return false;
	return a->by == GPU_SELECT_INDEX ? a->index == b->index : strcasecmp(a->text, b->text) == 0;
}

static bool fits(const struct gpu_select *select, const struct gpu_traits *gpu)
{
	switch (select->by) {
	case GPU_SELECT_UUID:
		return strcasecmp(select->text, gpu->uuid) == 0;
	case GPU_SELECT_INDEX:
		return gpu->index >= 0 && select->index == (uint32_t)gpu->index;
	case GPU_SELECT_PRODUCT:
		return fnmatch(select->text, gpu->product, 0) == 0;
	default:
		return false;
	}
}

void gpu_select_deinit(struct gpu_select *select)
{
	free(select->text);
	*select = (struct gpu_select){0};
}

static void *entry_at(const struct gpu_entry *kind, const void *entries, size_t i)
{
	return (char *)entries + i * kind->size;
}

/* The selector of entry @i is there, and none before it has the same. */
static int check(struct yaml_file *file, const yaml_node_t *node, const struct gpu_entry *kind,
		 const void *entries, size_t i)
{
	const struct gpu_select *select = entry_at(kind, entries, i);

	if (select->by == GPU_SELECT_NONE)
		return yaml_fail(file, node, "expected `uuid`, `index` or `product` in this entry");
	for (size_t j = 0; j < i; j++)
		if (same(select, entry_at(kind, entries, j)))
			return yaml_fail(file, node, "this GPU has an entry already");
	return 0;
}

int gpu_select_read_list(struct yaml_file *file, const yaml_node_t *value,
			 const struct gpu_entry *kind, void *entries, size_t *n_out)
{
	const struct yaml_field section = {.fields = kind->fields};
	int r = yaml_new_entries(file, value, YAML_SEQUENCE_NODE, entries, n_out, kind->size);

	for (size_t i = 0; i < *n_out && r == 0; i++) {
		const yaml_node_t *node = yaml_item(file, value, i);
		void *entry = entry_at(kind, *(void **)entries, i);
		memcpy(entry, kind->standard, kind->size);
		r = yaml_read_section(file, node, &section, entry);
		if (r == 0)
			r = check(file, node, kind, *(void **)entries, i);
	}
	return r;
}

void gpu_select_apply(const struct gpu_entry *kind, const void *entries, size_t n,
		      const struct gpu_traits *gpu, void *terms)
{
	/* What is applied last holds. */
	for (enum gpu_select_by by = GPU_SELECT_PRODUCT; by <= GPU_SELECT_UUID; by++) {
		for (size_t i = n; i > 0; i--) {
			const struct gpu_select *select = entry_at(kind, entries, i - 1);
			if (select->by == by && fits(select, gpu))
				kind->apply(terms, select);
		}
	}
}
