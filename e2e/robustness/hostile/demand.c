/* Demand that is not the writer's. A client may write the words of the levels below its own. */
#include "robustness/hostile/siege.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES_MAX 64

struct pages {
	struct weir_demand_page *all[PAGES_MAX];
	unsigned n;
};

/* Maps the writable demand pages among the descriptors of a WELCOME or LEVEL, the first of which is
 * at @first. */
static void keep(struct pages *pages, const int *fds, uint8_t level)
{
	unsigned readable = level < WEIR_DEMAND_LEVELS;

	for (unsigned i = 0; i < level && pages->n < PAGES_MAX; i++) {
		void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
				  fds[readable + i], 0);
		if (page == MAP_FAILED)
			cannot("map a demand page");
		pages->all[pages->n++] = page;
	}
	close_fds(fds, readable + level);
}

static void demand_all(const struct pages *pages)
{
	for (unsigned i = 0; i < pages->n; i++)
		atomic_store(&pages->all[i]->word, UINT64_MAX);
}

static int join(struct pages *pages)
{
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];
	int socket = client_join(&welcome, fds);

	if (socket < 0)
		cannot("join");
	close_fds(fds, 2);
	keep(pages, fds + 2, welcome.welcome.level);
	return socket;
}

void siege_forge(void)
{
	for (bool first = true;; usleep(5000)) {
		pid_t child = fork();
		if (child < 0)
			cannot("fork");
		if (child == 0) {
			struct pages pages = {.n = 0};
			join(&pages);
			demand_all(&pages);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		if (first)
			siege_ready();
		first = false;
	}
}

/* Its level changes meanwhile. The pages from before stay mapped. */
void siege_demoted(void)
{
	struct pages pages = {.n = 0};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n;

	struct pollfd polled = {.fd = join(&pages), .events = POLLIN};
	siege_ready();
	for (;;) {
		demand_all(&pages);
		if (poll(&polled, 1, 1) != 1)
			continue;
		if (weir_message_receive(polled.fd, &message, fds, &n) < 0)
			cannot("go on: cut off");
		if (message.header.type == WEIR_LEVEL) {
			keep(&pages, fds, message.level.level);
			printf("level %u, with %u pages\n", message.level.level, pages.n);
			fflush(stdout);
		} else {
			close_fds(fds, n);
		}
	}
}
