/* Replaces %ctaid and %nctaid by values. %clusterid and %nclusterid are the same, because no form
 * is launched in clusters. The grid's size comes from the hidden parameter. In sliced the block
 * index is the launch's own plus an offset; in the other forms the loop around the blocks writes it
 * to registers. */
#include "passes/pass.h"

#include <stddef.h>
#include <stdio.h>

static const char *const index_names[] = {"%ctaid.x", "%ctaid.y", "%ctaid.z"};
static const char *const grid_names[] = {"%nctaid.x", "%nctaid.y", "%nctaid.z"};

static void load_hidden(struct cursor *at, struct rewrite *rewrite, struct reg *to, size_t offset)
{
	char ptx[64];

	snprintf(ptx, sizeof(ptx), "ld.param.u32 %%0, [%%1+%zu];", offset);
	edit_code(at, ptx, op_reg(to), op_variable(rewrite->hidden));
}

static void replace_index(struct cursor *at, struct rewrite *rewrite, unsigned axis)
{
	struct function *f = rewrite->function;
	struct reg *index, *first;

	if (!edit_uses_special(f, index_names[axis]))
		return;
	index = edit_named_register(f, TYPE_b32, "index");
	edit_replace_special(f, index_names[axis], op_reg(index));
	rewrite->index[axis] = index;
	if (rewrite->form->id != WEIR_SLICED)
		return;
	first = edit_named_register(f, TYPE_b32, "first");
	load_hidden(at, rewrite, first, offsetof(struct weir_slice, first) + axis * 4);
	edit_code(at, "mov.u32 %0, %1; add.u32 %0, %0, %2;", op_reg(index),
		  op_special(f, index_names[axis]), op_reg(first));
}

static void replace_grid(struct cursor *at, struct rewrite *rewrite, unsigned axis)
{
	struct function *f = rewrite->function;
	size_t offset = rewrite->form->id == WEIR_SLICED ? offsetof(struct weir_slice, grid)
							 : offsetof(struct weir_persistent, grid);
	struct reg *size;

	if (!edit_uses_special(f, grid_names[axis]))
		return;
	size = edit_named_register(f, TYPE_b32, "grid");
	edit_replace_special(f, grid_names[axis], op_reg(size));
	load_hidden(at, rewrite, size, offset + axis * 4);
}

static void name_clusters(struct function *f)
{
	static const char *const names[][2] = {
		{"%clusterid.x", "%ctaid.x"},   {"%clusterid.y", "%ctaid.y"},
		{"%clusterid.z", "%ctaid.z"},   {"%clusterid.w", "%ctaid.w"},
		{"%nclusterid.x", "%nctaid.x"}, {"%nclusterid.y", "%nctaid.y"},
		{"%nclusterid.z", "%nctaid.z"}, {"%nclusterid.w", "%nctaid.w"},
	};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (edit_uses_special(f, names[k][0]))
			edit_replace_special(f, names[k][0], op_special(f, names[k][1]));
}

/* The fourth parts are constant. */
static void replace_fourth(struct function *f)
{
	edit_replace_special(f, "%ctaid.w", op_int(0));
	edit_replace_special(f, "%nctaid.w", op_int(1));
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct block *start = edit_block(f, NULL, "values");
	struct cursor at = cursor_start(f, start);

	name_clusters(f);
	for (unsigned axis = 0; axis < 3; axis++) {
		replace_index(&at, rewrite, axis);
		replace_grid(&at, rewrite, axis);
	}
	replace_fourth(f);
}

const struct pass pass_block_index = {"block-index", run};
