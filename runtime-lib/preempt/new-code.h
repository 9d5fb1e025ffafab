/* Code with PTX that was loaded lately, and that no client has looked at yet (ahead.h). The oldest
 * is forgotten when there is too much. */
#pragma once

#include "client/client.h"

#define NEW_CODES_MAX 32u

struct new_code {
	const void *handle;
	bool library;
	CUcontext context; /* of a module */
	uint64_t at;       /* ns, when it was loaded */
};

/* Code with PTX was loaded. @library: a CUlibrary, else a CUmodule of the current context. */
void new_code_loaded(const void *handle, bool library);
/* Before it is unloaded; then worker_grace(). */
void new_code_unloaded(const void *handle);
/* Before the context ends, when it has no client any more. */
void new_code_context_gone(CUcontext context);

/* Worker: there is some that the client may launch, and that was loaded at @until or before. */
bool new_code_waits(const struct client *client, uint64_t until);
/* Worker: takes it. False: there is none. */
bool new_code_take(const struct client *client, uint64_t until, struct new_code *out);

/* In a forked child. */
void new_code_fork(void);
