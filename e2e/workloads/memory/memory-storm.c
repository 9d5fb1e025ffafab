/* Processes of one container race at its limit of memory, through every way to allocate.
 *
 *   storm    each allocates and frees at random; being refused is no error. --kills N: of them N
 *            die by SIGKILL at random moments, and others take their places
 *   fill     each takes chunks, in every way in turn, until all are refused: together they have the
 *            limit, to less than a chunk. Meanwhile they try to destroy their primary contexts
 *   after    a last process fills alone: nothing was lost
 *
 * --watch BYTES: instead looks on what the GPU says is in use, which is never more. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/base.h>

#include "workload.h"

#define PROCESSES_MAX 64
#define ITEMS         512
#define CHUNK         (2ull << 20)

enum phase { PHASE_STORM, PHASE_FREE, PHASE_FILL, PHASE_END };

/* Of all processes. */
struct board {
	_Atomic int phase;
	_Atomic unsigned stormed, freed, filled;
	_Atomic uint64_t limit, refusals, made;
	_Atomic uint64_t held[PROCESSES_MAX]; /* chunks */
};

struct item {
	const struct way *way;
	CUdeviceptr address;
	CUmemGenericAllocationHandle handle;
	CUarray array;
	size_t size;
	bool released; /* the handle */
};

struct storm {
	struct board *board;
	unsigned index;
	struct random random;
	CUcontext context; /* primary */
	CUstream stream;
	CUmemoryPool pool;
	struct item items[ITEMS];
	size_t n;
};

static CUresult by_alloc(struct storm *storm, struct item *item)
{
	(void)storm;
	return cuMemAlloc(&item->address, item->size);
}

static CUresult by_managed(struct storm *storm, struct item *item)
{
	(void)storm;
	return cuMemAllocManaged(&item->address, item->size, CU_MEM_ATTACH_GLOBAL);
}

static CUresult by_pitch(struct storm *storm, struct item *item)
{
	size_t pitch;

	(void)storm;
	return cuMemAllocPitch(&item->address, &pitch, 4096, (item->size + 4095) / 4096, 4);
}

static CUresult by_stream(struct storm *storm, struct item *item)
{
	return cuMemAllocAsync(&item->address, item->size, storm->stream);
}

static CUresult by_pool(struct storm *storm, struct item *item)
{
	return cuMemAllocFromPoolAsync(&item->address, item->size, storm->pool, storm->stream);
}

static CUresult by_array(struct storm *storm, struct item *item)
{
	CUDA_ARRAY_DESCRIPTOR array = {.Width = 1024,
				       .Height = (item->size + 4095) / 4096,
				       .Format = CU_AD_FORMAT_FLOAT,
				       .NumChannels = 1};

	(void)storm;
	return cuArrayCreate(&item->array, &array);
}

static CUresult by_map(struct storm *storm, struct item *item)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUresult result;

	(void)storm;
	item->size = (item->size + CHUNK - 1) / CHUNK * CHUNK;
	result = cuMemCreate(&item->handle, item->size, &properties, 0);
	if (result != CUDA_SUCCESS)
		return result;
	CU(cuMemAddressReserve(&item->address, item->size, 0, 0, 0));
	CU(cuMemMap(item->address, item->size, 0, item->handle, 0));
	/* The mapping keeps it. */
	if (item->size / CHUNK % 2)
		CU(cuMemRelease(item->handle));
	item->released = item->size / CHUNK % 2;
	return CUDA_SUCCESS;
}

static void free_address(struct storm *storm, struct item *item)
{
	(void)storm;
	CU(cuMemFree(item->address));
}

static void free_stream(struct storm *storm, struct item *item)
{
	CU(cuMemFreeAsync(item->address, storm->stream));
	if (random_below(&storm->random, 4) == 0)
		CU(cuStreamSynchronize(storm->stream));
}

static void free_array(struct storm *storm, struct item *item)
{
	(void)storm;
	CU(cuArrayDestroy(item->array));
}

static void free_map(struct storm *storm, struct item *item)
{
	(void)storm;
	CU(cuMemUnmap(item->address, item->size));
	CU(cuMemAddressFree(item->address, item->size));
	if (!item->released)
		CU(cuMemRelease(item->handle));
}

static const struct way {
	CUresult (*make)(struct storm *storm, struct item *item);
	void (*free)(struct storm *storm, struct item *item);
} ways[] = {
	{by_alloc, free_address}, {by_managed, free_address}, {by_pitch, free_address},
	{by_stream, free_stream}, {by_pool, free_stream},     {by_array, free_array},
	{by_map, free_map},
};

/* False: refused. */
static bool allocate(struct storm *storm, const struct way *way, size_t size)
{
	struct item *item = &storm->items[storm->n];

	if (storm->n == ITEMS)
		return false;
	*item = (struct item){.way = way, .size = size};
	CUresult result = way->make(storm, item);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		atomic_fetch_add(&storm->board->refusals, 1);
		return false;
	}
	CU(result);
	atomic_fetch_add(&storm->board->made, 1);
	storm->n++;
	return true;
}

static void release(struct storm *storm, size_t i)
{
	storm->items[i].way->free(storm, &storm->items[i]);
	storm->items[i] = storm->items[--storm->n];
}

static void free_all(struct storm *storm)
{
	while (storm->n > 0)
		release(storm, storm->n - 1);
	CU(cuCtxSynchronize());
}

static void storm_once(struct storm *storm)
{
	const struct way *way = &ways[random_below(&storm->random, countof(ways))];
	size_t size =
		4096 + random_below(&storm->random, 1u << (12 + random_below(&storm->random, 12)));
	size_t free_bytes, total;

	if (random_below(&storm->random, 5) < 3 && allocate(storm, way, size))
		return;
	for (uint32_t n = random_below(&storm->random, 4); n > 0 && storm->n > 0; n--)
		release(storm, random_below(&storm->random, (uint32_t)storm->n));
	CU(cuMemGetInfo(&free_bytes, &total));
	if (total != atomic_load(&storm->board->limit) || free_bytes > total)
		workload_fail("a view of %zu free of %zu", free_bytes, total);
}

/* The driver destroys no primary context, so what was allocated in it stays charged. */
static void end_in_vain(const struct storm *storm)
{
	if (cuCtxDestroy(storm->context) != CUDA_ERROR_INVALID_CONTEXT)
		workload_fail("a primary context was destroyed");
}

static void fill(struct storm *storm)
{
	size_t refused = 0;

	for (size_t i = storm->index; refused < countof(ways); i++) {
		if (allocate(storm, &ways[i % countof(ways)], CHUNK))
			refused = 0;
		else
			refused++;
		if (storm->n % 2)
			end_in_vain(storm);
	}
	atomic_store(&storm->board->held[storm->index], storm->n);
}

static void wait_for(const struct board *board, enum phase phase)
{
	while (atomic_load(&board->phase) < (int)phase)
		usleep(1000);
}

static void open_all(struct storm *storm, struct workload *workload)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	size_t free_bytes, total;

	workload_open(workload, NULL);
	storm->context = workload->context;
	CU(cuStreamCreate(&storm->stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemPoolCreate(&storm->pool, &properties));
	CU(cuMemGetInfo(&free_bytes, &total));
	atomic_store(&storm->board->limit, total);
	CU(cuDeviceTotalMem(&total, workload->device));
	if (total != atomic_load(&storm->board->limit))
		workload_fail("cuDeviceTotalMem says %zu", total);
}

static void run_one(struct workload *workload, struct board *board, unsigned index, uint64_t seed)
{
	struct storm *storm = workload_alloc(sizeof(*storm));

	*storm = (struct storm){.board = board, .index = index, .random = {seed}};
	open_all(storm, workload);
	for (uint64_t i = 0; i < workload->iterations; i++)
		storm_once(storm);
	/* A process that is to be killed goes on. */
	atomic_fetch_add(&board->stormed, 1);
	while (atomic_load(&board->phase) == PHASE_STORM)
		storm_once(storm);
	free_all(storm);
	atomic_fetch_add(&board->freed, 1);
	wait_for(board, PHASE_FILL);
	fill(storm);
	atomic_fetch_add(&board->filled, 1);
	wait_for(board, PHASE_END);
	exit(0);
}

static pid_t start(struct workload *workload, struct board *board, unsigned index, uint64_t seed)
{
	pid_t parent = getpid();

	fflush(stdout);
	pid_t child = fork();
	if (child < 0)
		workload_fail("fork");
	if (child == 0) {
		/* Otherwise it would wait for ever for the next phase. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(1);
		run_one(workload, board, index, seed);
	}
	return child;
}

static void until(const _Atomic unsigned *count, unsigned n, const pid_t *children)
{
	while (atomic_load(count) < n) {
		for (unsigned i = 0; i < n; i++)
			if (waitpid(children[i], NULL, WNOHANG) == children[i])
				workload_fail("a process ended early");
		usleep(1000);
	}
}

/* @n processes, from storm to fill. */
static void race(struct workload *workload, struct board *board, unsigned n, uint64_t kills)
{
	struct random random = {workload->seed};
	pid_t children[PROCESSES_MAX];
	uint64_t chunks = 0;
	int status, wrong = 0;

	memset(board, 0, sizeof(*board));
	for (unsigned i = 0; i < n; i++)
		children[i] = start(workload, board, i, random_next(&random));
	for (uint64_t k = 0; k < kills; k++) {
		unsigned victim = random_below(&random, n);
		usleep(random_below(&random, 4000));
		kill(children[victim], SIGKILL);
		waitpid(children[victim], &status, 0);
		if (!WIFSIGNALED(status))
			workload_fail("a process ended before it was killed");
		children[victim] = start(workload, board, victim, random_next(&random));
	}
	until(&board->stormed, n, children);
	atomic_store(&board->phase, PHASE_FREE);
	until(&board->freed, n, children);
	atomic_store(&board->phase, PHASE_FILL);
	until(&board->filled, n, children);
	for (unsigned i = 0; i < n; i++)
		chunks += atomic_load(&board->held[i]);
	printf("%u processes, %llu killed, %llu allocations, %llu refused; filled %llu of %llu "
	       "bytes\n",
	       n, (unsigned long long)kills, (unsigned long long)board->made,
	       (unsigned long long)board->refusals, (unsigned long long)(chunks * CHUNK),
	       (unsigned long long)board->limit);
	if (chunks * CHUNK > board->limit || chunks * CHUNK + CHUNK <= board->limit)
		workload_fail("over the limit, or under it by a chunk");
	atomic_store(&board->phase, PHASE_END);
	for (unsigned i = 0; i < n; i++)
		if (waitpid(children[i], &status, 0) != children[i] || status)
			wrong = 1;
	if (wrong)
		workload_fail("a process did not end well");
}

static void watch(struct workload *workload, uint64_t limit)
{
	size_t free_bytes = 0, total = 0;
	uint64_t most = 0, looks = 0;

	workload_open(workload, NULL);
	workload_ready(workload);
	while (!workload_stopped(workload)) {
		CU(cuMemGetInfo(&free_bytes, &total));
		most = total - free_bytes > most ? total - free_bytes : most;
		looks++;
	}
	CU(cuMemGetInfo(&free_bytes, &total));
	printf("%llu looks, at most %llu of %llu bytes\n", (unsigned long long)looks,
	       (unsigned long long)most, (unsigned long long)limit);
	if (most > limit)
		workload_fail("over the limit");
	if (total != free_bytes)
		workload_fail("%zu bytes are lost", total - free_bytes);
	workload_close(workload);
}

int main(int argc, char **argv)
{
	uint64_t processes = 16, kills = 0, limit = 0;
	const struct workload_option options[] = {
		{"processes", OPTION_NUMBER, &processes, "that race (16)"},
		{"kills", OPTION_NUMBER, &kills, "of them that die meanwhile (0)"},
		{"watch", OPTION_NUMBER, &limit, "look on: never more than so many bytes"},
		{0},
	};
	struct workload workload = {0};

	workload_parse(&workload, argc, argv, "races at a limit of memory", options);
	if (limit) {
		watch(&workload, limit);
		return 0;
	}
	if (!workload.iterations)
		workload.iterations = 200;
	if (processes < 1 || processes > PROCESSES_MAX)
		workload_fail("1 to %d processes", PROCESSES_MAX);
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		workload_fail("mmap");
	race(&workload, board, (unsigned)processes, kills);
	race(&workload, board, 1, 0);
	return 0;
}
