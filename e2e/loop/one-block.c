#include "one-block.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct world w;

/* %globaltimer of the interpreter. */
static uint64_t timer(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void note_time(uintptr_t address)
{
	uintptr_t callbacks = (uintptr_t)w.block.callbacks;

	w.began |= address == (uintptr_t)&w.device.began;
	if (address < callbacks || address >= callbacks + sizeof(w.block.callbacks))
		return;
	if (!w.began)
		w.loaded = timer();
	else if (!w.stored)
		w.stored = timer();
}

static bool count(uintptr_t address, size_t size)
{
	const struct {
		const void *begin;
		size_t size;
	} parts[PARTS] = {[DEVICE] = {&w.device, sizeof(w.device)},
			  [BLOCK] = {&w.block, sizeof(w.block)},
			  [HOST] = {&w.host, sizeof(w.host)},
			  [OUT] = {w.out, BUFFER}};

	note_time(address);
	for (size_t i = 0; i < PARTS; i++) {
		uintptr_t begin = (uintptr_t)parts[i].begin;
		if (address >= begin && address + size <= begin + parts[i].size) {
			w.touched[i]++;
			return true;
		}
	}
	return false;
}

int begin(void **state)
{
	(void)state;
	memset(&w.device, 0, sizeof(w.device));
	memset(&w.block, 0, sizeof(w.block));
	memset(&w.host, 0, sizeof(w.host));
	memset(w.out, 0, 64 * sizeof(uint64_t));
	w.params.args = (struct weir_loop_args){.device = &w.device,
						.blocks = &w.block,
						.requests = w.host.requests,
						.doorbells = w.host.doorbells,
						.answers = w.host.answers,
						.values = w.host.values,
						.data = w.host.data[0],
						.report = &w.host.report,
						.demand = &w.host.demand,
						.demand_mask = 2,
						.hold = &w.host.hold,
						.callbacks = CALLBACKS,
						.ring = RING,
						.poll_ns = 1,
						.words_ns = 1,
						.linger_ns = 1000,
						.check_cycles = UINT32_MAX};
	w.params.out = w.out;
	w.threads = THREADS;
	return 0;
}

int launch(const char *kernel, uint64_t n, uint64_t instructions)
{
	struct ptx_launch launch = {.grid = {1, 1, 1},
				    .block = {w.threads, 1, 1},
				    .params = &w.params,
				    .sm_count = 1,
				    .max_instructions = instructions};
	struct ptx_error error = {0};

	w.params.n = n;
	w.params.args.serial++;
	memset(w.touched, 0, sizeof(w.touched));
	w.loaded = w.stored = 0;
	w.began = false;
	int r = ptx_run_block(ptx_module_kernel(w.module, kernel), &launch, 0, 0, NULL, &error,
			      NULL);
	if (r && r != -ETIME)
		fail_msg("%s: %d, line %d: %s", kernel, r, error.line, error.message);
	return r;
}

void must_leave(const char *kernel, uint64_t n, uint32_t reason)
{
	assert_int_equal(launch(kernel, n, INSTRUCTIONS), 0);
	assert_int_equal(w.host.report.serial, w.params.args.serial);
	assert_int_equal(w.host.report.reason, reason);
	/* In order for the next launch. */
	assert_int_equal(w.device.close, 0);
	assert_int_equal(w.device.left, 0);
	assert_int_equal(w.device.idle, 0);
	assert_int_equal(w.device.next_poll, 0);
}

int one_block_begin(void **state)
{
	(void)state;
	w.module = fixture_load_file(LOOP_KERNELS);
	w.out = calloc(1, BUFFER);
	ptx_set_address_check(count);
	return !w.out;
}

int one_block_end(void **state)
{
	(void)state;
	ptx_module_free(w.module);
	free(w.out);
	return 0;
}
