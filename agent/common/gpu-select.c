#include "weir/gpu-select.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#define INDEX_MAX 63

const char *const gpu_mode_words[] = {[GPU_MODE_TIMESLICE] = "timeslice",
				      [GPU_MODE_MPS] = "mps",
				      [GPU_MODE_MPS_PER_LEVEL] = "mps-per-level",
				      NULL};

static int set_kind(struct yaml_file *file, const yaml_node_t *value, struct gpu_select *select,
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
	int r = set_kind(file, value, select, GPU_SELECT_UUID);
	return r < 0 ? r : yaml_read_text(file, value, field, &select->text);
}

int gpu_select_read_index(struct yaml_file *file, const yaml_node_t *value,
			  const struct yaml_field *field, void *target)
{
	static const struct yaml_field index = {.max = INDEX_MAX};
	struct gpu_select *select = target;
	int r = set_kind(file, value, select, GPU_SELECT_INDEX);

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
	int r = set_kind(file, value, select, GPU_SELECT_PRODUCT);
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

static const struct gpu_select *select_at(const struct yaml_entry *entry, const void *entries,
					  size_t i)
{
	return (const void *)((const char *)entries + i * entry->size);
}

int gpu_select_check(struct yaml_file *file, const yaml_node_t *node,
		     const struct yaml_entry *entry, const void *entries, size_t i)
{
	const struct gpu_select *select = select_at(entry, entries, i);

	if (select->by == GPU_SELECT_NONE)
		return yaml_fail(file, node, "expected `uuid`, `index` or `product` in this entry");
	for (size_t j = 0; j < i; j++)
		if (same(select, select_at(entry, entries, j)))
			return yaml_fail(file, node, "this GPU has an entry already");
	return 0;
}

/* Copies the bytes of @values where the mask behind them is set. */
static void apply(uint8_t *settings, const uint8_t *values, size_t size)
{
	const uint8_t *mask = values + size;

	for (size_t i = 0; i < size; i++)
		settings[i] = (uint8_t)((settings[i] & ~mask[i]) | (values[i] & mask[i]));
}

void gpu_select_apply(const struct yaml_entry *entry, const void *entries, size_t n,
		      const struct gpu_traits *gpu, void *settings)
{
	/* The last one applied wins. */
	for (enum gpu_select_by by = GPU_SELECT_PRODUCT; by <= GPU_SELECT_UUID; by++) {
		for (size_t i = n; i > 0; i--) {
			const struct gpu_select *select = select_at(entry, entries, i - 1);
			if (select->by == by && fits(select, gpu))
				apply(settings, (const uint8_t *)(select + 1), entry->mask);
		}
	}
}
