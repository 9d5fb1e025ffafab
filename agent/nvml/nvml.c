#include "weir/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir/arch.h"
#include "weir/base.h"

/* In this order. The last ones are the host's driver: our pod has the host's root at /host. */
static const char *const places[] = {
	"libnvidia-ml.so.1",
	"/usr/lib64/libnvidia-ml.so.1",
	"/usr/lib/" ARCH_TRIPLET "/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib/" ARCH_TRIPLET "/libnvidia-ml.so.1",
	"/host/usr/lib64/libnvidia-ml.so.1",
	"/host/usr/lib/" ARCH_TRIPLET "/libnvidia-ml.so.1",
	"/host/usr/lib/" ARCH_TRIPLET "/nvidia/current/libnvidia-ml.so.1",
	"/host/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/host/home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.1",
	"/host/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1",
	"/host/run/nvidia/driver/usr/lib/" ARCH_TRIPLET "/libnvidia-ml.so.1",
};

/* NVML's header maps some names to newer versions by macros. Expand them before stringizing.
 */
#define TEXT(name)  TEXT_(name)
#define TEXT_(name) #name

#define NVML_ROW(name, required) {TEXT(name), offsetof(struct nvml, name), required},
static const struct {
	const char *name;
	size_t offset;
	bool required;
} functions[] = {NVML_FUNCTIONS(NVML_ROW)};
#undef NVML_ROW

static void *open_library(const char *path, char *found, size_t found_size)
{
	bool search = !path || !*path;
	void *library = NULL;

	for (size_t i = 0; !library && i < (search ? countof(places) : 1); i++) {
		const char *place = search ? places[i] : path;
		library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
		snprintf(found, found_size, "%s", place);
	}
	return library;
}

static const char *find_functions(struct nvml *nvml)
{
	for (size_t i = 0; i < countof(functions); i++) {
		void *address = dlsym(nvml->library, functions[i].name);
		if (!address && functions[i].required)
			return functions[i].name;
		memcpy((char *)nvml + functions[i].offset, &address, sizeof(address));
	}
	return NULL;
}

int nvml_open(struct nvml *out, const char *path, char *message, size_t message_size)
{
	struct nvml nvml = {0};

	nvml.library = open_library(path, nvml.path, sizeof(nvml.path));
	if (!nvml.library) {
		snprintf(message, message_size, "no NVML: %s",
			 path && *path ? dlerror() : "libnvidia-ml.so.1 is nowhere");
		return -ENOENT;
	}

	const char *missing = find_functions(&nvml);
	if (missing) {
		snprintf(message, message_size, "NVML at %s lacks %s", nvml.path, missing);
		dlclose(nvml.library);
		return -ENOSYS;
	}

	nvmlReturn_t r = nvml.nvmlInit_v2();
	if (r != NVML_SUCCESS) {
		snprintf(message, message_size, "NVML at %s does not start: %s", nvml.path,
			 nvml_error(&nvml, r));
		dlclose(nvml.library);
		return -ENXIO;
	}
	*out = nvml;
	return 0;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml->library)
		return;
	nvml->nvmlShutdown();
	dlclose(nvml->library);
	nvml->library = NULL;
}

const char *nvml_error(const struct nvml *nvml, nvmlReturn_t error)
{
	return nvml->nvmlErrorString ? nvml->nvmlErrorString(error) : "unknown error";
}
