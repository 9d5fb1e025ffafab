#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"

/* Under the driver's root, in this order. */
static const char *const library_dirs[] = {
	"usr/lib/" ARCH_TRIPLET,
	"usr/lib/" ARCH_TRIPLET "/nvidia/current",
	"usr/lib64",
	"usr/lib64/nvidia",
	"usr/local/nvidia/lib64",
	"home/kubernetes/bin/nvidia/lib64",
	"usr/lib",
};
static const char *const smi_paths[] = {
	"usr/bin/nvidia-smi",
	"usr/local/nvidia/bin/nvidia-smi",
	"home/kubernetes/bin/nvidia/bin/nvidia-smi",
};

/* The libraries that CUDA programs need; `.so.` and a version follow. Not libcuda.so without
 * version: a program that opens it would bypass libweir. */
static const char *const library_names[] = {
	"libcuda",
	"libcudadebugger",
	"libnvidia-ml",
	"libnvidia-ptxjitcompiler",
	"libnvidia-nvvm",
	"libnvidia-nvvm70",
	"libnvidia-gpucomp",
	"libnvidia-opencl",
	"libnvidia-allocator",
	"libnvidia-cfg",
};

const char *const driver_nodes[] = {
	"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", NULL,
};
static const char *const container_dirs[] = {DRIVER_DIR_DEBIAN, DRIVER_DIR_REDHAT};

/* Files that make NVIDIA's runtime the default, and the text in them after simplify(). */
static const struct {
	const char *path;
	const char *text;
} runtimes[] = {
	{"/etc/containerd/config.toml", "default_runtime_name=\"nvidia\""},
	{"/etc/containerd/conf.d/99-nvidia.toml", "default_runtime_name=\"nvidia\""},
	{"/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
	 "default_runtime_name=\"nvidia\""},
	{"/etc/docker/daemon.json", "\"default-runtime\":\"nvidia\""},
	{"/etc/crio/crio.conf.d/99-nvidia.conf", "default_runtime=\"nvidia\""},
};

/* Opens a path of the host; symbolic links resolve inside the host's root. Does not wait, because
 * @flags has O_PATH or O_DIRECTORY. */
static int open_host(const struct config *config, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};
	cleanup(closep) int root = open(config->node_root[0] ? config->node_root : "/",
					O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return -errno;
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 &&
	    (errno == ENOSYS || errno == EPERM)) /* an old kernel, or its seccomp profile */
		fd = openat(root, path + strspn(path, "/"), flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool driver_host_has(const struct config *config, const char *path)
{
	cleanup(closep) int fd = open_host(config, path, O_PATH);

	return fd >= 0;
}

/* Removes blanks and comment lines, and turns all quotes into double quotes. */
static void simplify(char *text, size_t size)
{
	size_t n = 0;
	bool begins = true, comment = false;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n')
			begins = true;
		if (strchr(" \t\n", text[i])) /* matches NUL, too */
			continue;
		if (begins)
			comment = text[i] == '#';
		begins = false;
		if (!comment)
			text[n++] = text[i] == '\'' ? '"' : text[i];
	}
	text[n] = '\0';
}

static bool host_says(const struct config *config, const char *path, const char *text)
{
	enum { LIMIT = 256 << 10 };
	cleanup(closep) int fd = open_host(config, path, O_PATH);
	cleanup(freep) char *content = fd < 0 ? NULL : malloc(LIMIT + 1);
	char opened[32];

	if (!content)
		return false;
	snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	ssize_t n = file_read(AT_FDCWD, opened, content, LIMIT + 1);
	if (n <= 0)
		return false;
	simplify(content, (size_t)n);
	return strstr(content, text);
}

static bool has_nvidia_runtime(const struct config *config)
{
	for (size_t i = 0; i < countof(runtimes); i++)
		if (host_says(config, runtimes[i].path, runtimes[i].text))
			return true;
	return false;
}

/* The first of @paths under the driver's root in which @file exists. @file "": the path itself
 * exists. */
static char *find(const struct config *config, const char *const *paths, size_t n, const char *file)
{
	for (size_t i = 0; i < n; i++) {
		cleanup(freep) char *path = NULL, *whole = NULL;
		const char *root = config->driver.root;
		if (asprintf(&path, "%s%s%s", root, root[strlen(root) - 1] == '/' ? "" : "/",
			     paths[i]) < 0)
			return NULL;
		if (asprintf(&whole, "%s%s", path, file) < 0)
			return NULL;
		if (driver_host_has(config, whole))
			return take(path);
	}
	return NULL;
}

static bool is_needed(const char *file)
{
	for (size_t i = 0; i < countof(library_names); i++) {
		size_t n = strlen(library_names[i]);
		if (strncmp(file, library_names[i], n) == 0 && strncmp(file + n, ".so.", 4) == 0)
			return true;
	}
	return false;
}

/* Lists the libraries that exist. Mounting a dangling link would fail every container's start. */
static int list_libraries(struct driver *driver, const struct config *config)
{
	int fd = open_host(config, driver->libraries, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!dir) {
		closep(&fd);
		return fd < 0 ? fd : -errno;
	}
	for (struct dirent *entry; (entry = readdir(dir)) && driver->n_files < DRIVER_FILES_MAX;) {
		char *path = NULL;
		if (!is_needed(entry->d_name))
			continue;
		if (asprintf(&path, "%s/%s", driver->libraries, entry->d_name) < 0) {
			r = -ENOMEM;
			break;
		}
		if (driver_host_has(config, path))
			driver->files[driver->n_files++] = path;
		else
			free(path);
	}
	closedir(dir);
	return r;
}

bool driver_gpu_node(char out[DRIVER_NODE_MAX], const struct config *config, int minor)
{
	snprintf(out, DRIVER_NODE_MAX, "/dev/nvidia%d", minor);
	return minor >= 0 && driver_host_has(config, out);
}

void driver_each_file(const struct driver *driver,
		      void (*each)(void *owner, const char *host, const char *container),
		      void *owner)
{
	char container[512];

	if (!driver->mount || !driver->libraries)
		return;
	for (size_t d = 0; d < countof(container_dirs); d++) {
		for (size_t i = 0; i < driver->n_files; i++) {
			snprintf(container, sizeof(container), "%s%s", container_dirs[d],
				 strrchr(driver->files[i], '/'));
			each(owner, driver->files[i], container);
		}
	}
	if (driver->smi)
		each(owner, driver->smi, DRIVER_SMI_FILE);
}

/* Whether the plugin mounts the driver. With CDI it must, because NVIDIA's runtime then adds
 * nothing. */
static bool is_ours(const struct config *config)
{
	if (config->device_list != DEVICE_LIST_ENVVAR && !config_cdi_is_ours(config))
		return false;
	if (config->driver.mount != DRIVER_MOUNT_AUTO)
		return config->driver.mount == DRIVER_MOUNT_ALWAYS;
	return config->device_list != DEVICE_LIST_ENVVAR || !has_nvidia_runtime(config);
}

int driver_init(struct driver *driver, const struct config *config)
{
	const char *given = config->driver.libraries;

	*driver = (struct driver){.mount = is_ours(config)};
	if (!given[0])
		driver->libraries =
			find(config, library_dirs, countof(library_dirs), "/libcuda.so.1");
	else if (!(driver->libraries = strdup(given)))
		return error_origin(-ENOMEM);
	driver->smi = find(config, smi_paths, countof(smi_paths), "");
	if (driver->libraries && list_libraries(driver, config) == -ENOMEM) {
		driver_deinit(driver);
		return error_origin(-ENOMEM);
	}
	return 0;
}

void driver_deinit(struct driver *driver)
{
	for (size_t i = 0; i < driver->n_files; i++)
		free(driver->files[i]);
	free(driver->libraries);
	free(driver->smi);
	*driver = (struct driver){0};
}

char *driver_nvml(const struct driver *driver, const struct config *config)
{
	cleanup(freep) char *path = NULL;

	if (config->driver.nvml[0])
		return strdup(config->driver.nvml);
	if (!driver->libraries)
		return NULL;
	if (asprintf(&path, "%s%s/libnvidia-ml.so.1", config->node_root, driver->libraries) < 0)
		return NULL;
	return access(path, R_OK) == 0 ? take(path) : NULL;
}
