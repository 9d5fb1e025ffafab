/* Pages that the agent shares with clients. protocol.h describes their contents.
 *
 * Demand pages are files, one folder for each GPU: `stateDir/GPU-.../demand-0..2`. They outlive the
 * agent, because clients keep using them and the next agent must find the same pages. The file
 * `taken` beside them is the agent's own: the bits that it gave out, and the generations of pages.
 *
 * A client that has mapped a page can write it for ever. When it loses the right to, the page gets
 * a new generation, `demand-1.7`, which it does not have. Gates that are in streams and graphs
 * already still wait for the former ones, so the agent keeps the words of the latest of these at
 * zero.
 *
 * Control and status pages are memfds, sealed in size, so that no client can make the agent fault
 * on them. They need not outlive the agent: a client gets new ones from the next agent.
 *
 * A client that may only read a page must not be able to open it for writing by /proc/self/fd, not
 * even as root of its container. Its descriptor comes from a detached read-only clone of the mount.
 *
 * A client that may write a page must not be able to damage its file, or other clients of the GPU
 * would fault on it or use another page.
 * - Truncation: a thread opens the descriptor under a Landlock rule that denies it. The denial
 * stays with the descriptor wherever it goes.
 * - Holes, and opening the file again without the denial: the file is immutable while in use. This
 *   works on tmpfs only, because other file systems refuse to map an immutable file for writing.
 * A client may also take a lease (fcntl(2)) on its descriptor while no agent runs: an open of the
 * file would then wait for 45 s. All opens here have O_NONBLOCK, and a leased file is replaced. An
 * immutable file with a write lease cannot even be removed. Its folder is renamed then; a page of
 * memory/, which only one container has, fails with -EWOULDBLOCK while the lease lasts.
 *
 * Where the kernel or our capabilities do not allow this, the agent logs one warning and goes on.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/folder.h"

#include "weir/protocol.h"

/* Opens stateDir, and makes it if it is missing. */
int region_root_init(struct folder *root, const char *path);

/* A file of one page in a folder of stateDir, mapped, with two descriptors for clients. */
struct region_page {
	union {
		void *page;
		struct weir_demand_page *demand;
		struct weir_limit_page *limit;
		struct weir_account_page *account;
	};
	int writable, readonly;
};
#define REGION_PAGE_NONE ((struct region_page){.writable = -1, .readonly = -1})

/* Makes folder and file if they are missing. 0, or a negative errno. */
int region_page_init(struct region_page *page, const struct folder *root, const char *folder,
		     const char *file);
/* Unmaps; the file stays. */
void region_page_deinit(struct region_page *page);
void region_page_remove(const struct folder *root, const char *folder, const char *file);

#define REGION_RETIRED 16u /* former generations of a page that are kept */

/* File `taken`. */
struct region_taken {
	_Atomic uint64_t bits;
	_Atomic uint64_t generations[WEIR_DEMAND_LEVELS]; /* of the pages */
	_Atomic uint8_t levels[64]; /* by bit: the client has the pages below this level */
};

struct region {
	struct region_page pages[WEIR_DEMAND_LEVELS]; /* by level */
	struct region_taken *taken;
	/* By generation modulo their number; NULL: none. */
	struct weir_demand_page *retired[WEIR_DEMAND_LEVELS][REGION_RETIRED];
};

/* Opens the pages in folder @name; makes what is missing, and replaces what is no page file. Logs
 * errors. */
int region_init(struct region *region, const struct folder *root, const char *name);
/* Unmaps; the files stay. */
void region_deinit(struct region *region);

/* Begins a new generation of a page, whose word is @word. 0; or a negative errno (logged): the page
 * is the same as before. */
int region_renew(struct region *region, const struct folder *root, const char *name, unsigned level,
		 uint64_t word);
/* Former generations are kept. */
bool region_has_retired(const struct region *region);
/* Opens all gates that wait for them. */
void region_clear_retired(const struct region *region);
/* The same, and forgets them: no client is left. */
void region_drop_retired(struct region *region, const struct folder *root, const char *name);
/* Removes the files. */
void region_remove(const struct folder *root, const char *name);

struct region_pages {
	struct weir_control_page *control;
	const struct weir_status_page *status;
	int control_fd, status_fd; /* to be sent and closed; the mappings stay */
};

int region_pages_init(struct region_pages *pages);
void region_pages_close(struct region_pages *pages);
void region_pages_deinit(struct region_pages *pages);
