#include "memory/memory-account.h"

#include "shim/connect.h"

#include "weir/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The lock is held while 252 words are added. A waiting thread yields first, then sleeps. Tries are
 * counted, not time: time passes while a container is frozen. */
#define YIELDS 200
#define SLEEPS 3000 /* of 1 ms; the agent frees a dead process's lock much sooner */

#define ANSWER_WITHIN_MS 1000
#define TRY_MS           100
#define WAIT_AWAY_NS     (30 * NS_PER_S) /* for an agent to come: an upgrade takes less */
#define WAIT_SILENT_NS   (5 * NS_PER_S)  /* for one that says nothing: it may be too old */

static bool lock(struct weir_account_page *account, uint32_t slot)
{
	static const struct timespec moment = {.tv_nsec = NS_PER_MS};

	for (int i = 0; i < YIELDS + SLEEPS; i++) {
		uint32_t nobody = 0;
		if (atomic_compare_exchange_strong(&account->lock, &nobody, slot + 1))
			return true;
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&moment, NULL);
	}
	return false;
}

/* The agent may have taken the lock from us, and another process may hold it now. */
static void unlock(struct weir_account_page *account, uint32_t slot)
{
	uint32_t own = slot + 1;

	atomic_compare_exchange_strong(&account->lock, &own, 0);
}

uint64_t account_sum(const struct weir_account_page *account)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < WEIR_MEMORY_SLOTS; i++)
		sum = saturating_add(sum, atomic_load(&account->slots[i].reserved));
	return sum;
}

enum account_answer account_reserve(struct weir_account_page *account,
				    const struct weir_limit_page *limit, uint32_t slot,
				    uint64_t more)
{
	uint64_t most = atomic_load(&limit->limit);
	uint64_t wanted = saturating_add(atomic_load(&account->slots[slot].reserved), more);

	if (!most) {
		account_set(account, slot, wanted);
		return ACCOUNT_RESERVED;
	}
	if (!lock(account, slot))
		return ACCOUNT_BUSY;
	bool fits = saturating_add(account_sum(account), more) <= most;
	if (fits)
		account_set(account, slot, wanted);
	unlock(account, slot);
	return fits ? ACCOUNT_RESERVED : ACCOUNT_FULL;
}

void account_set(struct weir_account_page *account, uint32_t slot, uint64_t bytes)
{
	atomic_store(&account->slots[slot].reserved, bytes);
}

bool memory_view(const struct memory_pages *pages, uint64_t *limit, uint64_t *reserved)
{
	*limit = pages->limit ? atomic_load(&pages->limit->limit) : 0;
	*reserved = *limit ? account_sum(pages->account) : 0;
	return *limit;
}

/* Asking the agent. */

/* Not inherited by forked children. */
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
		log_limited(LOG_WARNING, 60, "the agent's memory pages cannot be mapped");
		return MEMORY_CLOSED;
	}
	pages.id = info.st_ino;
	*out = pages;
	return MEMORY_ACCOUNT;
}

/* The device plugin sets the variable in containers with shares. Only an agent can tell these that
 * they have no limit. */
static bool may_be_limited(void)
{
	const char *told = getenv(WEIR_LIMITED_VARIABLE);

	return told && strcmp(told, "0") != 0;
}

/* An agent that has not heard of the pod yet refuses, too. */
static enum memory_answer refusal(const struct weir_refused *refused)
{
	bool not_now =
		refused->reason == WEIR_REFUSED_INTERNAL || refused->reason == WEIR_REFUSED_LIMIT;

	return refused->flags & WEIR_REFUSED_LIMITED || (not_now && may_be_limited())
		       ? MEMORY_CLOSED
		       : MEMORY_NOBODY;
}

static enum memory_answer hear(struct memory_pages *out, int socket)
{
	enum memory_answer answer = MEMORY_CLOSED;
	struct pollfd wait = {.fd = socket, .events = POLLIN};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n = 0;

	if (poll(&wait, 1, ANSWER_WITHIN_MS) != 1)
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

static bool node_has_limits(void)
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

static uint64_t wait_for(enum memory_answer answer)
{
	return answer == MEMORY_SILENT ? WAIT_SILENT_NS : WAIT_AWAY_NS;
}

enum memory_answer memory_ask(struct memory_pages *out, const uint8_t gpu[16], bool patient)
{
	static const struct timespec moment = {.tv_nsec = TRY_MS * NS_PER_MS};
	uint64_t began = monotonic_now();
	enum memory_answer answer = ask_once(out, gpu);

	if (unknown(answer) && !may_be_limited() && !node_has_limits())
		return MEMORY_NOBODY;
	while (unknown(answer) && patient && monotonic_now() - began < wait_for(answer)) {
		nanosleep(&moment, NULL);
		answer = ask_once(out, gpu);
	}
	return answer;
}

int memory_tell_wait(const uint8_t gpu[16], uint64_t bytes)
{
	struct weir_memory_waits message = {.bytes = bytes};
	cleanup(closep) int socket = connect_agent();

	weir_header_init(&message.header, WEIR_MEMORY_WAITS, sizeof(message));
	memcpy(message.gpu, gpu, sizeof(message.gpu));
	if (socket < 0)
		return socket;
	int r = weir_message_send(socket, &message, sizeof(message), NULL, 0);
	return r < 0 ? r : take_fd(socket);
}
