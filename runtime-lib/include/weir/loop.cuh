/* Kernels that do their own input and output: an event loop on the GPU (runtime-lib/loop/README.md).
 *
 *     #include <weir/loop.cuh>
 *
 *     extern "C" __global__ void count(weir::loop_args args, unsigned long long *out)
 *     {
 *         weir::loop loop(args);
 *         loop.run([=](weir::loop &l) {
 *             weir::file::open(l, "/etc/hostname", 0, 0, [=](weir::loop &l, int64_t file) { ... });
 *         });
 *     }
 *
 * The host starts it with weir_loop_run() (weir/loop.h, libweir-loop.a). nvcc -std=c++17, sm_75 and
 * newer; nothing to link on the device side.
 *
 * The contract of every function here:
 *  - All threads of the block call it, with the same arguments, at the same place, as
 *    __syncthreads(). The program may call nothing of it in divergent code.
 *  - A callback is a lambda that captures by value. Its state is trivially copyable and at most
 *    WEIR_LOOP_CAPTURE bytes, and the same in all threads: the first thread's is kept. What threads
 *    have of their own, and shared memory, must be saved by the program in device memory.
 *  - A callback runs once, with all threads of its block, after the callback that registered it has
 *    returned. Callbacks of a block run one after the other. Those that are due at the same time
 *    run in the order of their slots, not in that of their answers.
 *  - 0: registered. -ENOBUFS: the block has as many callbacks as it may have (weir_loop_options);
 *    nothing happens. Other errors come to the callback as a negative errno.
 *  - Buffers belong to the request until its callback runs. They lie in device memory.
 *  - Between two callbacks the kernel may leave the GPU and come back. Device memory stays.
 *
 * Costs. Instructions and accesses to memory are counted by e2e/loop/test-gpu-loop-path, times are measured by the
 * experiment loop-points: on an H100 0.14 to 0.25 us for a look, 0.6 to 0.8 us for a task (runtime-lib/loop/README.md).
 *
 *   function                 what it does, ordinarily
 *   post_task                about 110 instructions of the first warp, 40 of each other one and a barrier; shared
 *                            memory alone
 *   post_task_if_necessary   15 instructions of each warp and a barrier; no memory at all
 *   yield_if_needed          the same
 *   each_block,              a barrier for each body; for each chunk an atomic operation on the ticket
 *   run_each_block
 *   file, net, timer, host   a request over PCIe, the host's work, an answer over PCIe
 *   value                    a read of host memory
 *   exit                     two atomic operations in device memory
 *
 * Besides, at scheduling points the first thread of a block spends:
 *
 *   a look, every 8192 cycles              two reads of device memory, at the same time
 *   a poll, one block at a time, every     two atomic operations and six accesses of device memory, three reads of
 *   8 us (1 us while a block waits, 16 us  host memory at the same time
 *   in a loop of one busy block)
 *   a callback beyond the first two of     its state in device memory: about 14 accesses
 *   a block (WEIR_LOOP_SHARED)
 *
 * A callback must not run for long without a scheduling point: the kernel leaves when the slowest block has come
 * to one. With WEIR_LOOP_LEAVING defined before the include, the kernel leaves by itself again and again, and
 * measures how long that takes (weir/loop/leaving.cuh).
 *
 * All loops of a module have the registers and the static shared memory of the most demanding callback in it, for a
 * callback may be any of them. __launch_bounds__(threads, blocks of an SM) keeps as many blocks on an SM as the kernel
 * had without a loop.
 */
#pragma once

#include "weir/loop/each-block.cuh"
#include "weir/loop/requests.cuh"
