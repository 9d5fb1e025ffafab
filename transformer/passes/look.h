// clang-format off
/* Looks whether the launch is closed, once in a period (weir_persistent.look), and polls for it.
 *
 * check: since = the last multiple of look
 *        watch.leave?  choose
 *        now - watch.looked < lead?  since = watch.looked + lead - look, continue
 *        now - watch.looked < look / 2?  continue
 *        watch.looked = now; since = the last multiple of look, less lead
 *        flag == number of the launch?  watch.leave = asked, choose
 *        time for the group and for the GPU to poll, and asked to leave?
 *        close the words, watch.leave = closed, choose
 * choose: watch.leave == closed?  set all flags, watch.leave = asked
 *        the ticket will soon be finished?  continue, else leave (save/drain.h)
 *
 * It costs little because most of its steps are rare:
 *
 * - Each thread compares %clock with the time of its last check at every loop head.
 * - Each warp reads the block's words in shared memory once a period.
 * - Each block reads its group's flag in device memory once a period. There is one flag for every
 *   SAFE_POINT_GROUP workers, because all workers would read a single flag too often.
 * - Each group looks once a period whether the GPU is due to poll host memory (hidden.c). The
 *   warp that learns of a request to leave sets all flags.
 *
 * Lanes that check together decide together, so the warp does not diverge here. Lanes that checked
 * at different times check together again when the next period begins. The launch's number differs
 * from that of the launch before, so flags need not be cleared.
 *
 * The warp that reads the flag begins its periods `lead` cycles before the others. So these find
 * what it has read, and do not learn a whole period later that the launch is closed. Whoever comes
 * while a flag is read looks again when that is done. Where nobody has read it lately, the next
 * warp does, and is the one that begins early from then on.
 */
// clang-format on
#pragma once

#include <stdbool.h>

struct rewrite;
struct safe_point;

/* Writes the check of a loop's safe point. @together: it only counts if all lanes of the warp are
 * present. */
void look_check(struct rewrite *rewrite, struct safe_point *point, bool together);
