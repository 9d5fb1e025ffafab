/* The plugin's life with the kubelet: serve, register, notice when that is over, register again.
 *
 *   look      watch the kubelet's directory, listen on a socket of our own in it
 *   register  once kubelet.sock is there; the kubelet calls us back before it answers
 *   serve     while the kubelet keeps its ListAndWatch stream open
 *
 * Whatever ends this (the stream breaks, kubelet.sock is new, our own socket was deleted, the
 * kubelet refuses) leads back to the start, with a new socket under a new name, after a pause that
 * grows from 1 to 30 s while it goes wrong. The new name matters: a kubelet that hears of the old
 * stream's end only later must not take it for the new one's. The plugin never gives up and never
 * exits because of the kubelet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver.h"
#include "inventory.h"
#include "rpc.h"
#include "service.h"
#include "weir/loop.h"

struct config;

enum plugin_state {
	PLUGIN_AWAY,       /* nothing agreed with a kubelet */
	PLUGIN_ASKING,     /* Register is under way */
	PLUGIN_REGISTERED, /* the kubelet said yes, and opens its stream or has it open */
};

struct plugin {
	const struct config *config;
	struct loop *loop;
	struct rpc *rpc;
	struct driver driver;
	struct inventory inventory;
	struct service service;

	enum plugin_state state;
	struct loop_watch watch; /* of the kubelet's directory */
	bool watching;
	struct loop_timer timer; /* when to look again */
	uint64_t pause;          /* before the next look, if something goes wrong */
	struct rpc_server *server;
	char endpoint[64]; /* the name of our socket */
	unsigned servers;  /* that we had, for their names */
	struct rpc_request *registering;
	uint64_t watched_since; /* the kubelet has its stream; 0: not */
	char said[512];         /* the last complaint, which is not repeated */
};

/* @before: as in inventory.h. */
int plugin_init(struct plugin *plugin, struct loop *loop, const struct config *config,
		const struct inventory *before);
/* Ends streams and server, removes the socket. */
void plugin_deinit(struct plugin *plugin);
