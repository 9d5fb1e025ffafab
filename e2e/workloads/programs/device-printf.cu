/* Kernels print, and the program reads what they printed: each line is there once. */
#include "program.cuh"

#define THREADS 64u

__global__ void tell(unsigned round)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i % 3 == 0)
		printf("thread %u of round %u: %s %llu %.2f\n", i, round, i & 1 ? "odd" : "even",
		       (unsigned long long)i * i, i / 4.0);
}

/* Standard output goes to a file while this lives. */
class caught_output
{
      public:
	caught_output() : file(tmpfile()), own(dup(STDOUT_FILENO))
	{
		fflush(stdout);
		if (!file || dup2(fileno(file), STDOUT_FILENO) < 0)
			fail("no file for what kernels print");
	}
	std::vector<std::string> lines()
	{
		std::vector<std::string> found;
		char line[256];

		fflush(stdout);
		rewind(file);
		while (fgets(line, sizeof(line), file))
			found.push_back(line);
		std::sort(found.begin(), found.end());
		return found;
	}
	~caught_output()
	{
		dup2(own, STDOUT_FILENO);
		close(own);
		fclose(file);
	}

      private:
	FILE *file;
	int own;
};

static std::vector<std::string> expected_lines(unsigned n, unsigned round)
{
	std::vector<std::string> lines;
	char line[256];

	for (unsigned i = 0; i < n; i += 3) {
		snprintf(line, sizeof(line), "thread %u of round %u: %s %llu %.2f\n", i, round,
			 i & 1 ? "odd" : "even", (unsigned long long)i * i, i / 4.0);
		lines.push_back(line);
	}
	std::sort(lines.begin(), lines.end());
	return lines;
}

int main(int argc, char **argv)
{
	program program("device-printf", argc, argv);
	unsigned blocks = program.size(2, 128), launches = program.size(2, 4);
	std::vector<uint32_t> right(1);

	while (program.goes_on()) {
		for (unsigned k = 0; k < launches; k++) {
			caught_output output;

			tell<<<blocks, THREADS>>>(k);
			CHECK(cudaGetLastError());
			CHECK(cudaDeviceSynchronize());
			if (output.lines() != expected_lines(blocks * THREADS, k))
				fail("device-printf: wrong result, the kernel printed other lines");
		}
		right[0] = blocks * THREADS;
		program.check(right, right);
	}
	return program.right();
}
