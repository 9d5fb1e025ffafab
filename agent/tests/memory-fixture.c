#include "memory-fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *page_at(int fd, int protection)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, protection, MAP_SHARED, fd, 0);

	assert_true(page != MAP_FAILED);
	return page;
}

int view_ask(void)
{
	struct weir_hello hello = fake_hello(WEIR_BIT_NONE);
	struct weir_memory message = {0};
	int fd = fake_connect();

	weir_header_init(&message.header, WEIR_MEMORY, sizeof(message));
	memcpy(message.gpu, hello.gpu, sizeof(message.gpu));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), NULL, 0), 0);
	return fd;
}

struct view view_read(int fd)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	assert_int_equal(fake_receive(fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_ACCOUNT);
	close(fd);
	rig_pump();
	return (struct view){message.account.slot, fds[0], fds[1], page_at(fds[0], PROT_READ),
			     page_at(fds[1], PROT_READ | PROT_WRITE)};
}

struct view view_of_next(void)
{
	int fd = view_ask();

	rig_pump();
	return view_read(fd);
}

struct view view_of(uid_t uid)
{
	next_identity = (struct container_identity){.uid = uid, .cgroup = "/test"};
	return view_of_next();
}

void view_leave(const struct view *view)
{
	munmap((void *)view->limit, WEIR_PAGE_SIZE);
	munmap(view->account, WEIR_PAGE_SIZE);
	close(view->limit_fd);
	close(view->account_fd);
}

int lease(int fd, int type)
{
	signal(SIGIO, SIG_IGN);
	return fcntl(fd, F_SETLEASE, type);
}

void remove_mark(void)
{
	char mark[128];

	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, rig_folder);
	assert_int_equal(unlink(mark), 0);
}

bool is_marked(void)
{
	char mark[128];

	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, rig_folder);
	return access(mark, F_OK) == 0;
}
