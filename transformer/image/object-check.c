/* Checks all that a reader of an object relies on. libweir compiles this file too, so it uses libc
 * only. */
#include "weir/object.h"

#include "weir/preempt-abi.h"
#include "weir/transform.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define ALIGN 8u

struct object {
	const struct weir_object *head;
	const char *bytes;
	size_t size;
	const char *last_nul; /* a name that begins behind it is not terminated */
};

/* Whether @n items of @each bytes fit at @offset. */
static bool lies_inside(const struct object *o, uint32_t offset, uint32_t n, size_t each)
{
	return offset % ALIGN == 0 && offset <= o->size && n <= (o->size - offset) / each;
}

static bool is_name(const struct object *o, uint32_t offset)
{
	return offset >= sizeof(*o->head) && offset < o->size && o->bytes[offset] && o->last_nul &&
	       o->bytes + offset < o->last_nul;
}

static bool check_forms(const struct object *o)
{
	const struct weir_object_form *forms;

	if (!lies_inside(o, o->head->forms, o->head->n_forms, sizeof(*forms)))
		return false;
	forms = (const void *)(o->bytes + o->head->forms);
	for (uint32_t k = 0; k < o->head->n_forms; k++) {
		const struct weir_object_form *f = &forms[k];

		if (f->form == WEIR_NATIVE || f->form >= WEIR_FORM_COUNT ||
		    !is_name(o, f->entry ? f->entry : f->reason) || (f->entry && f->reason) ||
		    (f->entry && !o->head->image_size))
			return false;
	}
	return true;
}

/* Parameters are in order and do not overlap. */
static bool check_params(const struct object *o)
{
	const struct weir_object_param *params;
	uint32_t end = 0;

	if (!lies_inside(o, o->head->params, o->head->n_params, sizeof(*params)))
		return false;
	params = (const void *)(o->bytes + o->head->params);
	for (uint32_t k = 0; k < o->head->n_params; k++) {
		if (params[k].offset < end || params[k].offset > WEIR_OBJECT_PARAMS_MAX ||
		    !params[k].size || params[k].size > WEIR_OBJECT_PARAMS_MAX - params[k].offset)
			return false;
		end = params[k].offset + params[k].size;
	}
	return true;
}

/* Symbols in global memory come first. */
static bool check_symbols(const struct object *o)
{
	const struct weir_object_symbol *symbols;
	uint32_t space = WEIR_OBJECT_GLOBAL;

	if (!lies_inside(o, o->head->symbols, o->head->n_symbols, sizeof(*symbols)))
		return false;
	symbols = (const void *)(o->bytes + o->head->symbols);
	for (uint32_t k = 0; k < o->head->n_symbols; k++) {
		const struct weir_object_symbol *s = &symbols[k];
		bool is_constant = s->space == WEIR_OBJECT_CONSTANT;

		if ((!is_constant && s->space != WEIR_OBJECT_GLOBAL) || s->space < space ||
		    !is_name(o, s->name) || (is_constant ? !is_name(o, s->copy) : s->copy))
			return false;
		space = s->space;
	}
	return true;
}

static bool check_image(const struct object *o)
{
	const struct weir_object *head = o->head;

	if (!lies_inside(o, head->image, head->image_size, 1))
		return false;
	if (!head->image_size)
		return true;
	return head->image >= sizeof(*head) &&
	       (!(head->flags & WEIR_OBJECT_IS_PTX) ||
		o->bytes[head->image + head->image_size - 1] == '\0');
}

int weir_object_check(const void *object, size_t size)
{
	const struct object o = {.head = object,
				 .bytes = object,
				 .size = size,
				 .last_nul = size ? memrchr(object, '\0', size) : NULL};

	if (size < sizeof(*o.head) || size > WEIR_OBJECT_MAX || (uintptr_t)object % ALIGN ||
	    o.head->magic != WEIR_OBJECT_MAGIC)
		return -EINVAL;
	if (o.head->version != WEIR_OBJECT_VERSION || o.head->abi != WEIR_PREEMPT_ABI ||
	    o.head->flags & ~WEIR_OBJECT_FLAGS)
		return -ENOTSUP;
	return o.head->size == size && is_name(&o, o.head->kernel) && check_image(&o) &&
			       check_forms(&o) && check_params(&o) && check_symbols(&o)
		       ? 0
		       : -EINVAL;
}
