#include "syntax/diag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int diag_try(struct diag *diag, void (*run)(void *data), void *data)
{
	jmp_buf *outer = diag->handler, here;

	diag->handler = &here;
	if (!setjmp(here))
		run(data);
	diag->handler = outer;
	return diag->error;
}

_Noreturn void diag_stop_again(struct diag *diag)
{
	if (!diag->handler)
		abort(); /* a caller forgot diag_try() */
	longjmp(*diag->handler, 1);
}

_Noreturn void diag_stop(struct diag *diag, int error, struct position at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag_vfail(diag, error, at, format, args);
	va_end(args);
	diag_stop_again(diag);
}

struct diag diag_take(struct diag *diag)
{
	struct diag taken = *diag;

	diag->error = 0;
	return taken;
}

int diag_vfail(struct diag *diag, int error, struct position at, const char *format, va_list args)
{
	if (!diag->error) {
		diag->error = error;
		diag->at = at;
		vsnprintf(diag->message, sizeof(diag->message), format, args);
	}
	return diag->error;
}

int diag_fail(struct diag *diag, int error, struct position at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag_vfail(diag, error, at, format, args);
	va_end(args);
	return diag->error;
}

int diag_no_memory(struct diag *diag)
{
	return diag_fail(diag, -ENOMEM, (struct position){0}, "no memory");
}
