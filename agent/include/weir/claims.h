/* The resource claims that this node has prepared: which part of which GPU each one has. The device
 * plugin keeps them in a file, so that it knows them after a restart. The agent reads the file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLAIM_DEVICES_MAX 32u /* Kubernetes' limit */
#define CLAIM_DEVICE_MAX  64u /* a device's name, with NUL */
#define CLAIMS_FILE_MAX   (16u << 20)

/* A part of a GPU, or all of it. */
struct claim_device {
	char request[128]; /* REQUEST, or REQUEST/SUBREQUEST */
	char device[CLAIM_DEVICE_MAX];
	char share_id[40]; /* tells allocations of one device apart; empty: none */
	uint32_t shares;   /* 1..100 */
	uint64_t memory;   /* bytes */
};

/* One allocation: free() it. */
struct claim {
	char uid[64], namespace_[64], name[254];
	char pod[64]; /* UID of the first pod that may use it */
	size_t n;
	struct claim_device devices[CLAIM_DEVICES_MAX];
};

struct claims {
	size_t n;
	struct claim **list;
};

void claims_deinit(struct claims *claims);
/* Takes @claim. 0, or -ENOMEM, and then it is freed. */
int claims_add(struct claims *claims, struct claim *claim);
/* False: there was no such claim. */
bool claims_remove(struct claims *claims, const char *uid);
const struct claim *claims_find(const struct claims *claims, const char *uid);
/* By name, as pods have it. */
const struct claim *claims_named(const struct claims *claims, const char *namespace_,
				 const char *name);

/* The file's text. claims_format() returns NULL if there is no memory. -EINVAL: not such a text. */
char *claims_format(const struct claims *claims);
int claims_parse(struct claims *out, const char *text, size_t size);
