/* GPUDirect Storage: files straight to and from the memory of the GPU, where NVIDIA's libcufile is.
 * It is used for large transfers of files that were opened with O_DIRECT; whatever it refuses goes
 * through staging buffers. Its declarations are here, so that the build needs none of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cufile_error {
	int error, driver; /* CUfileOpError, 0: success; CUresult */
};

struct cufile_description {
	int type; /* CU_FILE_HANDLE_TYPE_OPAQUE_FD */
	union {
		int fd;
		void *handle;
	} handle;
	const void *operations;
};

struct cufile {
	void *library; /* NULL: there is none */
	struct cufile_error (*start)(void);
	struct cufile_error (*stop)(void);
	struct cufile_error (*add)(void **handle, struct cufile_description *description);
	void (*remove)(void *handle);
	ssize_t (*read)(void *handle, void *base, size_t size, off_t file_offset, off_t offset);
	ssize_t (*write)(void *handle, const void *base, size_t size, off_t file_offset,
			 off_t offset);
};

/* Loads @name and starts it. Without it, or if it does not start, all of the below does nothing. */
void cufile_init(struct cufile *cufile, const char *name);
void cufile_deinit(struct cufile *cufile);

/* A handle for @fd, which was opened with O_DIRECT; NULL: none. */
void *cufile_add(const struct cufile *cufile, int fd);
void cufile_remove(const struct cufile *cufile, void *handle);
