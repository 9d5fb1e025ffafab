#include "profile/profile-file.h"

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

#define MAGIC 0x464f525052494557ull /* "WEIRPROF" */

struct head {
	uint64_t magic;
	uint32_t version;
	uint32_t record_size;
	uint64_t n;
	uint64_t checksum; /* of the records */
};

struct record {
	struct profile_key key;
	uint64_t used;
	struct weir_profile values;
};
static_assert(sizeof(struct record) == 320, "file layout");
static_assert(sizeof(struct record) % sizeof(uint64_t) == 0, "whole words");

#define FILE_MAX (sizeof(struct head) + PROFILES_MAX * sizeof(struct record))

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static const char *take_record(struct profiles *profiles, const struct record *record)
{
	struct profile_key key;

	if (!ends(record->key.scope, sizeof(record->key.scope)) ||
	    !ends(record->key.gpu, sizeof(record->key.gpu)) || !*record->key.scope ||
	    !profile_key_make(&key, record->key.scope, record->key.gpu, &record->key.kernel) ||
	    !weir_profile_is_sane(&record->values))
		return "a profile that cannot be";
	return profiles_put(profiles, &key, &record->values, record->used) < 0 ? "no memory" : NULL;
}

const char *profile_file_parse(struct profiles *profiles, const uint8_t *bytes, size_t size)
{
	const char *wrong = NULL;
	struct record record;
	struct head head;

	if (size < sizeof(head))
		return "too short";
	memcpy(&head, bytes, sizeof(head));
	bytes += sizeof(head);
	size -= sizeof(head);
	if (head.magic != MAGIC)
		return "not a file of profiles";
	if (head.version != PROFILE_FILE_VERSION || head.record_size != sizeof(record))
		return "of another version";
	if (head.n > PROFILES_MAX || size != head.n * sizeof(record))
		return "of the wrong size";
	if (fnv_words(bytes, size) != head.checksum)
		return "damaged";
	for (uint64_t i = 0; i < head.n && !wrong; i++) {
		memcpy(&record, bytes + i * sizeof(record), sizeof(record));
		wrong = take_record(profiles, &record);
	}
	return wrong;
}

/* Scope by scope, the least recently used first: so that reading restores the order. */
uint8_t *profile_file_format(const struct profiles *profiles, size_t *size)
{
	struct head head = {MAGIC, PROFILE_FILE_VERSION, sizeof(struct record), profiles->n, 0};
	*size = sizeof(head) + profiles->n * sizeof(struct record);
	uint8_t *bytes = malloc(*size), *at = bytes ? bytes + sizeof(head) : NULL;

	if (!bytes)
		return NULL;
	for (const struct profile_scope *s = profiles->scopes; s; s = s->hh.next) {
		for (const struct profile *p = s->by_use; p; p = p->use_next) {
			struct record record = {p->kernel->key, p->used, p->values};
			memcpy(at, &record, sizeof(record));
			at += sizeof(record);
		}
	}
	head.checksum = fnv_words(bytes + sizeof(head), *size - sizeof(head));
	memcpy(bytes, &head, sizeof(head));
	return bytes;
}

/* Reading */

static void set_aside(const char *path, const char *wrong)
{
	char bad[PATH_MAX];

	snprintf(bad, sizeof(bad), "%s.bad", path);
	int r = rename(path, bad);
	log_warning("%s is %s: set aside as %s%s%s", path, wrong, bad, r < 0 ? ", but: " : "",
		    r < 0 ? strerror(errno) : "");
}

static void load(struct profile_file *file)
{
	struct profiles *profiles = file->profiles;
	cleanup(closep) int fd = file_open(AT_FDCWD, file->path, O_RDONLY);
	size_t size = 0;

	if (fd == -ENOENT)
		return;
	cleanup(freep) uint8_t *bytes = file_load(fd, FILE_MAX, &size);
	const char *wrong = bytes ? profile_file_parse(profiles, bytes, size) : "not readable";
	if (wrong) {
		profiles_deinit(profiles);
		set_aside(file->path, wrong);
		return;
	}
	log_debug("%u profiles of kernels", profiles->n);
}

/* Writing */

static void new_name(const struct profile_file *file, char name[PATH_MAX])
{
	snprintf(name, PATH_MAX, "%s.new", file->path);
}

static void end_writing(struct profile_file *file, int error)
{
	char name[PATH_MAX];

	new_name(file, name);
	if (file->fd >= 0 && close(take_fd(file->fd)) < 0 && !error)
		error = -errno;
	if (!error && rename(name, file->path) < 0)
		error = -errno;
	free(take(file->bytes));
	if (!error)
		return;
	unlink(name);
	file->saved = UINT64_MAX; /* the next change writes it */
	log_limited(LOG_WARNING, 600, "profiles cannot be kept in %s: %s", file->path,
		    strerror(-error));
}

static void begin_writing(struct profile_file *file)
{
	char name[PATH_MAX];

	new_name(file, name);
	file->waits = false;
	file->at = 0;
	file->saved = file->profiles->changes;
	file->bytes = profile_file_format(file->profiles, &file->size);
	int fd = file->bytes ? file_open(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC) : -ENOMEM;
	file->fd = fd < 0 ? -1 : fd;
	if (fd < 0)
		end_writing(file, fd);
}

/* Writes one piece. */
static void go_on(struct profile_file *file)
{
	size_t size = smaller(file->size - file->at, PROFILE_FILE_PIECE);
	ssize_t n = write(file->fd, file->bytes + file->at, size);

	if (n < 0 && errno != EINTR) {
		end_writing(file, -errno);
		return;
	}
	file->at += n > 0 ? (size_t)n : 0;
	if (file->at == file->size)
		end_writing(file, 0);
}

static void tick(struct loop_timer *timer)
{
	struct profile_file *file = container_of(timer, struct profile_file, timer);

	if (file->bytes)
		go_on(file);
	else
		begin_writing(file);
	if (file->bytes)
		loop_timer_set(timer, 0, 0);
	else if (file->saved != file->profiles->changes)
		profile_file_changed(file); /* meanwhile */
}

void profile_file_changed(struct profile_file *file)
{
	if (!file->path || file->waits || file->bytes || file->saved == file->profiles->changes)
		return;
	file->waits = true;
	loop_timer_set(&file->timer, PROFILE_FILE_LATE_NS, 0);
}

int profile_file_init(struct profile_file *file, struct loop *loop, struct profiles *profiles,
		      const char *path)
{
	*file = (struct profile_file){.profiles = profiles, .fd = -1, .path = strdup(path)};
	if (!file->path)
		return error_origin(-ENOMEM);
	load(file);
	file->saved = profiles->changes;
	return loop_timer_init(&file->timer, loop, tick);
}

void profile_file_deinit(struct profile_file *file)
{
	if (!file->path)
		return;
	if (!file->bytes && file->saved != file->profiles->changes)
		begin_writing(file);
	while (file->bytes)
		go_on(file);
	loop_timer_deinit(&file->timer);
	free(take(file->path));
}
