/* A profile as an object of JSON, for weirctl: a line of its file is one profile.
 * deploy/docs/profiles.md describes the members. Pure. */
#pragma once

#include <cjson/cJSON.h>

#include "profile/profiles.h"

/* NULL: no memory. */
cJSON *profile_json_make(const struct profile *profile);
/* NULL, or what is wrong. @scope: of the profile, whatever it says; NULL: as it says, and those
 * without one are for everybody. */
const char *profile_json_read(const cJSON *object, const char *scope, struct profile_key *key,
			      struct weir_profile *values);
