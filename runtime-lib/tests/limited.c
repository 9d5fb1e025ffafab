#include "limited.h"
#include "memory/memory.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct limited limited;

uint64_t reserved(void)
{
	return limited.account->slots[LIMITED_SLOT].reserved;
}

static void *page_new(int *fd)
{
	*fd = memfd_create("page", MFD_CLOEXEC);
	assert_true(*fd >= 0 && ftruncate(*fd, WEIR_PAGE_SIZE) == 0);
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(page != MAP_FAILED);
	return page;
}

int limited_hear(union weir_message *message)
{
	struct pollfd wait = {.fd = limited.agent.listener, .events = POLLIN};
	int received[WEIR_FDS_MAX];
	size_t n;

	assert_int_equal(poll(&wait, 1, EVENTUALLY_MS), 1);
	int fd = accept4(limited.agent.listener, NULL, NULL, SOCK_CLOEXEC);
	wait.fd = fd;
	assert_int_equal(poll(&wait, 1, EVENTUALLY_MS), 1);
	assert_int_equal(weir_message_receive(fd, message, received, &n), 0);
	return fd;
}

void *limited_answer(void *unused)
{
	struct weir_account message = {.slot = LIMITED_SLOT};
	union weir_message question;
	int fd = limited_hear(&question);

	(void)unused;
	assert_int_equal(question.header.type, WEIR_MEMORY);
	weir_header_init(&message.header, WEIR_ACCOUNT, sizeof(message));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), limited.fds, 2), 0);
	close(fd);
	return NULL;
}

int limited_init(void **state)
{
	(void)state;
	fake_agent_init(&limited.agent);
	limited.limit = page_new(&limited.fds[0]);
	limited.account = page_new(&limited.fds[1]);
	return 0;
}

int limited_begin(void **state)
{
	CUdeviceptr address;
	pthread_t helper;

	limited_init(state);
	limited.limit->limit = 8 * MIB;
	assert_int_equal(pthread_create(&helper, NULL, limited_answer, NULL), 0);
	assert_int_equal(cuMemAlloc_v2(&address, MIB), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(address), CUDA_SUCCESS);
	pthread_join(helper, NULL);
	assert_true(reserved() == 0);
	return 0;
}
