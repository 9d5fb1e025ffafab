/* One launch of seconds: each thread steps a linear congruential generator on for as long. The host
 * jumps to the same place by powers. */
#include "program.cuh"

#define MULTIPLIER 6364136223846793005u
#define INCREMENT  1442695040888963407u
#define THREADS    256u

__global__ void step_on(uint64_t *states, unsigned steps)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t x = states[i];

#pragma unroll 1
	for (unsigned k = 0; k < steps; k++)
		x = x * MULTIPLIER + INCREMENT;
	states[i] = x;
}

/* @steps steps at once: x becomes multiplier * x + increment. */
static void jump(unsigned steps, uint64_t *multiplier, uint64_t *increment)
{
	uint64_t a = MULTIPLIER, c = INCREMENT;

	*multiplier = 1;
	*increment = 0;
	for (; steps; steps >>= 1) {
		if (steps & 1) {
			*multiplier *= a;
			*increment = *increment * a + c;
		}
		c *= a + 1;
		a *= a;
	}
}

int main(int argc, char **argv)
{
	program program("long-launch", argc, argv);
	unsigned n = program.size(8, 1024) * THREADS, steps = program.size(300, 20000000);
	std::vector<uint64_t> input(n), expected(n);
	uint64_t multiplier, increment;
	device_array<uint64_t> states(n);

	jump(steps, &multiplier, &increment);
	for (unsigned i = 0; i < n; i++) {
		input[i] = mixed(i);
		expected[i] = multiplier * input[i] + increment;
	}
	while (program.goes_on()) {
		states.set(input);
		step_on<<<n / THREADS, THREADS>>>(states.data, steps);
		CHECK(cudaGetLastError());
		program.check(states.get(), expected);
	}
	return program.right();
}
