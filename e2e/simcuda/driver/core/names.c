/* Finding functions by name, and names of errors. The tables are made from the toolkit's headers at
 * build time (names.sh). */
#include "simcuda/driver/driver.h"

#include <string.h>

/* The stub behind every function that the driver does not implement. A compiler assumes that two
 * functions have different addresses, so the address is hidden from it. */
void *sim_unsupported_address(void);

struct name {
	const char *base;
	int version;     /* the CUDA version since which the base name means `symbol` */
	bool per_thread; /* for programs with per-thread default streams */
	void *symbol;
};

static const struct name names[] = {
#define NAME(base, version, per_thread, symbol) {#base, version, per_thread, (void *)symbol},
#include "simcuda/names.inc"
#undef NAME
};

/* The newest form that the caller's version has. Forms for the caller's kind of default stream are
 * preferred. */
static const struct name *look_up(const char *base, int version, bool per_thread, bool *known)
{
	const struct name *best = NULL;

	for (size_t i = 0; i < countof(names); i++) {
		const struct name *n = &names[i];

		if (n->per_thread != per_thread || strcmp(n->base, base) != 0 ||
		    n->symbol == sim_unsupported_address())
			continue;
		*known = true;
		if (n->version <= version && (!best || n->version > best->version))
			best = n;
	}
	return best;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	bool known = false;
	const struct name *n = NULL;

	if (!symbol || !out ||
	    flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				  CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		n = look_up(symbol, version, true, &known);
	if (!n)
		n = look_up(symbol, version, false, &known);
	*out = n ? n->symbol : NULL;
	if (status)
		*status = n       ? CU_GET_PROC_ADDRESS_SUCCESS
			  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return n ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **out, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, out, version, flags, NULL);
}

static const struct {
	CUresult error;
	const char *name;
} errors[] = {
#define ERROR(error) {error, #error},
#include "simcuda/errors.inc"
#undef ERROR
};

static const char *error_name(CUresult error)
{
	for (size_t i = 0; i < countof(errors); i++)
		if (errors[i].error == error)
			return errors[i].name;
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = error_name(error);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The name serves as the description. */
CUresult cuGetErrorString(CUresult error, const char **out)
{
	static const char prefix[] = "CUDA_ERROR_";

	RETURN_IF(cuGetErrorName(error, out));
	if (!strncmp(*out, prefix, sizeof(prefix) - 1))
		*out += sizeof(prefix) - 1;
	return CUDA_SUCCESS;
}
