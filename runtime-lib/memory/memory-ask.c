#include "memory/memory-ask.h"

#include "shim/connect.h"

#include "weir/base.h"
#include "weir/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define ANSWER_WITHIN   1000 /* ms */
#define TRY_MS          100
#define PATIENCE_AWAY   30000000000u /* ns; an agent is upgraded in less */
#define PATIENCE_SILENT 5000000000u  /* one that says nothing may be too old for the question */

/* A descriptor's page, which a forked child has no use for. */
static void *map(int fd, int protection, struct stat *info)
{
	if (fstat(fd, info) < 0 || !S_ISREG(info->st_mode) || info->st_size < WEIR_PAGE_SIZE)
		return NULL;
	void *page = mmap(NULL, WEIR_PAGE_SIZE, protection, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	madvise(page, WEIR_PAGE_SIZE, MADV_DONTFORK);
	return page;
}

void memory_unmap(const struct memory_pages *pages)
{
	if (pages->limit)
		munmap((void *)pages->limit, WEIR_PAGE_SIZE);
	if (pages->account)
		munmap(pages->account, WEIR_PAGE_SIZE);
}

static enum memory_answer take_account(struct memory_pages *out, const struct weir_account *message,
				       const int *fds)
{
	struct stat info;
	struct memory_pages pages = {
		.limit = map(fds[0], PROT_READ, &info),
		.account = map(fds[1], PROT_READ | PROT_WRITE, &info),
		.slot = message->slot,
	};

	if (!pages.limit || !pages.account) {
		memory_unmap(&pages);
		log_limited(LOG_WARNING, 60, "the agent's pages of memory cannot be used");
		return MEMORY_CLOSED;
	}
	pages.id = info.st_ino;
	*out = pages;
	return MEMORY_ACCOUNT;
}

/* The device plugin says so in the containers that it gives shares to: for these, even the news
 * that there is no limit has to come from an agent. */
static bool told_to_wait(void)
{
	const char *told = getenv(WEIR_LIMITED_VARIABLE);

	return told && strcmp(told, "0") != 0;
}

/* It may be that the agent has not heard of the pod yet. */
static enum memory_answer refusal(const struct weir_refused *refused)
{
	bool not_now =
		refused->reason == WEIR_REFUSED_INTERNAL || refused->reason == WEIR_REFUSED_LIMIT;

	return refused->flags & WEIR_REFUSED_LIMITED || (not_now && told_to_wait()) ? MEMORY_CLOSED
										    : MEMORY_NOBODY;
}

/* What the agent at the other end says. */
static enum memory_answer hear(struct memory_pages *out, int socket)
{
	enum memory_answer answer = MEMORY_CLOSED;
	struct pollfd wait = {.fd = socket, .events = POLLIN};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n = 0;

	if (poll(&wait, 1, ANSWER_WITHIN) != 1)
		return MEMORY_CLOSED;
	int r = weir_message_receive(socket, &message, fds, &n);
	if (r != 0)
		return r == -EPIPE || r == -ECONNRESET ? MEMORY_SILENT : MEMORY_CLOSED;
	if (message.header.type == WEIR_ACCOUNT)
		answer = take_account(out, &message.account, fds);
	else if (message.header.type == WEIR_REFUSED)
		answer = refusal(&message.refused);
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	return answer;
}

static bool marked(void)
{
	char path[PATH_MAX];
	struct stat info;
	const char *socket = connect_path(), *end = strrchr(socket, '/');
	int n = end ? snprintf(path, sizeof(path), "%.*s/" WEIR_LIMITED_NAME, (int)(end - socket),
			       socket)
		    : 0;

	return n > 0 && n < (int)sizeof(path) && stat(path, &info) == 0;
}

static enum memory_answer ask_once(struct memory_pages *out, const uint8_t gpu[16])
{
	struct weir_memory question = {0};
	cleanup(closep) int socket = connect_agent();

	weir_header_init(&question.header, WEIR_MEMORY, sizeof(question));
	memcpy(question.gpu, gpu, sizeof(question.gpu));
	if (socket < 0 || weir_message_send(socket, &question, sizeof(question), NULL, 0) < 0)
		return MEMORY_CLOSED;
	shutdown(socket, SHUT_WR);
	return hear(out, socket);
}

static bool unknown(enum memory_answer answer)
{
	return answer == MEMORY_CLOSED || answer == MEMORY_SILENT;
}

static uint64_t patience_for(enum memory_answer answer)
{
	return answer == MEMORY_SILENT ? PATIENCE_SILENT : PATIENCE_AWAY;
}

enum memory_answer memory_ask(struct memory_pages *out, const uint8_t gpu[16], bool patient)
{
	static const struct timespec moment = {.tv_nsec = TRY_MS * 1000000};
	uint64_t began = monotonic_now();
	enum memory_answer answer = ask_once(out, gpu);

	if (unknown(answer) && !told_to_wait() && !marked())
		return MEMORY_NOBODY;
	while (unknown(answer) && patient && monotonic_now() - began < patience_for(answer)) {
		nanosleep(&moment, NULL);
		answer = ask_once(out, gpu);
	}
	return answer;
}
