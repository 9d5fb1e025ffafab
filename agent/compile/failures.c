#include "compile/failures.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

const struct failure *failures_find(const struct failures *failures, const struct digest *key)
{
	struct failure *failure;

	HASH_FIND(hh, failures->all, key, sizeof(*key), failure);
	return failure;
}

static void drop(struct failures *failures, struct failure *failure)
{
	assert(failures->all);
	HASH_DEL(failures->all, failure);
	DL_DELETE(failures->by_age, failure);
	free(failure);
}

void failures_add(struct failures *failures, const struct digest *key,
		  enum weir_compile_status status, const char *text)
{
	struct failure *failure = failures_find(failures, key) ? NULL : calloc(1, sizeof(*failure));

	if (!failure)
		return;
	if (HASH_COUNT(failures->all) == FAILURES_MAX)
		drop(failures, failures->by_age);
	failure->key = *key;
	failure->status = status;
	snprintf(failure->text, sizeof(failure->text), "%s", text);
	HASH_ADD(hh, failures->all, key, sizeof(failure->key), failure);
	DL_APPEND(failures->by_age, failure);
}

void failures_deinit(struct failures *failures)
{
	while (failures->by_age)
		drop(failures, failures->by_age);
}
