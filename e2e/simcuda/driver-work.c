/* Copies of what is to be done, for ops and for the nodes of graphs. */
#include "exec.h"

#include "graph.h"

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

bool work_clone(struct work *out, const struct work *from)
{
	struct work w = *from;

	switch (from->kind) {
	case WORK_KERNEL:
		w.kernel.params = duplicate(from->kernel.params,
					    ptx_kernel_param_bytes(from->kernel.function->kernel));
		if (!w.kernel.params)
			return false;
		w.kernel.launch.params = w.kernel.params;
		module_ref(w.kernel.module);
		break;
	case WORK_MEMOPS:
		w.memops.ops =
			duplicate(from->memops.ops, from->memops.count * sizeof(*from->memops.ops));
		if (!w.memops.ops)
			return false;
		break;
	case WORK_COPY:
		if (!from->copy.staged)
			break;
		w.copy.staged = duplicate(from->copy.staged, copy_bytes(from));
		if (!w.copy.staged)
			return false;
		w.copy.from.base = w.copy.staged;
		break;
	case WORK_GRAPH:
		w.graph = graph_copy(from->graph);
		if (!w.graph)
			return false;
		break;
	default:
		break;
	}
	*out = w;
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
