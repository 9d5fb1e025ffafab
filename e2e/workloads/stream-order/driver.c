#include "workloads/stream-order/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "workload.h"

#define ASKED_VERSION 12000

struct row {
	const char *name, *symbol;
	size_t offset;
	void *linked;
};

static const struct row rows[] = {
#define X(field, name, symbol) {#name, #symbol, offsetof(struct stream_calls, field), (void *)name},
	STREAM_CALLS(X)
#undef X
};

static void *asked(const char *name, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	void *function = NULL;

	CU(cuGetProcAddress(name, &function, ASKED_VERSION, flags, &status));
	if (!function || status != CU_GET_PROC_ADDRESS_SUCCESS)
		workload_fail("cuGetProcAddress does not know %s (flags %llu)", name,
			      (unsigned long long)flags);
	return function;
}

static void *named(const char *symbol, const char *suffix)
{
	char name[64];
	void *function;

	snprintf(name, sizeof(name), "%s%s", symbol, suffix);
	function = dlsym(RTLD_DEFAULT, name);
	if (!function)
		workload_fail("no symbol %s", name);
	return function;
}

static void *look_up(const struct row *row, enum spelling spelling)
{
	switch (spelling) {
	case SPELLING_ASKED:
		return asked(row->name, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
	case SPELLING_ASKED_PER_THREAD:
		return asked(row->name, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	case SPELLING_NAMED:
		return named(row->symbol, "");
	case SPELLING_NAMED_PER_THREAD:
		return named(row->symbol, "_ptsz");
	default:
		return row->linked;
	}
}

void stream_calls_init(struct stream_calls calls[SPELLINGS])
{
	for (enum spelling spelling = 0; spelling < SPELLINGS; spelling++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			void *function = look_up(&rows[i], spelling);

			memcpy((char *)&calls[spelling] + rows[i].offset, &function,
			       sizeof(function));
		}
	}
}
