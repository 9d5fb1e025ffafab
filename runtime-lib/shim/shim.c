#include "shim/shim.h"

#include "shim/weak-libc.h"

#include "weir/log.h"

#include <dlfcn.h>
#include <limits.h>

extern void *forward_slots[]; /* where each stub jumps to */

static void *library; /* from dlopen() */
_Atomic int shim_opened;

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
	atomic_store(&shim_opened, library ? 1 : -1);
}

bool shim_open(void)
{
	static struct once opening;

	once(&opening, open_library);
	return atomic_load(&shim_opened) > 0;
}

/* The forwarders' stubs call it once for each function that is used. */
void *forward_resolve(size_t index);
void *forward_resolve(size_t index)
{
	shim_ready();
	void *address = shim_function(shim.forwarded[index]);
	__atomic_store_n(&forward_slots[index], address, __ATOMIC_RELEASE);
	return address;
}
