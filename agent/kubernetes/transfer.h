/* libcurl on our loop: HTTP requests that never block and need no thread. (Only to look up a host's
 * *name* does libcurl start a thread of its own; a cluster's service address is a number.) */
#pragma once

#include "weir/loop.h"

#include <curl/curl.h>

struct transfers;

/* @request has ended; it is no longer among the transfers and is the callee's to clean up. */
typedef void transfer_done_fn(struct transfers *transfers, CURL *request, CURLcode result);

/* To be embedded. The callbacks of a request must not touch the transfers: they run inside
 * libcurl. */
struct transfers {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer timer;
	transfer_done_fn *done;
};

int transfers_init(struct transfers *transfers, struct loop *loop, transfer_done_fn *done);
/* Requests still under way must be taken out first. */
void transfers_deinit(struct transfers *transfers);
int transfers_add(struct transfers *transfers, CURL *request);
void transfers_remove(struct transfers *transfers, CURL *request);
