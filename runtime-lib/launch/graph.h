/* How many blocks of a graph are on the GPU at the same time at most, by the geometry of its
 * kernels: so many SMs will do for it (demand-pages.h). Nodes behind each other need as many as the
 * largest, all others together as many as they have. It is counted when the graph is instantiated
 * or updated as a whole.
 *
 * Not known are: graphs whose kernels wait for each other's blocks or have geometry that the GPU
 * sets, graphs with conditional nodes, and those of which the program has changed a single node.
 * Nor is one that was updated while its client needed the whole GPU for each launch.
 * Newer graphs overwrite older ones. */
#pragma once

#include "shim/driver.h"

/* 0: not known. At most GRAPH_BLOCKS_MAX, which stands for that and more. Any thread. */
uint32_t graph_blocks(CUgraphExec graph);

#define GRAPH_BLOCKS_MAX 0xffffu
