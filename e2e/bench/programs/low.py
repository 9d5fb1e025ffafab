#!/usr/bin/env python3
"""A PyTorch client that keeps the GPU full: endless matrix products, training steps or forward passes.

    low.py mm,train,infer [--seconds S] [--ready-file F] [--stop-file F]

runs each workload for S seconds, or the last one until the stop file appears, and prints one line of
JSON: for each workload the median rate of short windows, in iterations a second, and begin and end of each
of them (CLOCK_MONOTONIC).

    low.py infer --gap-ms G [--seed N] [--priority]

answers requests: a window is one iteration, and random times pass between them, G ms on average.

    low.py mm,train --turns

reads lines `WORKLOAD SECONDS`, runs each for so long and answers it with such a line, until there are no more.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import time

WINDOW_SECONDS = 0.1
WARM_UP_STEPS = 10


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

    return step


def forward_pass(torch):
    model, batch = transformer(torch)
    model.eval()

    def step():
        with torch.inference_mode():
            model(batch)

    return step


WORKLOADS = {"mm": matrix_product, "train": training_step, "infer": forward_pass}


def touch(path):
    if path:
        with open(path, "w"):
            pass


def steps_per_window(torch, step):
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    begin = time.monotonic()
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    return max(1, round(WINDOW_SECONDS * WARM_UP_STEPS / (time.monotonic() - begin)))


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
    lengths = {name: steps_per_window(torch, step) for name, step in steps.items()}
    touch(options.ready_file)
    if options.turns:
        take_turns(torch, steps, lengths)
    elif options.gap_ms:
        answer(torch, names[0], steps[names[0]], options)
    else:
        take_all(torch, steps, lengths, options)


def main():
    parser = argparse.ArgumentParser(description="PyTorch workloads that keep a GPU full")
    parser.add_argument("workloads", help="mm, train, infer, or several with commas")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--gap-ms", type=float, default=0, help="answers requests, so far apart on average")
    parser.add_argument("--seed", type=int, default=1, help="of the gaps")
    parser.add_argument("--priority", action="store_true", help="in a stream of the greatest priority")
    parser.add_argument("--turns", action="store_true", help="as told on the standard input")
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
