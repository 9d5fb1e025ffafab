#include "cdi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "driver.h"
#include "gpu.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"

/* The first version that has all we use; containerd 1.7 knows it. */
#define VERSION_NAME "0.5.0"
#define FILE_MAX     (1u << 20)

/* @before as it is, and @text quoted. */
static void put_text(FILE *out, const char *before, const char *text)
{
	fprintf(out, "%s\"", before);
	for (; *text; text++) {
		if ((unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", (unsigned)*text);
		else
			fprintf(out, strchr("\"\\", *text) ? "\\%c" : "%c", *text);
	}
	fputc('"', out);
}

static void put_node(FILE *out, const char *path, bool first)
{
	put_text(out, first ? "{\"path\": " : ", {\"path\": ", path);
	fputs(", \"permissions\": \"rw\"}", out);
}

/* A device must have some edit. This one tells NVIDIA's runtime to add nothing. */
static void put_device(FILE *out, const struct config *config, const struct gpu *gpu)
{
	char node[DRIVER_NODE_MAX];

	put_text(out, "{\"name\": ", gpu->uuid);
	fputs(", \"containerEdits\": {\"env\": [\"NVIDIA_VISIBLE_DEVICES=void\"]", out);
	if (driver_gpu_node(node, config, gpu->minor)) {
		fputs(", \"deviceNodes\": [", out);
		put_node(out, node, true);
		fputc(']', out);
	}
	fputs("}}", out);
}

struct mounts {
	FILE *out;
	unsigned n;
};

static void put_mount(void *owner, const char *host, const char *container)
{
	struct mounts *mounts = owner;

	put_text(mounts->out,
		 mounts->n++ ? ",\n    {\"hostPath\": " : "\n    {\"hostPath\": ", host);
	put_text(mounts->out, ", \"containerPath\": ", container);
	fputs(", \"options\": [\"ro\", \"nosuid\", \"nodev\", \"bind\"]}", mounts->out);
}

static void put_common(FILE *out, const struct config *config, const struct driver *driver)
{
	struct mounts mounts = {.out = out};
	unsigned n = 0;

	fputs("{\n   \"deviceNodes\": [", out);
	for (const char *const *node = driver_nodes; *node; node++)
		if (driver_host_has(config, *node))
			put_node(out, *node, n++ == 0);
	fputs("],\n   \"mounts\": [", out);
	driver_each_file(driver, put_mount, &mounts);
	fputs("]}", out);
}

int cdi_format(char **out, const struct config *config, const struct driver *driver,
	       const struct gpu *gpus, unsigned n_gpus)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return error_origin(-ENOMEM);
	put_text(file, "{\"cdiVersion\": \"" VERSION_NAME "\",\n \"kind\": ", config->cdi.kind);
	fputs(",\n \"devices\": [", file);
	for (unsigned i = 0; i < n_gpus; i++) {
		fputs(i ? ",\n  " : "\n  ", file);
		put_device(file, config, &gpus[i]);
	}
	fputs("],\n \"containerEdits\": ", file);
	put_common(file, config, driver);
	fputs("}\n", file);
	if (fclose(file) != 0) {
		free(text);
		return error_origin(-ENOMEM);
	}
	*out = text;
	return 0;
}

static bool is_there(const char *path, const char *text)
{
	size_t room = strlen(text) + 2;
	cleanup(freep) char *have = room > FILE_MAX ? NULL : malloc(room);

	return have && file_read(AT_FDCWD, path, have, room) == (ssize_t)room - 2 &&
	       memcmp(have, text, room - 2) == 0;
}

/* Replaces the file atomically. Runtimes read only names that end with .json or .yaml. */
static int replace(const char *path, const char *text)
{
	cleanup(freep) char *temporary = NULL;
	size_t size = strlen(text);

	if (asprintf(&temporary, "%s.new", path) < 0)
		return -ENOMEM;
	unlink(temporary);
	cleanup(closep) int fd =
		open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	int r = fd < 0 ? -errno : 0;
	if (r == 0 && (fchmod(fd, 0644) < 0 || write(fd, text, size) != (ssize_t)size ||
		       fsync(fd) < 0 || rename(temporary, path) < 0))
		r = errno ? -errno : -EIO;
	if (r < 0)
		unlink(temporary);
	return r;
}

int cdi_write(char *path, size_t path_size, const struct config *config, const char *kind,
	      const char *text)
{
	const char *class = strchr(kind, '/') + 1;
	int n = snprintf(path, path_size, "%s/%.*s-%s.json", config->cdi.dir,
			 (int)(class - kind - 1), kind, class);

	if (n >= (int)path_size)
		return -ENAMETOOLONG;
	if (is_there(path, text))
		return 0;
	if (mkdir(config->cdi.dir, 0755) == 0)
		chmod(config->cdi.dir, 0755);
	return replace(path, text);
}

int cdi_publish(char *path, size_t path_size, const struct config *config,
		const struct driver *driver, const struct gpu *gpus, unsigned n_gpus)
{
	cleanup(freep) char *text = NULL;

	if (!config_cdi_is_ours(config) || !n_gpus)
		return 0;
	snprintf(path, path_size, "the CDI specification");
	int r = cdi_format(&text, config, driver, gpus, n_gpus);
	return text ? cdi_write(path, path_size, config, config->cdi.kind, text) : r;
}
