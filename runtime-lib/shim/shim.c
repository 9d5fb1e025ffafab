#include "shim/shim.h"

#include "shim/weak-libc.h"

#include "weir/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>

extern void *forward_slots[]; /* of the stubs: where each goes */

static void *library;      /* from dlopen() */
static _Atomic int opened; /* 0: not tried, 1: ready, -1: there is none */

void *shim_function(const char *name)
{
	void *address = library ? weak_libc.dlsym(library, name) : NULL;

	if (address)
		return address;
	return library ? shim.function_missing : shim.library_missing;
}

static void open_library(void)
{
	char path[PATH_MAX];

	log_init("libweir", LOG_WARNING);
	if (weak_libc_bind_loader() && shim.find(path))
		library = weak_libc.dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library)
		log_debug("%s is %s", shim.name, path);
	else
		log_debug("there is no %s here", shim.name);
	shim.opened(library);
	atomic_store(&opened, library ? 1 : -1);
}

bool shim_ready(void)
{
	static struct once opening;

	int state = atomic_load_explicit(&opened, memory_order_acquire);
	if (!state) {
		once(&opening, open_library);
		state = atomic_load(&opened);
	}
	return state > 0;
}

/* Called by the forwarders' stubs, once for each function that is used. */
void *forward_resolve(size_t index);
void *forward_resolve(size_t index)
{
	shim_ready();
	void *address = shim_function(shim.forwarded[index]);
	__atomic_store_n(&forward_slots[index], address, __ATOMIC_RELEASE);
	return address;
}
