/* Loops for the tests, in one module. */
#include "kernels/blocks.cuh"
#include "kernels/costs.cuh"
#include "kernels/files.cuh"
#include "kernels/net.cuh"
#include "kernels/tasks.cuh"
