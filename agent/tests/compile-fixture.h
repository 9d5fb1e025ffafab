/* A compile service whose clients are structs instead of sockets, for tests and the bench. */
#pragma once

#include "compile/compile.h"

#define FIXTURE_ANSWERS 64

struct requester {
	struct compile_client client;
	struct compile_container container;
	unsigned n; /* answers so far */
	uint32_t ids[FIXTURE_ANSWERS];
	enum weir_compile_status status; /* of the last answer, like all that follows */
	char text[128];
	int fd; /* the object; -1: none */
};

/* Makes a sealed file for COMPILE, with flags WEIR_COMPILE_… or without. */
int fixture_file_with(const char *kernel, const void *image, size_t size, uint32_t sm,
		      uint32_t forms, uint32_t flags);
int fixture_file(const char *kernel, const void *image, size_t size, uint32_t sm, uint32_t forms);
/* Makes a sealed file of these bytes. */
int fixture_sealed(const void *bytes, size_t size, int seals);
#define FIXTURE_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

void fixture_init(struct requester *requester);
/* Handles events until it has @n answers. */
void fixture_wait(struct loop *loop, const struct requester *requester, unsigned n);
/* Path of weir-compile in the build or in the bundle. */
const char *fixture_program(void);
