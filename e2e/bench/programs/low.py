#!/usr/bin/env python3
"""A PyTorch client that keeps the GPU full: endless matrix products, training steps or forward passes.

    low.py mm,train,infer [--seconds S] [--ready-file F] [--stop-file F]

runs each workload for S seconds, or the last one until the stop file appears, and prints one line of
JSON: for each workload the median rate of short windows, in iterations a second, and begin and end of each
of them (CLOCK_MONOTONIC).

    low.py infer --gap-ms G [--seed N] [--priority]

answers requests: a window is one iteration, and random times pass between them, G ms on average.

    low.py mm,train --turns [--queued]

reads lines `WORKLOAD SECONDS`, runs each for so long and answers it with such a line, until there are no more. To
`WORKLOAD busy` it answers with the GPU time of a step in ms, without the gaps in which the GPU waits for the processor.
--queued: windows are short, and the next ones are queued while one runs, so the GPU never waits. `pieces` then has, for each
window, the ms of a piece of each step, about 1 ms long: the step, or a layer of it. A piece that no other client
interrupted shows how fast the GPU is at that moment.

`graph` replays a CUDA graph of a model, `ptx` launches a kernel of its own.
"""

import argparse
import collections
import contextlib
import ctypes
import json
import os
import random
import statistics
import sys
import time

WINDOW_SECONDS = 0.1
QUEUED_WINDOW_SECONDS = 0.004
QUEUED = 4  # windows behind the one that runs
WARM_UP_STEPS = 10
SLEEP_CYCLES = 60_000_000  # longer than the processor needs to launch a window
BUSY_ROUNDS = 5

PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r4, %r2, %r3, %r4;
    cvt.rn.f32.u32 %f1, %r4;
    mov.u32 %r5, 0;
again:
    fma.rn.f32 %f1, %f1, 0f3F7FFFFF, 0f3F800000;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, %r1;
    @%p1 bra again;
    cvta.to.global.u64 %rd1, %rd1;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f1;
    ret;
}
"""
PTX_ITERATIONS, PTX_BLOCKS, PTX_THREADS = 20_000, 8, 256  # blocks: of an SM


def matrix_product(torch):
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)

    def step():
        with torch.no_grad():
            torch.mm(a, a, out=out)

    return step


def transformer(torch):
    """A model and a batch for it."""
    layers = [torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True) for _ in range(6)]
    batch = torch.randn(16, 512, 1024, device="cuda", dtype=torch.bfloat16)
    return torch.nn.Sequential(*layers).cuda().bfloat16(), batch


def training_step(torch):
    model, batch = transformer(torch)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        model(batch).float().pow(2).mean().backward()
        optimizer.step()

    step.piece = model[0]
    return step


def forward_pass(torch):
    model, batch = transformer(torch)
    model.eval()

    def step():
        with torch.inference_mode():
            model(batch)

    return step


def graph_replay(torch):
    layers = []
    for _ in range(6):
        layers += [torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024), torch.nn.LayerNorm(1024)]
    model = torch.nn.Sequential(*layers).cuda().bfloat16().eval()
    batch = torch.randn(8192, 1024, device="cuda", dtype=torch.bfloat16)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # warm up, as the documentation asks
            for _ in range(3):
                model(batch)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            out = model(batch)

    def step(_keep=(model, batch, out)):
        graph.replay()

    return step


def checked(result, what):
    if result != 0:
        raise RuntimeError(f"{what}: CUDA error {result}")


def own_kernel(torch):
    cuda = ctypes.CDLL("libcuda.so.1")
    blocks = PTX_BLOCKS * torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.empty(blocks * PTX_THREADS, device="cuda")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    checked(cuda.cuModuleLoadData(ctypes.byref(module), PTX.encode()), "cuModuleLoadData")
    checked(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin"), "cuModuleGetFunction")
    address, n = ctypes.c_uint64(out.data_ptr()), ctypes.c_uint32(PTX_ITERATIONS)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(n))

    def step(_keep=(out, module, address, n)):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        checked(cuda.cuLaunchKernel(function, blocks, 1, 1, PTX_THREADS, 1, 1, 0, stream, values, None), "cuLaunchKernel")

    return step


WORKLOADS = {
    "mm": matrix_product,
    "train": training_step,
    "infer": forward_pass,
    "graph": graph_replay,
    "ptx": own_kernel,
}


def touch(path):
    if path:
        with open(path, "w"):
            pass


def steps_per_window(torch, step, window_seconds):
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    begin = time.monotonic()
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    return max(1, round(window_seconds * WARM_UP_STEPS / (time.monotonic() - begin)))


def measure(torch, step, n, seconds, stop_file=None, gap=lambda: 0):
    """(begin, end) of windows of @n steps each, @gap() seconds apart, until the time is over or the stop file appears."""
    windows = []
    end = time.monotonic() + seconds if seconds else float("inf")
    while time.monotonic() < end and not (stop_file and os.path.exists(stop_file)):
        time.sleep(gap())
        begin = time.monotonic()
        for _ in range(n):
            step()
        torch.cuda.synchronize()
        windows.append((begin, time.monotonic()))
    return windows


class Pieces:
    """Times a piece of each step by events: the module that the step calls its piece, or all of the step."""

    def __init__(self, torch, step):
        self.torch, self.run, self.found = torch, step, []
        self.whole = not hasattr(step, "piece")
        if not self.whole:
            step.piece.register_forward_pre_hook(lambda *_: self.begin())
            step.piece.register_forward_hook(lambda *_: self.end())

    def begin(self):
        self.found.append([self.torch.cuda.Event(enable_timing=True) for _ in range(2)])
        self.found[-1][0].record()

    def end(self):
        self.found[-1][1].record()

    def step(self):
        if self.whole:
            self.begin()
        self.run()
        if self.whole:
            self.end()

    def take(self, n):
        """ms of the oldest @n pieces, which are over."""
        taken, self.found = self.found[:n], self.found[n:]
        return [begin.elapsed_time(end) for begin, end in taken]


def measure_queued(torch, pieces, n, seconds):
    """The same, but the next windows are queued while one runs: each begins when the one before it ends. And the ms of
    pieces in each window."""
    windows, times, queued = [], [], collections.deque()
    begin = time.monotonic()
    end = begin + seconds
    while queued or time.monotonic() < end:
        more = time.monotonic() < end
        if more:
            for _ in range(n):
                pieces.step()
            queued.append(torch.cuda.Event(blocking=True))
            queued[-1].record()
        if len(queued) > QUEUED or not more:
            queued.popleft().synchronize()
            windows.append((begin, time.monotonic()))
            begin = windows[-1][1]
            times.append(pieces.take(n))
    return windows, times


def busy_ms(torch, pieces, n):
    """GPU time of a step, and of each of its pieces: steps queue behind a kernel that lasts until all of them are
    launched."""
    times, of_pieces = [], []
    for _ in range(BUSY_ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(SLEEP_CYCLES)
        begin.record()
        for _ in range(n):
            pieces.step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / n)
        of_pieces += pieces.take(n)
    return {"ms": min(times), "pieces": of_pieces}


def summary(n, windows):
    rates = [n / (end - begin) for begin, end in windows]
    return {
        "rate": statistics.median(rates) if rates else 0,
        "steps": n,
        "windows": windows,
        "min": min(rates, default=0),
        "max": max(rates, default=0),
    }


def take_turns(torch, steps, lengths):
    for line in sys.stdin:
        name, seconds = line.split()
        windows = measure(torch, steps[name], lengths[name], float(seconds))
        print(json.dumps({name: summary(lengths[name], windows)}), flush=True)


def take_queued_turns(torch, steps, lengths):
    pieces = {name: Pieces(torch, step) for name, step in steps.items()}
    for line in sys.stdin:
        name, seconds = line.split()
        if seconds == "busy":
            result = busy_ms(torch, pieces[name], lengths[name])
        else:
            windows, times = measure_queued(torch, pieces[name], lengths[name], float(seconds))
            result = {**summary(lengths[name], windows), "pieces": times}
        print(json.dumps({name: result}), flush=True)


def answer(torch, name, step, options):
    gaps = random.Random(options.seed)
    windows = measure(torch, step, 1, options.seconds, options.stop_file, lambda: gaps.expovariate(1e3 / options.gap_ms))
    print(json.dumps({name: summary(1, windows)}))


def take_all(torch, steps, lengths, options):
    result = {}
    for name, step in steps.items():
        windows = measure(torch, step, lengths[name], options.seconds, options.stop_file)
        result[name] = summary(lengths[name], windows)
    print(json.dumps(result))


def run(torch, names, options):
    steps = {name: WORKLOADS[name](torch) for name in names}
    window = QUEUED_WINDOW_SECONDS if options.queued else WINDOW_SECONDS
    lengths = {name: steps_per_window(torch, step, window) for name, step in steps.items()}
    touch(options.ready_file)
    if options.turns:
        (take_queued_turns if options.queued else take_turns)(torch, steps, lengths)
    elif options.gap_ms:
        answer(torch, names[0], steps[names[0]], options)
    else:
        take_all(torch, steps, lengths, options)


def main():
    parser = argparse.ArgumentParser(description="PyTorch workloads that keep a GPU full")
    parser.add_argument("workloads", help=f"{', '.join(WORKLOADS)}, or several with commas")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--gap-ms", type=float, default=0, help="answers requests, so far apart on average")
    parser.add_argument("--seed", type=int, default=1, help="of the gaps")
    parser.add_argument("--priority", action="store_true", help="in a stream of the greatest priority")
    parser.add_argument("--turns", action="store_true", help="as told on the standard input")
    parser.add_argument("--queued", action="store_true", help="with --turns: without pauses between windows")
    parser.add_argument("--ready-file")
    parser.add_argument("--stop-file")
    options = parser.parse_args()
    names = options.workloads.split(",")
    for name in names:
        if name not in WORKLOADS:
            parser.error(f"unknown workload '{name}'")
    if not options.seconds and not options.stop_file and not options.turns:
        parser.error("give --seconds or --stop-file")

    import torch  # here, because it takes seconds

    torch.manual_seed(1)
    with torch.cuda.stream(torch.cuda.Stream(priority=-1)) if options.priority else contextlib.nullcontext():
        run(torch, names, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
