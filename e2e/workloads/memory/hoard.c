/* Allocates all the memory that its limit allows, in pieces, and keeps asking while the limit
 * changes. --state-file gets `MIB REFUSALS`. When --free-file appears, it frees everything, removes
 * that file and starts again. */
#include <stdio.h>
#include <unistd.h>

#include "spin.h"

#define PIECE      (8u << 20)
#define PIECES_MAX 4096u
#define PAUSE_NS   20000000ull

struct hoard {
	const char *state_file, *free_file;
	CUdeviceptr pieces[PIECES_MAX];
	size_t n;
	uint64_t refusals;
};

static void take_piece(struct hoard *hoard)
{
	CUresult result = hoard->n < PIECES_MAX ? cuMemAlloc(&hoard->pieces[hoard->n], PIECE)
						: CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS)
		hoard->n++;
	else if (result == CUDA_ERROR_OUT_OF_MEMORY)
		hoard->refusals++;
	else
		CU(result);
}

static void give_back(struct hoard *hoard)
{
	while (hoard->n > 0)
		CU(cuMemFree(hoard->pieces[--hoard->n]));
	unlink(hoard->free_file);
}

/* Readers see the old or the new content, never a part. */
static void tell(const struct hoard *hoard)
{
	char draft[4096];

	snprintf(draft, sizeof(draft), "%s.draft", hoard->state_file);
	FILE *file = fopen(draft, "we");
	bool good = file && fprintf(file, "%zu %llu\n", hoard->n * (PIECE >> 20),
				    (unsigned long long)hoard->refusals) > 0;

	if (file && fclose(file) != 0)
		good = false;
	if (!good || rename(draft, hoard->state_file) != 0)
		workload_fail("cannot write %s", hoard->state_file);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	static struct hoard hoard;
	struct spin spin;
	const struct workload_option own[] = {
		{"state-file", OPTION_TEXT, &hoard.state_file, "where it says what it has"},
		{"free-file", OPTION_TEXT, &hoard.free_file, "gives all back when that is there"},
		{0},
	};

	workload_parse(&w, argc, argv, "takes all the memory that it gets", own);
	if (!hoard.state_file || !hoard.free_file || !w.stop_file)
		workload_fail("--state-file, --free-file and --stop-file are needed");
	workload_open(&w, spin_ptx);
	/* Runs a kernel, too, like other clients. */
	spin_init(&spin, &w, 1, 1, 1);
	spin_launch(&spin, NULL);
	CU(cuCtxSynchronize());
	workload_ready(&w);
	while (!workload_stopped(&w)) {
		uint64_t refusals = hoard.refusals;
		if (access(hoard.free_file, F_OK) == 0)
			give_back(&hoard);
		take_piece(&hoard);
		if (hoard.refusals != refusals || hoard.n == PIECES_MAX) {
			tell(&hoard);
			sleep_until_ns(now_ns() + PAUSE_NS);
		}
	}
	give_back(&hoard);
	spin_verify(&spin);
	spin_deinit(&spin);
	workload_close(&w);
	printf("hoard: ok, refused %llu times\n", (unsigned long long)hoard.refusals);
	return 0;
}
