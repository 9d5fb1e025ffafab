/* A compile service with clients that are no sockets, for tests and for the bench. */
#pragma once

#include "compile/compile.h"

#define FIXTURE_ANSWERS 64

struct requester {
	struct compile_client client;
	uint64_t container; /* its own */
	unsigned n;         /* answers so far */
	uint32_t ids[FIXTURE_ANSWERS];
	enum weir_compile_status status; /* the last one's, as all that follows */
	char text[128];
	int fd; /* of its object; -1 */
};

/* A file for COMPILE, sealed. */
int fixture_file(const char *kernel, const void *image, size_t size, uint32_t sm, uint32_t forms);
/* The same from bytes as they are. */
int fixture_sealed(const void *bytes, size_t size, int seals);
#define FIXTURE_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

void fixture_init(struct requester *requester);
/* Until it has had @n answers. */
void fixture_wait(struct loop *loop, const struct requester *requester, unsigned n);
/* weir-compile as the build or the bundle has it, for a program in the folder beside. */
const char *fixture_program(void);
