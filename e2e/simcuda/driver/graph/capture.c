/* Stream capture: work in a capturing stream becomes nodes of a graph. `heads` of such a stream are
 * the nodes before its next node. Events carry heads to other streams; a stream that waits for such
 * an event joins the capture.
 *
 * A call that cannot be captured invalidates the capture. It stays open, every further call fails,
 * and its end yields no graph.
 */
#include "simcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

struct capture {
	uint64_t id;
	CUstreamCaptureMode mode;
	struct stream *origin;
	const void *thread; /* that began it */
	struct graph *graph;
	bool invalid;
	bool borrowed; /* the graph was there before */
	struct capture *next;
};

static struct capture *sessions;

static CUresult invalidate(struct capture *c, CUresult why)
{
	c->invalid = true;
	return why;
}

static bool set_heads(struct stream *s, struct node *const *heads, size_t n)
{
	struct node **copy = malloc((n + 1) * sizeof(struct node *));

	if (!copy)
		return false;
	if (n)
		memcpy(copy, heads, n * sizeof(struct node *));
	free(s->heads);
	s->heads = copy;
	s->n_heads = n;
	return true;
}

static bool add_head(struct stream *s, struct node *head)
{
	struct node **grown;

	for (size_t i = 0; i < s->n_heads; i++)
		if (s->heads[i] == head)
			return true;
	grown = realloc(s->heads, (s->n_heads + 1) * sizeof(struct node *));
	if (!grown)
		return false;
	s->heads = grown;
	s->heads[s->n_heads++] = head;
	return true;
}

CUresult capture_add(struct stream *s, struct work *work)
{
	struct node *n;

	if (s->capture->invalid) {
		work_deinit(work);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	work->ctx = s->ctx;
	RETURN_IF(graph_add(&n, s->capture->graph, work, s->heads, s->n_heads));
	return set_heads(s, &n, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult capture_record(struct stream *s, struct event *e)
{
	struct node **heads;

	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	heads = malloc((s->n_heads + 1) * sizeof(struct node *));
	if (!heads)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(heads, s->heads, s->n_heads * sizeof(struct node *));
	capture_forget_event(e);
	e->capture = s->capture;
	e->heads = heads;
	e->n_heads = s->n_heads;
	return CUDA_SUCCESS;
}

CUresult capture_wait(struct stream *s, struct event *e)
{
	if (s->capture && s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!e->capture) {
		if (!e->op || !s->capture) /* never recorded: nothing to wait for */
			return CUDA_SUCCESS;
		return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	}
	if (e->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (s->legacy)
		return invalidate(e->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	if (s->capture && s->capture != e->capture) {
		invalidate(e->capture, CUDA_SUCCESS);
		return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (!s->capture) {
		if (!set_heads(s, e->heads, e->n_heads))
			return CUDA_ERROR_OUT_OF_MEMORY;
		s->capture = e->capture;
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < e->n_heads; i++)
		if (!add_head(s, e->heads[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

void capture_forget_event(struct event *e)
{
	e->capture = NULL;
	free(e->heads);
	e->heads = NULL;
	e->n_heads = 0;
}

static void leave(struct stream *s)
{
	s->capture = NULL;
	free(s->heads);
	s->heads = NULL;
	s->n_heads = 0;
}

/* Releases all streams and events. The graph stays. */
static void end(struct capture *c)
{
	struct capture **at = &sessions;

	for (struct context *ctx = sim.contexts; ctx; ctx = ctx->next) {
		for (struct stream *s = ctx->streams; s; s = s->next)
			if (s->capture == c)
				leave(s);
		for (struct event *e = ctx->events; e; e = e->next)
			if (e->capture == c)
				capture_forget_event(e);
	}
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	free(c);
}

/* A stream that is destroyed under capture. */
void capture_forget_stream(struct stream *s)
{
	struct capture *c = s->capture;

	if (!c)
		return;
	invalidate(c, CUDA_SUCCESS);
	leave(s);
	if (c->origin != s)
		return;
	if (!c->borrowed)
		graph_free(c->graph);
	end(c);
}

bool capture_uses(const struct graph *g)
{
	for (const struct capture *c = sessions; c; c = c->next)
		if (c->graph == g)
			return true;
	return false;
}

CUresult capture_allows(void)
{
	CUstreamCaptureMode mode = *thread_capture_mode();

	if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct capture *c = sessions; c; c = c->next) {
		bool own = c->thread == thread_self();

		if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (own || (mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
			    c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL))
			return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	return CUDA_SUCCESS;
}

CUresult capture_legacy(const struct context *ctx)
{
	if (!sessions)
		return CUDA_SUCCESS;
	for (struct stream *s = ctx->streams; s; s = s->next)
		if (s->capture && stream_blocking(s))
			return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	return CUDA_SUCCESS;
}

CUresult capture_context(const struct context *ctx)
{
	for (struct stream *s = ctx->streams; s; s = s->next)
		if (s->capture)
			return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return CUDA_SUCCESS;
}

CUresult capture_stream_idle(struct stream *s)
{
	if (!sessions)
		return CUDA_SUCCESS;
	if (s->capture)
		return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (s->legacy)
		RETURN_IF(capture_legacy(s->ctx));
	return capture_allows();
}

static CUresult begin(struct stream *s, CUstreamCaptureMode mode, struct graph *graph)
{
	struct capture *c;

	if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->graph = graph ? graph : graph_new();
	c->borrowed = graph != NULL;
	if (!c->graph || (!graph && !graph_give_handles(c->graph)) || !set_heads(s, NULL, 0)) {
		if (!graph)
			graph_free(c->graph);
		free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->id = ++sim.next_id;
	c->mode = mode;
	c->origin = s;
	c->thread = thread_self();
	c->next = sessions;
	sessions = c;
	s->capture = c;
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	API_ENTER();
	struct stream *s;

	RETURN_IF(stream_get(&s, stream));
	return begin(s, mode, NULL);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
	return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
				     const CUgraphEdgeData *edges, size_t n,
				     CUstreamCaptureMode mode)
{
	API_ENTER();
	cleanup(freep) struct node **heads = NULL;
	struct graph *g = handle_get(HANDLE_GRAPH, graph);
	struct stream *s;

	if (!edges_plain(edges, n))
		return CUDA_ERROR_NOT_SUPPORTED;
	RETURN_IF(stream_get(&s, stream));
	if (!g || (n && !nodes) || n > g->n)
		return CUDA_ERROR_INVALID_VALUE;
	heads = calloc(n + 1, sizeof(struct node *));
	if (!heads)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!graph_nodes(heads, nodes, n, g))
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(begin(s, mode, g));
	return set_heads(s, heads, n) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Marks @n and all nodes before it. Nodes are in order of creation, so one sweep from the newest
 * node back needs no recursion. */
static void mark_before(struct graph *g, const struct stream *origin)
{
	size_t n = 0;
	struct node **order = calloc(g->n + 1, sizeof(struct node *));

	if (!order)
		return;
	for (struct node *node = g->first; node; node = node->next) {
		node->placed = false;
		order[n++] = node;
	}
	for (size_t i = 0; i < origin->n_heads; i++)
		origin->heads[i]->placed = true;
	while (n-- > 0)
		for (size_t i = 0; order[n]->placed && i < order[n]->n_from; i++)
			order[n]->from[i]->placed = true;
	free(order);
}

/* All work captured in other streams must have been joined into the first one. */
static bool joined(const struct capture *c)
{
	mark_before(c->graph, c->origin);
	for (const struct context *ctx = sim.contexts; ctx; ctx = ctx->next)
		for (const struct stream *s = ctx->streams; s; s = s->next)
			for (size_t i = 0; s->capture == c && i < s->n_heads; i++)
				if (!s->heads[i]->placed)
					return false;
	return true;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
	API_ENTER();
	struct stream *s;
	struct capture *c;
	CUresult r;

	RETURN_IF(stream_get(&s, stream));
	c = s->capture;
	if (!c)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	if (c->origin != s)
		return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != thread_self())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	r = c->invalid  ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	    : joined(c) ? CUDA_SUCCESS
			: CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (r == CUDA_SUCCESS)
		*out = c->graph->handle;
	else if (!c->borrowed)
		graph_free(c->graph);
	end(c);
	return r;
}

static CUstreamCaptureStatus status_of(const struct stream *s)
{
	if (!s->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
				   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* The legacy stream cannot be asked while a stream it synchronises with is captured; that does no
 * harm. */
static CUresult get_askable(struct stream **out, CUstream stream)
{
	RETURN_IF(stream_get(out, stream));
	for (struct stream *s = (*out)->ctx->streams; (*out)->legacy && s; s = s->next)
		if (s->capture && stream_blocking(s))
			return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return CUDA_SUCCESS;
}

API_TELLS(cuStreamIsCapturing, (CUstream stream, OUT(CUstreamCaptureStatus)), stream, s,
	  get_askable(&s, stream), status_of(s))

/* Handles of the heads, valid until the next call for the same stream. */
static CUresult head_handles(struct stream *s, const CUgraphNode **out)
{
	CUgraphNode *handles = realloc(s->head_handles, (s->n_heads + 1) * sizeof(CUgraphNode));

	if (!handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->head_handles = handles;
	for (size_t i = 0; i < s->n_heads; i++)
		handles[i] = s->heads[i]->handle;
	*out = handles;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **nodes, size_t *n)
{
	API_ENTER();
	struct stream *s;

	RETURN_IF(get_askable(&s, stream));
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = status_of(s);
	if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = s->capture->id;
	if (graph)
		*graph = s->capture->graph->handle;
	if (n)
		*n = s->n_heads;
	return nodes ? head_handles(s, nodes) : CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **nodes,
				   const CUgraphEdgeData **edges, size_t *n)
{
	if (edges)
		*edges = NULL; /* all are plain */
	return cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, n);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t n,
					   unsigned int flags)
{
	API_ENTER();
	cleanup(freep) struct node **heads = NULL;
	struct stream *s;

	RETURN_IF(stream_get(&s, stream));
	if (!s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !nodes) || n > s->capture->graph->n)
		return CUDA_ERROR_INVALID_VALUE;
	heads = calloc(n + 1, sizeof(struct node *));
	if (!heads)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!graph_nodes(heads, nodes, n, s->capture->graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return set_heads(s, heads, n) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++)
		if (!add_head(s, heads[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes,
					      const CUgraphEdgeData *edges, size_t n,
					      unsigned int flags)
{
	if (!edges_plain(edges, n))
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuStreamUpdateCaptureDependencies(stream, nodes, n, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = *thread_capture_mode();

	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	*thread_capture_mode() = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
