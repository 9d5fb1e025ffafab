/* What eaters.cu and its host share. */
#pragma once

#define EATER_THREADS 128

/* A task: its value in the low half, how deep a tree of tasks it begins in the high one; 0: none.
 */
#define QUEUE_STEPS 256

struct queue {
	unsigned head, tail, done;
};

#define PAYLOAD      512 /* words of a request */
#define SERVER_STEPS 64

/* In the host's memory, one for each block. @request: how many were made; @answer: were answered.
 */
struct mailbox {
	unsigned request, answer, result, unused[29];
	unsigned payload[PAYLOAD];
};

#define SIMULATION_PERIOD 64 /* steps of a generation */
