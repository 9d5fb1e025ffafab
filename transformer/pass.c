#include "pass.h"

#include <errno.h>

const struct form forms[] = {
	{.id = WEIR_SLICED, .name = "sliced", .suffix = "__weir_sliced"},
	{.id = WEIR_PERSISTENT, .name = "persistent", .suffix = "__weir_persistent"},
	{.id = WEIR_RESUMABLE, .name = "resumable", .suffix = "__weir_resumable"},
};
const size_t form_count = sizeof(forms) / sizeof(forms[0]);

int pass_refuse(struct rewrite *rewrite, struct position at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag_vfail(&rewrite->refusal, -ENOTSUP, at, format, args);
	va_end(args);
	return PASS_REFUSED;
}
