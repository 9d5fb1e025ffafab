/* A hostile agent: any packet, with descriptors of pages good and bad, fed to the client's side of
 * the socket. Whatever it makes of them must be usable memory. */
#include "client/link.h"
#include "client/level-binding.h"
#include "client/request.h"

#include "memory/memory-ledger.h"
#include "client/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct client clients[CLIENTS_MAX];
_Atomic uint32_t clients_used;

void ledger_ask_again(bool all)
{
	(void)all;
}

void worker_wake(void)
{
}

uint64_t client_now(void)
{
	return 1;
}

static void touch(const struct page *page)
{
	if (page)
		(void)*(volatile uint8_t *)((uint8_t *)page->memory + WEIR_PAGE_SIZE - 1);
}

static void use(struct level_binding *binding)
{
	if (!binding)
		return;
	if (binding->level >= WEIR_LEVELS || binding->bit > WEIR_BIT_SHARED)
		abort();
	touch(binding->wait);
	touch(binding->control);
	touch(binding->status);
	for (unsigned q = 0; q < binding->level; q++)
		touch(binding->below[q]);
	free(binding);
}

/* A request that was sent has been answered, or is as it was. */
static void use_request(struct request *request)
{
	int state = atomic_load(&request->state);

	if (state == REQUEST_ANSWERED &&
	    ((request->status == WEIR_COMPILE_OK) != (request->file >= 0) ||
	     request->status > WEIR_COMPILE_FAILED || strlen(request->text) > 127))
		abort();
	if (state != REQUEST_ANSWERED && request->file < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int pages[2] = {-1, -1};
	static struct page control, status;
	static struct level_binding binding;
	struct client *client = &clients[0];
	int fds[WEIR_FDS_MAX], pair[2];

	if (pages[0] < 0) {
		/* One as it should be, one too short. */
		pages[0] = memfd_create("page", 0);
		pages[1] = memfd_create("short", 0);
		if (ftruncate(pages[0], WEIR_PAGE_SIZE) < 0 || ftruncate(pages[1], 10) < 0)
			abort();
		control.memory = status.memory =
			mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, pages[0], 0);
		binding = (struct level_binding){.control = &control, .status = &status};
	}
	if (size < 3 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	for (size_t i = 0; i < WEIR_FDS_MAX; i++)
		fds[i] = data[1] >> i & 1 ? pages[1] : pages[0];
	link_of(client)->socket = pair[1];
	link_of(client)->newest = data[2] & 1 ? binding : (struct level_binding){0};
	atomic_store(&client->binding, data[2] & 1 ? &binding : NULL);
	request_put(client, dup(pages[0]));
	request_send(client, pair[1], 1);
	size -= 3;
	if (weir_message_send(pair[0], data + 3, size < WEIR_MESSAGE_MAX ? size : WEIR_MESSAGE_MAX,
			      fds, data[0] % (WEIR_FDS_MAX + 1)) == 0)
		link_receive(client, 1);
	use(binding_exchange(client, NULL));
	use_request(request_at(client, 0));
	request_reset(client);
	close(pair[0]);
	if (link_of(client)->socket >= 0)
		close(link_of(client)->socket);
	return 0;
}
