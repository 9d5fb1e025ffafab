/* libcurl on our loop: HTTP requests that never block and need no thread. (libcurl starts a thread
 * only to look up a host's name; a cluster's service address is a number.) */
#pragma once

#include "weir/loop.h"

#include <curl/curl.h>

struct transfers;

/* @request has ended and was removed. The callee cleans it up. */
typedef void transfer_done_fn(struct transfers *transfers, CURL *request, CURLcode result);

/* Embedded in its owner. The callbacks of a request must not touch the transfers, because they run
 * inside libcurl. */
struct transfers {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer timer;
	transfer_done_fn *done;
};

int transfers_init(struct transfers *transfers, struct loop *loop, transfer_done_fn *done);
/* Remove all running requests first. */
void transfers_deinit(struct transfers *transfers);
int transfers_add(struct transfers *transfers, CURL *request);
void transfers_remove(struct transfers *transfers, CURL *request);
