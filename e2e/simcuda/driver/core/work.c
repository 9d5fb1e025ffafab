/* Copies of struct work, for ops and for nodes of graphs. */
#include "simcuda/driver/exec.h"

#include "simcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

static void *duplicate(const void *from, size_t size)
{
	void *copy = malloc(size ? size : 1);

	if (copy && size)
		memcpy(copy, from, size);
	return copy;
}

static size_t copy_bytes(const struct work *w)
{
	return w->copy.width * w->copy.rows * w->copy.slices;
}

/* A copy of what @w owns; null: it owns nothing, or no memory. */
static void *copy_owned(const struct work *w)
{
	switch (w->kind) {
	case WORK_KERNEL:
		return duplicate(w->kernel.params,
				 ptx_kernel_param_bytes(w->kernel.function->kernel));
	case WORK_MEMOPS:
		return duplicate(w->memops.ops, w->memops.count * sizeof(*w->memops.ops));
	case WORK_COPY:
		return w->copy.staged ? duplicate(w->copy.staged, copy_bytes(w)) : NULL;
	case WORK_GRAPH:
		return graph_copy(w->graph);
	default:
		return NULL;
	}
}

static bool owns(const struct work *w)
{
	return w->kind == WORK_KERNEL || w->kind == WORK_MEMOPS || w->kind == WORK_GRAPH ||
	       (w->kind == WORK_COPY && w->copy.staged);
}

bool work_clone(struct work *out, const struct work *from)
{
	void *copy = copy_owned(from);

	if (owns(from) && !copy)
		return false;
	*out = *from;
	switch (from->kind) {
	case WORK_KERNEL:
		out->kernel.params = copy;
		out->kernel.launch.params = copy;
		module_ref(out->kernel.module);
		break;
	case WORK_MEMOPS:
		out->memops.ops = copy;
		break;
	case WORK_COPY:
		out->copy.staged = copy;
		if (copy)
			out->copy.from.base = copy;
		break;
	case WORK_GRAPH:
		out->graph = copy;
		break;
	default:
		break;
	}
	return true;
}

void work_deinit(struct work *w)
{
	switch (w->kind) {
	case WORK_KERNEL:
		free(w->kernel.params);
		module_unref(w->kernel.module);
		break;
	case WORK_MEMOPS:
		free(w->memops.ops);
		break;
	case WORK_COPY:
		free(w->copy.staged);
		break;
	case WORK_GRAPH:
		graph_free(w->graph);
		break;
	default:
		break;
	}
	memset(w, 0, sizeof(*w));
}
