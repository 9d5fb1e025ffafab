/* Trouble with a text: what and where. The first error sticks; later ones are mostly its echo. A
 * function that fails returns the error's number, and whoever works in many small steps may go on
 * and ask at the end.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define DIAG_MAX 200 /* characters of a message */

struct position {
	uint32_t line, column; /* from 1; line 0: no place of the text */
};

struct diag {
	int error; /* 0, or a negative errno */
	struct position at;
	char message[DIAG_MAX];
};

/* Returns the error that sticks. */
int diag_fail(struct diag *diag, int error, struct position at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int diag_vfail(struct diag *diag, int error, struct position at, const char *format, va_list args);
int diag_no_memory(struct diag *diag);
