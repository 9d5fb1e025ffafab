#include "shim/search.h"

#include "shim/loader-cache.h"

#include "weir/arch.h"
#include "weir/base.h"
#include "weir/file.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_MAX (64u << 20) /* bytes */

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
static bool is_other(const char *path)
{
	struct stat file, own;
	char self[PATH_MAX];

	if (stat(path, &file) < 0 || !S_ISREG(file.st_mode))
		return false;
	return !dl_iterate_phdr(find_self, self) || stat(self, &own) < 0 ||
	       file.st_dev != own.st_dev || file.st_ino != own.st_ino;
}

static bool try_folder(char *path, const char *name, const char *folder, size_t length)
{
	int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name);

	return length && n < PATH_MAX && is_other(path);
}

static bool search_list(char *path, const char *name, const char *list)
{
	while (list && *list) {
		size_t length = strcspn(list, ":");
		/* Only absolute folders: a library from the working directory would be a trap. */
		if (list[0] == '/' && try_folder(path, name, list, length))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

bool search_given(char *path, const char *given)
{
	return snprintf(path, PATH_MAX, "%s", given) < PATH_MAX && is_other(path);
}

static bool search_cache(char *path, const char *name)
{
	cleanup(closep) int fd = file_open(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY);
	size_t size, at = 0;
	cleanup(freep) char *cache = file_load(fd, CACHE_MAX, &size);
	const char *entry;

	while (cache && (entry = loader_cache_next(cache, size, name, &at)))
		if (search_given(path, entry))
			return true;
	return false;
}

bool search_beside(char *path, const char *name, const char *neighbour)
{
	const char *end = strrchr(neighbour, '/');

	return neighbour[0] == '/' && end &&
	       try_folder(path, name, neighbour, (size_t)(end - neighbour));
}

bool search_library(char *path, const char *name)
{
	return search_list(path, name, getenv("LD_LIBRARY_PATH")) || search_cache(path, name) ||
	       search_list(path, name,
			   "/usr/local/nvidia/lib64:/usr/lib/" ARCH_TRIPLET ":/usr/lib64:"
			   "/usr/lib64/nvidia:/lib/" ARCH_TRIPLET ":/usr/lib:/usr/local/nvidia/lib:"
			   "/run/opengl-driver/lib:/usr/lib/wsl/lib");
}
