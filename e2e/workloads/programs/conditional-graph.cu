/* A graph with a conditional node: its body runs again until the kernel in it says that all numbers
 * have come down to 1 (Collatz). */
#include "program.cuh"

#define THREADS 256u

/* One step of each number; *going: whether one is not done. */
__global__ void step(uint32_t *values, uint32_t *steps, unsigned *going)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t value = values[i];

	if (value == 1)
		return;
	value = value & 1 ? 3 * value + 1 : value / 2;
	values[i] = value;
	steps[i]++;
	if (value != 1)
		*going = 1;
}

__global__ void decide(cudaGraphConditionalHandle handle, unsigned *going)
{
	cudaGraphSetConditional(handle, *going);
	*going = 0;
}

/* A graph whose only node is a loop around both kernels. */
static cudaGraph_t loop_of(unsigned blocks, uint32_t *values, uint32_t *steps, unsigned *going)
{
	cudaGraphNodeParams loop = {}, kernel = {};
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t node, first;
	cudaGraph_t graph;

	loop.type = cudaGraphNodeTypeConditional;
	kernel.type = cudaGraphNodeTypeKernel;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	loop.conditional.handle = handle;
	loop.conditional.type = cudaGraphCondTypeWhile;
	loop.conditional.size = 1;
	CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop));

	cudaGraph_t body = loop.conditional.phGraph_out[0];
	void *of_step[] = {&values, &steps, &going}, *of_decide[] = {&handle, &going};

	kernel.kernel.func = (void *)step;
	kernel.kernel.gridDim = dim3(blocks);
	kernel.kernel.blockDim = dim3(THREADS);
	kernel.kernel.kernelParams = of_step;
	CHECK(cudaGraphAddNode(&first, body, nullptr, nullptr, 0, &kernel));
	kernel.kernel.func = (void *)decide;
	kernel.kernel.gridDim = kernel.kernel.blockDim = dim3(1);
	kernel.kernel.kernelParams = of_decide;
	CHECK(cudaGraphAddNode(&node, body, &first, nullptr, 1, &kernel));
	return graph;
}

int main(int argc, char **argv)
{
	program program("conditional-graph", argc, argv);
	unsigned blocks = program.size(1, 512), n = blocks * THREADS;
	std::vector<uint32_t> input(n), expected(n);
	device_array<uint32_t> values(n), steps(n);
	device_array<unsigned> going(1);
	cudaGraph_t graph = loop_of(blocks, values.data, steps.data, going.data);
	cudaGraphExec_t exec;

	for (unsigned i = 0; i < n; i++) {
		input[i] = i + 1;
		for (uint32_t value = i + 1; value != 1; expected[i]++)
			value = value & 1 ? 3 * value + 1 : value / 2;
	}
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	while (program.goes_on()) {
		values.set(input);
		CHECK(cudaMemset(steps.data, 0, n * sizeof(uint32_t)));
		CHECK(cudaMemset(going.data, 0, sizeof(unsigned)));
		CHECK(cudaGraphLaunch(exec, 0));
		program.check(steps.get(), expected);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	return program.right();
}
