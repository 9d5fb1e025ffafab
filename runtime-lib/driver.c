/* Finding the real driver. Our SONAME is libcuda.so.1, so the loader answers that name with us; the
 * driver must be opened by its absolute path. Searched like the loader does: $LD_LIBRARY_PATH, the
 * loader's cache, then the folders where drivers are known to lie. */
#include "driver.h"

#include "late.h"

#include "weir/base.h"
#include "weir/log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DRIVER_NAME "libcuda.so.1"

struct hook driver_hooks[HOOKS] = {
#define HOOK(function) [HOOK_##function] = {.name = #function, .replacement = (void *)(function)},
#define USE(function)  [HOOK_##function] = {.name = #function},
#include "hooks.def"
#undef HOOK
#undef USE
};

static const char *const forwarded_names[] = {
#include "forward-names.inc"
};
extern void *forward_slots[countof(forwarded_names)];

static void *driver;       /* from dlopen() */
static _Atomic int loaded; /* 0: not tried, 1: ready, -1: there is none */

/* What stands in for a function that this driver does not have. */
static CUresult function_missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult driver_missing(void)
{
	return CUDA_ERROR_NO_DEVICE;
}

/* For dl_iterate_phdr(): is this library the one that holds this code? Its path goes to @path. */
static int find_self(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)find_self >= start &&
		    (uintptr_t)find_self < start + info->dlpi_phdr[i].p_memsz)
			return snprintf(path, PATH_MAX, "%s", info->dlpi_name) > 0;
	}
	return 0;
}

/* True if @path is a file other than ourselves. */
static bool is_driver(const char *path)
{
	struct stat file, own;
	char self[PATH_MAX];

	if (stat(path, &file) < 0 || !S_ISREG(file.st_mode))
		return false;
	return !dl_iterate_phdr(find_self, self) || stat(self, &own) < 0 ||
	       file.st_dev != own.st_dev || file.st_ino != own.st_ino;
}

static bool try_folder(char *path, const char *folder, size_t length)
{
	int n = snprintf(path, PATH_MAX, "%.*s/" DRIVER_NAME, (int)length, folder);

	return length && n < PATH_MAX && is_driver(path);
}

static bool search_list(char *path, const char *list)
{
	while (list && *list) {
		size_t length = strcspn(list, ":");
		/* Only absolute folders: a driver from the working directory would be a trap. */
		if (list[0] == '/' && try_folder(path, list, length))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

/* ld.so.cache, format 1.1: a header, entries, and a table of strings to which offsets from the
 * header point. See `ldconfig` in glibc for the layout. */
struct cache_header {
	char magic[20];
	uint32_t entries;
	uint32_t strings;
	uint32_t unused[5];
};
struct cache_entry {
	int32_t flags;
	uint32_t key, value;
	uint32_t os_version;
	uint64_t hwcap;
};
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
#define CACHE_X8664 0x0303 /* ELF, libc6, x86-64 */

static bool search_cache_image(char *path, const char *image, size_t size)
{
	const struct cache_header *header = (const void *)image;

	if (size < sizeof(*header) ||
	    memcmp(header->magic, CACHE_MAGIC, sizeof(header->magic)) != 0)
		return false;
	if (header->entries > (size - sizeof(*header)) / sizeof(struct cache_entry))
		return false;

	const struct cache_entry *entries = (const void *)(header + 1);
	for (uint32_t i = 0; i < header->entries; i++) {
		uint32_t key = entries[i].key, value = entries[i].value;
		if (entries[i].flags != CACHE_X8664 || key >= size || value >= size)
			continue;
		if (strncmp(image + key, DRIVER_NAME, size - key) != 0 ||
		    !memchr(image + value, '\0', size - value))
			continue;
		if (snprintf(path, PATH_MAX, "%s", image + value) < PATH_MAX && is_driver(path))
			return true;
	}
	return false;
}

static bool search_cache(char *path)
{
	cleanup(closep) int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) < 0 || info.st_size <= 0)
		return false;
	void *image = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		return false;
	bool found = search_cache_image(path, image, (size_t)info.st_size);
	munmap(image, (size_t)info.st_size);
	return found;
}

bool driver_find(char *path)
{
	const char *given = getenv("WEIR_DRIVER");

	if (given && given[0] == '/') {
		if (snprintf(path, PATH_MAX, "%s", given) < PATH_MAX && is_driver(path))
			return true;
		log_warning("WEIR_DRIVER=%s is no driver, searching", given);
	}
	return search_list(path, getenv("LD_LIBRARY_PATH")) || search_cache(path) ||
	       search_list(path,
			   "/usr/local/nvidia/lib64:/usr/lib/x86_64-linux-gnu:/usr/lib64:"
			   "/usr/lib64/nvidia:/lib/x86_64-linux-gnu:/usr/lib:/usr/local/nvidia/lib:"
			   "/run/opengl-driver/lib:/usr/lib/wsl/lib");
}

static void load(void)
{
	char path[PATH_MAX];

	log_init("libweir", LOG_WARNING);
	if (late_bind_loader() && driver_find(path))
		driver = late.dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (driver)
		late_bind_threads(driver);
	if (driver)
		log_debug("the driver is %s", path);
	else
		log_debug("there is no CUDA driver here");

	void *missing = driver ? (void *)function_missing : (void *)driver_missing;
	for (size_t i = 0; i < HOOKS; i++) {
		void *address = driver ? late.dlsym(driver, driver_hooks[i].name) : NULL;
		driver_hooks[i].real = address ? address : missing;
	}
	atomic_store(&loaded, driver ? 1 : -1);
}

bool driver_ready(void)
{
	static struct once loading;

	int state = atomic_load_explicit(&loaded, memory_order_acquire);
	if (!state) {
		once(&loading, load);
		state = atomic_load(&loaded);
	}
	return state > 0;
}

void *driver_swap(void *address)
{
	for (size_t i = 0; i < HOOKS; i++) {
		if (driver_hooks[i].replacement && driver_hooks[i].real == address)
			return driver_hooks[i].replacement;
	}
	return address;
}

/* Called by the forwarders' stubs, once for each function that is used. */
void *forward_resolve(size_t index);
void *forward_resolve(size_t index)
{
	void *address = driver_ready() ? late.dlsym(driver, forwarded_names[index]) : NULL;

	if (!address)
		address = driver ? (void *)function_missing : (void *)driver_missing;
	__atomic_store_n(&forward_slots[index], address, __ATOMIC_RELEASE);
	return address;
}
