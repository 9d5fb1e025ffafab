/* The file of the profiles, beside the compiled kernels.
 *
 * It is written a while after a change, in pieces between which the loop runs, under another name;
 * a rename puts it in place. It is not synced: a checksum shows what a crash of the machine
 * damaged. A file that is damaged, or of another version, is set aside as PATH.bad. */
#pragma once

#include "profile/profiles.h"

#include "weir/loop.h"

#define PROFILE_FILE_VERSION 1
#define PROFILE_FILE_LATE_NS 30000000000ull /* from a change to the file */
#define PROFILE_FILE_PIECE   (64u << 10)

struct profile_file {
	struct profiles *profiles;
	char *path; /* NULL: there is no file */
	struct loop_timer timer;
	bool waits;     /* for the timer: changes are not written yet */
	uint64_t saved; /* profiles->changes that the file has */
	/* While it is written. */
	int fd;
	uint8_t *bytes; /* NULL: it is not */
	size_t size, at;
};

/* Reads the file at @path into @profiles. 0 or a negative errno. */
int profile_file_init(struct profile_file *file, struct loop *loop, struct profiles *profiles,
		      const char *path);
/* Writes what is not written yet. */
void profile_file_deinit(struct profile_file *file);
/* Call after changes of the profiles. */
void profile_file_changed(struct profile_file *file);

/* The bytes of a file into @profiles. NULL, or what is wrong with them; some profiles may have been
 * added then. */
const char *profile_file_parse(struct profiles *profiles, const uint8_t *bytes, size_t size);
/* All profiles as such bytes, for free(). NULL: no memory. */
uint8_t *profile_file_format(const struct profiles *profiles, size_t *size);
