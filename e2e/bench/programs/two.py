#!/usr/bin/env python3
"""A program on two GPUs: copies from one to the other, and NCCL's all-reduce between a process on each, with fixed seeds.
Prints the SHA-256 of the outputs, so that two runs can be compared bit by bit."""

import json
import os
import sys
import tempfile

MIB = 1 << 20


def hashed(tensor):
    import apps

    return apps.torch_hash(tensor)


def copies(torch):
    """Copies from GPU to GPU and back; peer copies where the driver has them."""
    generator = torch.Generator().manual_seed(11)
    first = torch.randn(16 * MIB, generator=generator).to("cuda:0")
    for _ in range(20):
        second = (first.to("cuda:1") * 1.5).sin()
        first = second.to("cuda:0") + first * 0.5
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    return {"copies from GPU to GPU": hashed(first), "and on the other one": hashed(second)}


def rank(number, meeting, results):
    import torch
    import torch.distributed as distributed

    torch.cuda.set_device(number)
    distributed.init_process_group("nccl", init_method=f"file://{meeting}", rank=number, world_size=2)
    generator = torch.Generator().manual_seed(number)
    weights = torch.randn(2048, 2048, generator=generator).cuda()
    for _ in range(60):
        gradient = weights @ weights.T / 2048
        distributed.all_reduce(gradient)
        weights = weights - 0.01 * gradient
    torch.cuda.synchronize()
    results.put((number, hashed(weights)))
    distributed.destroy_process_group()


def all_reduce(torch):
    """A process on each GPU; the sum is the same in any order."""
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=rank, args=(n, f"{folder}/meeting", results)) for n in (0, 1)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    if any(process.exitcode for process in ranks):
        sys.exit("a rank failed")
    got = dict(results.get() for _ in ranks)
    return {f"all-reduce by NCCL, rank {n}": got[n] for n in (0, 1)}


def program():
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    if torch.cuda.device_count() < 2:
        sys.exit("fewer than two GPUs")
    found = copies(torch)
    if torch.distributed.is_nccl_available():
        found.update(all_reduce(torch))
    print(json.dumps(found))


if __name__ == "__main__":
    program()
