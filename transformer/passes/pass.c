#include "passes/pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct pass *const sliced[] = {
	&pass_dependents, &pass_eligible, &pass_params, &pass_symbols, &pass_block_index, NULL,
};

static const struct pass *const persistent[] = {
	&pass_dependents,
	&pass_registers,
	&pass_eligible,
	&pass_params,
	&pass_symbols,
	&pass_block_index,
	&pass_warp_exit,
	&pass_warp_gather,
	&pass_async,
	&pass_uniform_exit,
	&pass_tickets,
	&pass_shared_layout,
	NULL,
};

static const struct pass *const resumable[] = {
	&pass_dependents,  &pass_registers,   &pass_eligible,      &pass_params,
	&pass_symbols,     &pass_block_index, &pass_warp_exit,     &pass_calls,
	&pass_safe_points, &pass_warp_gather, &pass_async,         &pass_uniform_exit,
	&pass_tickets,     &pass_save,        &pass_shared_layout, NULL,
};

const struct form forms[] = {
	{WEIR_SLICED, "sliced", "__weir_sliced", sliced},
	{WEIR_PERSISTENT, "persistent", "__weir_persistent", persistent},
	{WEIR_RESUMABLE, "resumable", "__weir_resumable", resumable},
};
const size_t form_count = sizeof(forms) / sizeof(forms[0]);

_Noreturn void pass_refuse(struct rewrite *rewrite, struct position at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag_vfail(rewrite->function->module->diag, -ENOTSUP, at, format, args);
	va_end(args);
	diag_stop_again(rewrite->function->module->diag);
}

bool pass_has_isa(const struct module *module, unsigned major, unsigned minor)
{
	return module->version_major > major ||
	       (module->version_major == major && module->version_minor >= minor);
}

unsigned pass_target(const struct module *module)
{
	return strncmp(module->target, "sm_", 3) ? 0 : (unsigned)atoi(module->target + 3);
}
