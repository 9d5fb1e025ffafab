/* The plugin's connection with the kubelet: serve, register, notice its end, register again.
 *
 *   look      watch the kubelet's directory, listen on our own socket in it
 *   register  when kubelet.sock exists; the kubelet calls us back before it answers
 *   serve     while the kubelet keeps its ListAndWatch stream open
 *
 * Any end (the stream breaks, kubelet.sock is new, our socket was deleted, the kubelet refuses)
 * leads back to the start, with a new socket under a new name. The pause before it grows from 1 to
 * 30 s while attempts fail. The new name matters: the kubelet may notice the old stream's end late,
 * and must not take it for the new stream's. The plugin never exits because of the kubelet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dra/dra.h"
#include "driver.h"
#include "inventory.h"
#include "rpc/rpc.h"
#include "service.h"
#include "weir/http.h"
#include "weir/loop.h"

struct config;

struct plugin {
	const struct config *config;
	struct loop *loop;
	struct rpc *rpc;
	struct driver driver;
	struct inventory inventory;
	struct service service;
	struct http_pages pages;
	struct http *http; /* NULL: there is no such port */
	const bool *config_refused;
	struct dra dra; /* while dra.enabled */

	bool registered;         /* the kubelet opens its stream */
	struct loop_watch watch; /* on the kubelet's directory */
	bool watching;
	struct loop_timer timer; /* the next step */
	uint64_t pause;          /* before the next attempt after a failure */
	struct rpc_server *server;
	char endpoint[64]; /* name of our socket, while @server listens */
	unsigned servers;  /* counter for these names */
	struct rpc_request *registering;
	uint64_t watched_since; /* when the kubelet opened its stream; 0: no stream */
	char said[512];         /* the last complaint, so that it is not repeated */
};

/* @before: as in inventory.h. */
int plugin_init(struct plugin *plugin, struct loop *loop, const struct config *config,
		const struct inventory *before);
/* Ends streams and server, removes the socket. */
void plugin_deinit(struct plugin *plugin);
