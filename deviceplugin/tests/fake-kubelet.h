/* A kubelet as a device plugin sees it: Registration on kubelet.sock, which calls the plugin's
 * GetDevicePluginOptions before it answers, then ListAndWatch, then whatever the test asks. It also
 * misbehaves on demand. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "codec.h"
#include "rpc.h"
#include "weir/loop.h"

struct fake_kubelet {
	struct loop loop;
	struct loop_timer alarm; /* ends a wait that is in vain */
	struct rpc *rpc;
	char dir[64];
	struct rpc_server *server;
	bool closing, timed_out;

	const char *refusal;          /* what Register is answered; NULL: it succeeds */
	struct rpc_call *registering; /* waits for the plugin's options */
	struct rpc_request *asking;   /* for these options */
	unsigned registrations;
	bool prefers;       /* GetDevicePluginOptions says so */
	char endpoint[64];  /* of the last registration */
	char resource[128]; /* the same */

	struct rpc_request *stream; /* ListAndWatch; NULL: ended */
	unsigned lists;             /* messages on it */
	unsigned devices, healthy;  /* of the last one */
	char ids[8][64];            /* the first of them */
};

/* Makes an empty directory for the plugin. */
void fake_kubelet_init(struct fake_kubelet *kubelet);
void fake_kubelet_deinit(struct fake_kubelet *kubelet);

/* As the real one: removes the sockets in the directory, then makes its own. */
void fake_kubelet_start(struct fake_kubelet *kubelet);
void fake_kubelet_stop(struct fake_kubelet *kubelet);
/* Ends ListAndWatch although the plugin is well. */
void fake_kubelet_end_stream(struct fake_kubelet *kubelet);

/* Runs the loop until @done says so; fails the test after 30 s. */
void fake_kubelet_until(struct fake_kubelet *kubelet,
			bool (*done)(const struct fake_kubelet *kubelet));

/* Calls @method of the plugin and waits. RPC_OK: @out has the answer. Else @text (256 bytes) has
 * the error's. */
enum rpc_status fake_kubelet_call(struct fake_kubelet *kubelet, const char *method,
				  const ProtobufCMessage *request,
				  const ProtobufCMessageDescriptor *type, ProtobufCMessage **out,
				  char *text);
