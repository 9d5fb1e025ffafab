/* Answers the kubelet's NodePrepareResources and NodeUnprepareResources. A claim that is prepared
 * gets the same answer again. Any other is read from the API server first. */
#pragma once

#include <stdbool.h>

#include "codec.h"
#include "rpc/rpc.h"

struct api_client;
struct config;
struct driver;
struct inventory;
struct ledger;
struct prepare_call;

struct preparer {
	const struct config *config;
	const struct driver *driver;
	const struct inventory *inventory;
	struct ledger *ledger;
	struct api_client *api;
	bool ready;                 /* it is known which shares are for claims (kept.h) */
	struct prepare_call *calls; /* that wait for the API server */
};

/* Both answer now or later. The messages are those of the paths. */
void preparer_prepare(struct preparer *preparer, struct rpc_call *call,
		      const ProtobufCMessage *request);
void preparer_unprepare(struct preparer *preparer, struct rpc_call *call,
			const ProtobufCMessage *request);
/* The call is over; its work goes on without an answer. NULL: all calls are. */
void preparer_ended(struct preparer *preparer, const struct rpc_call *call);
/* After the end of the API client. */
void preparer_deinit(struct preparer *preparer);

/* The path of a claim in the API server, for free(). NULL: not a name, or no memory. */
char *preparer_path(const char *namespace_, const char *name);
