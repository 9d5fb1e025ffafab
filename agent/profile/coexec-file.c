#include "profile/coexec-file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/fnv.h"
#include "weir/log.h"

#define MAGIC 0x5445534352494557ull /* "WEIRCSET" */

struct content {
	uint64_t magic, version, checksum; /* of the rest */
	uint64_t uses;
	struct coexec_set sets[COEXEC_SETS];
};
static_assert(sizeof(struct coexec_set) == 56, "file layout");
static_assert(sizeof(struct content) == 32 + COEXEC_SETS * 56, "file layout");

static uint64_t checksum(const struct content *content)
{
	return fnv_words(&content->uses, sizeof(*content) - offsetof(struct content, uses));
}

const char *coexec_file_parse(struct coexec_memory *memory, const uint8_t *bytes, size_t size)
{
	struct content content;

	if (size != sizeof(content))
		return "of the wrong size";
	memcpy(&content, bytes, sizeof(content));
	if (content.magic != MAGIC || content.version != COEXEC_FILE_VERSION)
		return "of another version";
	if (content.checksum != checksum(&content))
		return "damaged";
	for (size_t i = 0; i < COEXEC_SETS; i++)
		if (!coexec_set_is_sane(&content.sets[i]) || content.sets[i].used > content.uses)
			return "damaged";
	memcpy(memory->sets, content.sets, sizeof(memory->sets));
	memory->uses = content.uses;
	return NULL;
}

static void load(struct coexec_file *file)
{
	cleanup(closep) int fd = file_open(AT_FDCWD, file->path, O_RDONLY);
	size_t size = 0;

	if (fd == -ENOENT)
		return;
	cleanup(freep) uint8_t *bytes = file_load(fd, sizeof(struct content), &size);
	const char *wrong =
		bytes ? coexec_file_parse(file->memory, bytes, size) : "not readable, or too long";
	if (wrong)
		log_warning("%s is %s: ignored", file->path, wrong);
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static void save(struct coexec_file *file)
{
	struct content content = {
		.magic = MAGIC, .version = COEXEC_FILE_VERSION, .uses = file->memory->uses};
	char name[PATH_MAX];

	memcpy(content.sets, file->memory->sets, sizeof(content.sets));
	content.checksum = checksum(&content);
	file->saved = file->memory->changes;
	snprintf(name, sizeof(name), "%s.new", file->path);
	cleanup(closep) int fd = file_open(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC);
	int r = fd < 0 ? fd : write_all(fd, (const uint8_t *)&content, sizeof(content));
	if (r >= 0 && rename(name, file->path) < 0)
		r = -errno;
	if (r >= 0)
		return;
	unlink(name);
	log_limited(LOG_WARNING, 600, "what was found of kernels cannot be kept in %s: %s",
		    file->path, strerror(-r));
}

static void tick(struct loop_timer *timer)
{
	struct coexec_file *file = container_of(timer, struct coexec_file, timer);

	if (file->saved != file->memory->changes)
		save(file);
}

int coexec_file_init(struct coexec_file *file, struct loop *loop, struct coexec_memory *memory,
		     const char *path)
{
	*file = (struct coexec_file){.memory = memory, .path = strdup(path)};
	if (!file->path)
		return error_origin(-ENOMEM);
	load(file);
	file->saved = memory->changes;
	int r = loop_timer_init(&file->timer, loop, tick);
	if (r >= 0)
		loop_timer_set(&file->timer, COEXEC_FILE_LATE_NS, COEXEC_FILE_LATE_NS);
	return r;
}

void coexec_file_deinit(struct coexec_file *file)
{
	if (!file->path)
		return;
	if (file->saved != file->memory->changes)
		save(file);
	loop_timer_deinit(&file->timer);
	free(take(file->path));
}
