#!/usr/bin/env python3
"""A PyTorch client that answers requests, one after the other, at random times.

    high.py graph,eager,single,llama [--priority] [--ready-file F]

`graph` replays a CUDA graph of ResNet-50, `eager` calls the same network, `single` calls it with one picture, `llama`
generates 8 tokens behind a prompt of 512. Reads lines `NAME SECONDS GAP_MS` from the standard input, and answers each
with a line of JSON: the ms of each request, those of these that its thread had no processor while it launched the
kernels, of `graph` also those between its begin and its end on the GPU, and how many results were wrong.
"""

import argparse
import json
import random
import sys
import time

from stamps import Stamps

WARM_UP = 5
LEAST = 4  # requests, however long they take


def resnet_eager(torch, networks):
    model, batch = networks.resnet50()
    return lambda: model(batch)


def resnet_single(torch, networks):
    model, picture = networks.resnet50(1)
    return lambda: model(picture)


def resnet_graph(torch, networks):
    model, batch = networks.resnet50()
    for _ in range(WARM_UP):
        model(batch)
    stamps, stream = Stamps(), torch.cuda.current_stream()
    stamps.mark(0, stream.cuda_stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        stamps.mark(0, stream.cuda_stream)
        out = model(batch)
        stamps.mark(1, stream.cuda_stream)

    def request(_keep=(model, batch)):
        graph.replay()
        return out

    request.stamps = stamps
    return request


def llama_tokens(torch, networks):
    model, prompt = networks.llama()
    return lambda: model.generate(prompt)


REQUESTS = {"graph": resnet_graph, "eager": resnet_eager, "single": resnet_single, "llama": llama_tokens}


def answer(torch, request, wanted, seconds, gap_ms):
    """What a line of the input is answered with."""
    gaps, times, lost, on_gpu, wrong = random.Random(7), [], [], [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < LEAST:
        time.sleep(min(gaps.expovariate(1 / gap_ms), 3 * gap_ms) / 1e3)
        begin, ran = time.monotonic(), time.thread_time()
        result = request()
        lost.append(1e3 * max(0, time.monotonic() - begin - (time.thread_time() - ran)))
        torch.cuda.current_stream().synchronize()
        times.append(1e3 * (time.monotonic() - begin))
        if hasattr(request, "stamps"):
            on_gpu.append(request.stamps.ms)
        wrong += not torch.equal(result, wanted)
    return {"ms": times, "lost_ms": lost, "gpu_ms": on_gpu, "wrong": wrong}


def serve(torch, names, ready_file):
    import networks

    requests = {name: REQUESTS[name](torch, networks) for name in names}
    wanted = {}
    for name, request in requests.items():
        for _ in range(WARM_UP):
            result = request()
        wanted[name] = result.clone()
    torch.cuda.synchronize()
    if ready_file:
        open(ready_file, "w").close()
    for line in sys.stdin:
        name, seconds, gap_ms = line.split()
        print(json.dumps(answer(torch, requests[name], wanted[name], float(seconds), float(gap_ms))), flush=True)


def main():
    parser = argparse.ArgumentParser(description="a PyTorch client that answers requests")
    parser.add_argument("names", help=f"of {', '.join(REQUESTS)}, with commas")
    parser.add_argument("--priority", action="store_true", help="in a stream of the greatest priority")
    parser.add_argument("--ready-file")
    parser.add_argument("--stop-file", help="ignored: the end of the input ends the program")
    options = parser.parse_args()
    names = options.names.split(",")
    for name in names:
        if name not in REQUESTS:
            parser.error(f"unknown request '{name}'")

    import torch  # here, because it takes seconds

    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    with torch.cuda.stream(torch.cuda.Stream(priority=-5 if options.priority else 0)):
        serve(torch, names, options.ready_file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
