/* The first error in a text, and its place. The first error is kept, because later ones are usually
 * consequences of it. A function that fails returns the errno. A caller of many small steps may
 * check once at the end. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define DIAG_MAX 200 /* characters of a message */

struct position {
	uint32_t line, column; /* from 1; line 0: the error has no place in the text */
};

struct diag {
	int error; /* 0, or a negative errno */
	struct position at;
	char message[DIAG_MAX];
};

/* All return the error that is kept. */
int diag_fail(struct diag *diag, int error, struct position at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int diag_vfail(struct diag *diag, int error, struct position at, const char *format, va_list args);
int diag_no_memory(struct diag *diag);
