/* A fake kubelet: Registration on kubelet.sock, which calls the plugin's GetDevicePluginOptions
 * before it answers, then ListAndWatch, then the test's calls. It misbehaves on demand. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "codec.h"
#include "rpc/rpc.h"
#include "weir/loop.h"

struct fake_kubelet {
	struct loop loop;
	struct loop_timer alarm; /* ends a wait that takes too long */
	struct rpc *rpc;
	char dir[64];
	struct rpc_server *server;
	bool closing, timed_out;

	const char *refusal;          /* Register's answer; NULL: success */
	struct rpc_call *registering; /* the call that waits for the plugin's options */
	struct rpc_request *asking;   /* the request for these options */
	unsigned registrations;
	bool prefers;       /* from GetDevicePluginOptions */
	char endpoint[64];  /* of the last registration */
	char resource[128]; /* the same */

	struct rpc_request *stream; /* ListAndWatch; NULL: ended */
	unsigned lists;             /* messages received on it */
	unsigned devices, healthy;  /* in the last message */
	char ids[8][64];            /* the first ids */
};

/* Creates an empty folder for the plugin. */
void fake_kubelet_init(struct fake_kubelet *kubelet);
void fake_kubelet_deinit(struct fake_kubelet *kubelet);

/* Like the real kubelet: removes the sockets in the folder, then creates its own. */
void fake_kubelet_start(struct fake_kubelet *kubelet);
void fake_kubelet_stop(struct fake_kubelet *kubelet);
/* Ends ListAndWatch although nothing is wrong. */
void fake_kubelet_end_stream(struct fake_kubelet *kubelet);

/* Runs the loop until @done returns true; fails the test after 30 s. */
void fake_kubelet_until(struct fake_kubelet *kubelet,
			bool (*done)(const struct fake_kubelet *kubelet));

/* Calls @method of the plugin and waits. RPC_OK: @out has the answer. Else @text (256 bytes) has
 * the error message. */
enum rpc_status fake_kubelet_call(struct fake_kubelet *kubelet, const char *method,
				  const ProtobufCMessage *request,
				  const ProtobufCMessageDescriptor *type, ProtobufCMessage **out,
				  char *text);
