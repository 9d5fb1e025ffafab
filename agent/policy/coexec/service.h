/* What clients with work got so far. */
#pragma once

struct run_queue;
struct run_queue_entry;

/* Of the clients with work, the one that got least; NULL: none has work. */
struct run_queue_entry *coexec_least_served(const struct run_queue *queue);
/* Notes what each client with work got at least. A client that comes counts as if it had got that.
 */
void coexec_note_service(struct run_queue *queue);
