/* Sieges: attacks without an end, which main() ends. A siege prints SIEGE_READY once it is at full
 * strength. What it is refused does not stop it. */
#pragma once

#include "robustness/hostile/client.h"

#define SIEGE_READY "ready"

/* Prints SIEGE_READY, once. */
void siege_ready(void);
/* A process beside this one that dies with it. True: this is the child. */
bool siege_fork(void);

void siege_lease(void);    /* on all files that it shares with others, and on the agent's pages */
void siege_object(void);   /* on an object of the compile cache, which others ask for, too */
void siege_http(void);     /* slow requests from many addresses */
void siege_compile(void);  /* kernels, as many as it may ask for, at all times */
void siege_accounts(void); /* processes with memory accounts */
void siege_bits(void);     /* clients, each with a demand bit */
void siege_forge(void);    /* sets others' bits, and dies */
void siege_demoted(void);  /* keeps each page that it ever had, and sets all bits there */
void siege_memory(void);   /* ways around its memory limit, over and over */
void siege_flood(void);    /* messages */
