/* Below MPS the GPU begins, of all blocks that wait, those of the greatest priority first,
 * whichever client launched them. A gate keeps back what a client below has not begun; this lets
 * who is above go ahead of the blocks that it has. The driver's priorities are a stream's, and most
 * programs use a default stream, which has none: so each launch is given its own, as an attribute.
 */
#pragma once

#include "call.h"
#include "stream.h"

/* What priorities there are, and whether they say anything here: once, by client_init(). */
void priority_init(struct client *client);
/* The stream's own, when its record is made. */
int priority_of_stream(const struct client *client, CUstream stream);

/* Launches with the priority of the standing's level. False: not launched, since there is nobody of
 * another level, the stream's priority is that already, the program itself has said one
 * for this launch, or the driver refuses; then it is launched as it is. @handle, @per_thread: of
 * the stream, as the program names it. */
bool priority_launch(const struct stream *stream, const struct standing *standing,
		     const struct kernel_call *call, CUstream handle, bool per_thread,
		     CUresult *result);
