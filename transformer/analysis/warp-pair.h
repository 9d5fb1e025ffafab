/* Masks whose lanes certainly come.
 *
 * A mask of lanes that were active a moment ago (MASK_LIVE, warp-mask.h) comes from one
 * instruction, which all these lanes have executed. If each thread behind it reaches the
 * instruction that uses the mask, once for each time, nobody waits there for a lane that has
 * exited. */
#pragma once

#include "analysis/cfg.h"

struct warp_pairs;

/* In the function's arena. @cfg must stay valid. */
struct warp_pairs *warp_pairs_find(struct function *function, const struct cfg *cfg);

/* Whether the lanes that the mask of @user names all come. True only if that is certain. */
bool warp_is_paired(struct warp_pairs *pairs, const struct instruction *user);
