/* Shared by the attacks: connections to an agent as any user, and ways to fail. An attack exits
 * with 0 if the agent withstood it, with 1 and one line if it did not, with 2 if it could not be
 * tried. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "weir/protocol.h"

#define HOSTILE_UID   65534
#define BYSTANDER_UID 65533 /* of the same level, or above */

/* Where the agent listens; set once by main(). */
extern const char *agent_socket;

/* Sets the GPU that all connections name, GPU-01234567-…; false: invalid. */
bool client_set_gpu(const char *id);
/* The GPU for a message that names one. */
void client_copy_gpu(uint8_t out[16]);
void become(uid_t uid);   /* or ends */
int client_connect(void); /* never fails */
struct weir_hello client_hello(void);
/* A connection after WELCOME, whose descriptors are in @fds. -1: refused, or no answer in 20 s. */
int client_join(union weir_message *welcome, int *fds);
/* How many descriptors came with a WELCOME. */
size_t welcome_fds(const union weir_message *welcome);
void close_fds(const int *fds, size_t n);
/* A memory account for this process. False: refused, or no answer in 20 s. */
bool client_account(union weir_message *account, int *fds, size_t *n_fds);
/* The next message within @ms. False: none, or the end. */
bool client_hear(int socket, union weir_message *message, int *fds, size_t *n_fds, int ms);
/* The agent closes the connection within @ms; messages before that are ignored. */
bool client_is_cut_off(int socket, int ms);

/* Another user's process connects and leaves @times; false: it was refused. */
bool bystander_gets_in(int times);

uint64_t clock_ms(void);
_Noreturn void harm(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void cannot(const char *what);

/* The attacks. */
void attack_memory(void);
void attack_connections(void);
void attack_flood(void);
void attack_rights(void);
void attack_garbage(void);
void attack_orphan(void);
void attack_words(void);
void attack_liar(void);
void attack_socket(void);

/* Beside them: one that asks for all that a client needs, once or without end, and one that starts
 * programs. Each prints lines `WHAT MILLISECONDS`. */
void honest_once(void);
void honest_again(void);
void honest_execs(void);
