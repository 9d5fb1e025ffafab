#!/usr/bin/env python3
"""PyTorch as the client that takes all it can get: endless matrix products or training steps.

    low.py mm,train [--seconds S] [--ready-file F] [--stop-file F]

runs each workload for S seconds, or the last one until the stop file appears, and prints one line of
JSON: for each workload the median rate of short windows, in iterations a second.

    low.py mm,train --turns

reads lines `WORKLOAD SECONDS`, does so much and answers each with such a line, until there are no more.
"""

import argparse
import json
import os
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


def training_step(torch):
    layers = [torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True) for _ in range(6)]
    model = torch.nn.Sequential(*layers).cuda().bfloat16()
    batch = torch.randn(16, 512, 1024, device="cuda", dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        model(batch).float().pow(2).mean().backward()
        optimizer.step()

    return step


WORKLOADS = {"mm": matrix_product, "train": training_step}


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


def measure(torch, step, n, seconds, stop_file):
    """Rates of windows of @n steps each, until the time is over or the stop file appears."""
    rates = []
    end = time.monotonic() + seconds if seconds else float("inf")
    while time.monotonic() < end and not (stop_file and os.path.exists(stop_file)):
        begin = time.monotonic()
        for _ in range(n):
            step()
        torch.cuda.synchronize()
        rates.append(n / (time.monotonic() - begin))
    return rates


def summary(rates):
    return {
        "rate": statistics.median(rates) if rates else 0,
        "windows": len(rates),
        "min": min(rates, default=0),
        "max": max(rates, default=0),
    }


def take_turns(torch, steps, windows):
    for line in sys.stdin:
        name, seconds = line.split()
        rates = measure(torch, steps[name], windows[name], float(seconds), None)
        print(json.dumps({name: summary(rates)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description="PyTorch workloads that keep a GPU full")
    parser.add_argument("workloads", help="mm, train, or both with a comma")
    parser.add_argument("--seconds", type=float, default=0)
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
    steps = {name: WORKLOADS[name](torch) for name in names}
    windows = {name: steps_per_window(torch, step) for name, step in steps.items()}
    touch(options.ready_file)
    if options.turns:
        take_turns(torch, steps, windows)
        return 0
    result = {}
    for name, step in steps.items():
        rates = measure(torch, step, windows[name], options.seconds, options.stop_file)
        result[name] = summary(rates)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
