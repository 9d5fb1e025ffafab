/* Commands of the control socket about profiles. Each fills @answer and returns NULL, or says what
 * is wrong with @request.
 *
 *   {"after": N, "namespace": NAME}         -> {"profiles": [...], "next": N}: a page; no "next"
 *                                              on the last one
 *   {"profile": {...}, "namespace": NAME}   imports one -> {}
 *   {"namespace": NAME, "gpu": NAME}        forgets those -> {"forgotten": N}
 *
 * "after", "namespace" and "gpu" may be left out. */
#pragma once

#include <cjson/cJSON.h>

#include "profile/profile-client.h"

#define PROFILE_COMMAND_PAGE 200 /* profiles of an answer: few enough to not delay the loop */

const char *profile_command_list(struct profile_service *service, const cJSON *request,
				 cJSON *answer);
const char *profile_command_import(struct profile_service *service, const cJSON *request,
				   cJSON *answer);
const char *profile_command_forget(struct profile_service *service, const cJSON *request,
				   cJSON *answer);
