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
 * newer; nothing to link on the device side. It has run on sm_90. For other architectures it is compiled
 * (e2e/loop/architectures.sh), and its PTX for compute_75 runs on the simulated GPU.
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
 * experiment loop-points: on an H100 0.14 to 0.25 us for a look, 0.6 to 0.8 us for a task (runtime-lib/loop/INTERNALS.md).
 *
 *   function                 what it does, ordinarily
 *   post_task                about 110 instructions of the first warp, 40 of each other one and a barrier; shared
 *                            memory alone
 *   post_task_if_necessary   15 instructions of each warp and a barrier; no memory at all
 *   yield_if_needed          the same
 *   each_block,              a barrier for each body; for each chunk an atomic operation on the ticket
 *   run_each_block
 *   has_room                 one instruction
 *   warp_must_leave          each warp reads the clock and votes, without a barrier; every 8192 cycles the first one
 *                            looks, and the others read a word of device memory
 *   exit                     two atomic operations in device memory
 *   any request              about the work of post_task, 40 bytes over PCIe and the data up to WEIR_LOOP_INLINE; one
 *                            doorbell for all requests of a callback; an answer over PCIe. 7.9 us from the callback
 *                            that asks to the one that is answered, if the host has nothing to do (timer::after of 0)
 *   value                    a read of 8 bytes of host memory, of all threads: its time over PCIe is not measured
 *
 * Requests take besides, on the host, what its system call takes. Not measured where no figure stands:
 *
 *   file::open, file::fsync, close          the system call
 *   file::size                              the system call, and value
 *   file::read, up to WEIR_LOOP_PART        the copy from the page cache; the block reads the data over PCIe
 *   file::read, more                        the copy from the page cache; a copy engine: 92 % and more of the link's rate
 *                                           from 1 MiB (the experiment loop-io), 3 us for each copy
 *   file::write                             up to WEIR_LOOP_INLINE with the request; more by a copy engine
 *   net::listen, accept, connect            the system call
 *   net::receive, receive_all               the system call; data as file::read
 *   net::receive_any, receive_any_all       the same, and value
 *   net::send                               5 us of the host's thread for small messages, most of them TCP's
 *   net::again                              a request without a system call
 *   timer::after                            none: the loop's thread looks at its timers, or sleeps until the next one
 *   host::call                              waking a thread, and the function
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
