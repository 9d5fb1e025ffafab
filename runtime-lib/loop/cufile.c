#include "loop/cufile.h"

#include <dlfcn.h>
#include <string.h>

#define OPAQUE_FD 1

/* Function pointers do not convert from void pointers in C. */
static bool find(struct cufile *cufile, const char *name, void *function)
{
	void *found = dlsym(cufile->library, name);

	memcpy(function, &found, sizeof(found));
	return found != NULL;
}

void cufile_init(struct cufile *cufile, const char *name)
{
	*cufile = (struct cufile){0};
	cufile->library = *name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!cufile->library)
		return;
	if (find(cufile, "cuFileDriverOpen", &cufile->start) &&
	    /* Since CUDA 12.2 the header calls it so. */
	    (find(cufile, "cuFileDriverClose_v2", &cufile->stop) ||
	     find(cufile, "cuFileDriverClose", &cufile->stop)) &&
	    find(cufile, "cuFileHandleRegister", &cufile->add) &&
	    find(cufile, "cuFileHandleDeregister", &cufile->remove) &&
	    find(cufile, "cuFileRead", &cufile->read) &&
	    find(cufile, "cuFileWrite", &cufile->write) && !cufile->start().error)
		return;
	dlclose(cufile->library);
	cufile->library = NULL;
}

void cufile_deinit(struct cufile *cufile)
{
	if (!cufile->library)
		return;
	cufile->stop();
	dlclose(cufile->library);
	cufile->library = NULL;
}

void *cufile_add(const struct cufile *cufile, int fd)
{
	struct cufile_description description = {.type = OPAQUE_FD, .handle.fd = fd};
	void *handle = NULL;

	if (!cufile->library || cufile->add(&handle, &description).error)
		return NULL;
	return handle;
}

void cufile_remove(const struct cufile *cufile, void *handle)
{
	if (handle)
		cufile->remove(handle);
}
