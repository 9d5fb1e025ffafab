#include "catch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

static struct {
	struct level_binding binding;
	struct page page;
	struct sigaction before;
	void (*meanwhile)(void);
} caught;

static void on_fault(int signal)
{
	sigaction(signal, &caught.before, NULL);
	mprotect(caught.page.memory, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE);
	caught.meanwhile();
	caught.meanwhile = NULL;
}

struct level_binding *catch_write(void (*meanwhile)(void))
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};

	caught.binding = *atomic_load(&client->binding);
	caught.page = *caught.binding.below[0];
	caught.page.memory =
		mmap(NULL, WEIR_PAGE_SIZE, PROT_NONE, MAP_SHARED, agent.demand_fds[0], 0);
	assert_true(caught.page.memory != MAP_FAILED);
	caught.binding.below[0] = &caught.page;
	caught.meanwhile = meanwhile;
	sigaction(SIGSEGV, &action, &caught.before);
	return &caught.binding;
}

bool is_caught(void)
{
	return !caught.meanwhile;
}
