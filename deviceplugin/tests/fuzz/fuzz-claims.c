/* Any bytes as a ResourceClaim of the API server, and as the file of claims. What was read from the
 * file can be written, and read again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dra/claim-parse.h"
#include "weir/claims.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const char *text, size_t size)
{
	struct claims claims, again;

	if (claims_parse(&claims, text, size) < 0)
		return;
	char *written = claims_format(&claims);
	assert(written);
	assert(claims_parse(&again, written, strlen(written)) == 0);
	assert(again.n == claims.n);
	char *rewritten = claims_format(&again);
	assert(rewritten && strcmp(rewritten, written) == 0);
	free(written);
	free(rewritten);
	claims_deinit(&claims);
	claims_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[DRA_ERROR_MAX] = "";
	const char *text = (const char *)data;
	struct claim *claim = claim_parse(text, size, "u1", "n", error);

	assert(claim ? claim->n > 0 && claim->n <= CLAIM_DEVICES_MAX : *error != '\0');
	assert(!claim || claim_lives(200, text, size, "u1", "n"));
	free(claim);
	check_file(text, size);
	return 0;
}
