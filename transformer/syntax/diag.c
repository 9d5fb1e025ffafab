#include "syntax/diag.h"

#include <errno.h>
#include <stdio.h>

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
