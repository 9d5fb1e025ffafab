#!/usr/bin/env python3
"""What serving and training frameworks do with memory and graphs, one function a pattern, with fixed seeds:
prints SHA-256 of what came out, so that two runs can be compared bit by bit.

    patterns.py vmm|expandable|pools|graphs|nccl [--rounds N]
    patterns.py limit | spin                      used by pod-memory-limit and pod-killed
"""

import argparse
import ctypes
import json
import os
import sys
import time

ENVIRONMENT = {
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "pools": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
}
BLOCK = 256 << 20  # of `limit`


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location),
        ("win32", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Driver:
    """The driver API, each call checked."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            result = function(*arguments)
            if result != 0:
                raise RuntimeError(f"{name}: error {result}")

        return call


def vmm(apps, rounds):
    """A range that grows by pieces, as vLLM's and PyTorch's allocators do by hand, read by a tensor's kernels."""
    torch = apps.torch_module()
    torch.zeros(1, device="cuda")  # the context
    driver = Driver()
    properties = Properties(type=1, location=Location(1, torch.cuda.current_device()))
    granularity = ctypes.c_size_t()
    driver.cuMemGetAllocationGranularity(ctypes.byref(granularity), ctypes.byref(properties), 0)
    piece = max(granularity.value, 32 << 20)
    base = ctypes.c_uint64()
    driver.cuMemAddressReserve(ctypes.byref(base), ctypes.c_size_t(piece * rounds), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
    access = Access(Location(1, torch.cuda.current_device()), 3)
    handles, total = [], torch.zeros(piece // 4, device="cuda")
    for i in range(rounds):
        at, handle = ctypes.c_uint64(base.value + i * piece), ctypes.c_uint64()
        driver.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(piece), ctypes.byref(properties), ctypes.c_uint64(0))
        driver.cuMemMap(at, ctypes.c_size_t(piece), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        driver.cuMemSetAccess(at, ctypes.c_size_t(piece), ctypes.byref(access), ctypes.c_size_t(1))
        handles.append((at, handle))
        source = torch.sin(torch.arange(piece // 4, device="cuda", dtype=torch.float32) * (i + 1))
        torch.cuda.synchronize()
        driver.cuMemcpyDtoD_v2(at, ctypes.c_uint64(source.data_ptr()), ctypes.c_size_t(piece))
        back = torch.empty_like(source)
        driver.cuMemcpyDtoD_v2(ctypes.c_uint64(back.data_ptr()), at, ctypes.c_size_t(piece))
        torch.cuda.synchronize()
        total += torch.tanh(back)
    digest = apps.torch_hash(total)
    for at, handle in handles:
        driver.cuMemUnmap(at, ctypes.c_size_t(piece))
        driver.cuMemRelease(handle)
    driver.cuMemAddressFree(base, ctypes.c_size_t(piece * rounds))
    return {"sum": digest}


def cache_growth(apps, rounds):
    """A key-value cache that grows by one step's keys and values, and is read by attention."""
    torch = apps.torch_module()
    keys = apps.normal(torch, 8, 16, 64, 128, dtype=torch.bfloat16)
    values, outputs = keys.clone(), []
    for i in range(rounds):
        step = apps.normal(torch, 8, 16, 64 + i, 128, dtype=torch.bfloat16)
        keys, values = torch.cat([keys, step], 2), torch.cat([values, -step], 2)
        outputs.append(torch.nn.functional.scaled_dot_product_attention(step, keys, values).float().sum())
        if i % 16 == 15:
            keys, values = keys[:, :, -512:].clone(), values[:, :, -512:].clone()
    return {"keys": apps.torch_hash(keys), "outputs": apps.torch_hash(torch.stack(outputs))}


def graphs(apps, rounds):
    """One graph for each batch size, all in one pool, captured with allocations inside, and replayed."""
    torch = apps.torch_module()
    layer = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
    sizes, pool, captured = (1, 8, 32, 64), None, {}
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            layer(torch.zeros(64, 1024, device="cuda"))
        torch.cuda.synchronize()
        for size in reversed(sizes):
            given, graph = torch.zeros(size, 1024, device="cuda"), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                output = layer(layer(given))
            pool = pool or graph.pool()
            captured[size] = (graph, given, output)
        results = []
        for i in range(4 * rounds):
            graph, given, output = captured[sizes[i % len(sizes)]]
            given.copy_(apps.normal(torch, *given.shape))
            graph.replay()
            results.append(output.sum())
        torch.cuda.synchronize()
    return {"sums": apps.torch_hash(torch.stack(results))}


def nccl(apps, rounds):
    """All-reduce between processes, each with a GPU of its own: $RANK of $WORLD_SIZE."""
    torch = apps.torch_module()
    import torch.distributed as distributed

    distributed.init_process_group("nccl", init_method=os.environ["MEET"],
                                   rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    tensor = apps.normal(torch, 1 << 22) * (1 + distributed.get_rank())
    for _ in range(rounds):
        distributed.all_reduce(tensor)
        tensor = torch.tanh(tensor) * (1 + distributed.get_rank())
    digest = apps.torch_hash(tensor)
    distributed.destroy_process_group()
    return {f"rank{os.environ['RANK']}": digest}


PATTERNS = {"vmm": vmm, "expandable": cache_growth, "pools": cache_growth, "graphs": graphs, "nccl": nccl}


def limit():
    """Allocates until PyTorch fails, and then works on."""
    import torch

    free, total = torch.cuda.mem_get_info()
    blocks, error = [], ""
    try:
        while len(blocks) < 4096:
            blocks.append(torch.ones(BLOCK, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError as caught:
        error = str(caught).splitlines()[0]
    held = len(blocks) * BLOCK
    del blocks
    torch.cuda.empty_cache()
    a = torch.eye(2048, device="cuda")
    good = bool((a @ a == a).all())
    return {"held": held, "error": error, "free": free, "total": total, "works": good}


def spin(ready_file):
    """Holds 8 GiB, and a kernel that runs for many seconds."""
    import torch

    held = torch.ones(8 << 30, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(60_000_000_000)
    if ready_file:
        open(ready_file, "w").close()
    torch.cuda.synchronize()
    time.sleep(60)
    return {"held": held.numel()}


def main():
    parser = argparse.ArgumentParser(description="memory and graph patterns of frameworks")
    parser.add_argument("name", choices=[*PATTERNS, "limit", "spin"])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--ready-file")
    parser.add_argument("--stop-file")
    options = parser.parse_args()
    if options.name == "limit":
        result = limit()
    elif options.name == "spin":
        result = spin(options.ready_file)
    else:
        os.environ.update(ENVIRONMENT.get(options.name, {}))
        import apps

        outputs = PATTERNS[options.name](apps, options.rounds)
        result = {f"{options.name}/{output}": digest for output, digest in outputs.items()}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
