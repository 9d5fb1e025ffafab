/* Tells clients what lower-level ones are to leave to them (policy/yield.h), and a number for those
 * that work below, beside which libweir measures how much room is best. */
#pragma once

#include <stdint.h>

#define YIELDS_BELOW_NS 50000000ull /* between two looks at who works below */
#define YIELDS_WORKED   3u          /* looks without work until a client does not */

struct client;
struct gpu;

/* Writes the client's control page. */
void yields_tell(struct client *client);
/* A regular look at all clients, if it is time for one. Returns when the next one is due, or
 * POLICY_NEVER. */
uint64_t yields_look(struct gpu *gpu, uint64_t now);
