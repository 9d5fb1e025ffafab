/* The first error in a text, and its place. The first error is kept, because later ones are usually
 * consequences of it.
 *
 * The compiler proper has no error codes: code below diag_try() ends with diag_stop(), and so does
 * an arena that is full. Between the two, whatever is allocated belongs to an arena or to a caller
 * of diag_try(), and nobody holds a lock, so nothing leaks. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define DIAG_MAX 256 /* characters of a message */

struct position {
	uint32_t line, column; /* from 1; line 0: the error has no place in the text */
};

struct diag {
	int error; /* 0, or a negative errno */
	struct position at;
	char message[DIAG_MAX];
	jmp_buf *handler; /* of the innermost diag_try(), or NULL */
};

/* Calls @run(@data). 0, or the error with which it stopped. */
int diag_try(struct diag *diag, void (*run)(void *data), void *data);
/* Ends the innermost diag_try(). */
_Noreturn void diag_stop(struct diag *diag, int error, struct position at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with the error that is kept already. */
_Noreturn void diag_stop_again(struct diag *diag);
/* Removes the error and returns it. */
struct diag diag_take(struct diag *diag);

/* These keep an error and return. All return the error that is kept. */
int diag_fail(struct diag *diag, int error, struct position at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int diag_vfail(struct diag *diag, int error, struct position at, const char *format, va_list args);
int diag_no_memory(struct diag *diag);
