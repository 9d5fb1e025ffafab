#!/usr/bin/env python3
"""Two GPUs of one machine: levels and demand of one do not touch the other, and what a program
computes on both stays what it is. Run by two.sh; prints a line for each claim, as TAP does."""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import node

LOW, HIGH = "low", "high"
LOOK = 3.0  # s that HIGH works while we look on
DEADLINE = 60  # s for a program on two GPUs
MIB = 1 << 20

failed = False


def claim(good, text):
    global failed
    failed |= not good
    print(f"{'ok' if good else 'not ok'} - {text}", flush=True)


def on(gpu):
    return {"CUDA_VISIBLE_DEVICES": str(gpu)}


def burst(machine):
    """Requests of kernels, with pauses in which those below go on."""
    return [machine.program("burst"), *machine.sizes, "--requests", str(1 << 40), "--kernels", "5",
            "--gap-min-us", "2000", "--gap-max-us", "6000"]


def filler(machine):
    return [machine.program("filler"), *machine.sizes]


def waits(machine):
    """How often each client was held, by its pid, and on which GPU it is."""
    return {client["pid"]: (client["gpu"], client["waits"]) for client in machine.status()}


def increase(before, after):
    return {gpu: after[pid][1] - count for pid, (gpu, count) in before.items() if pid in after}


def separate(machine):
    """Who is below on GPU 0 is held for who is above there; who is below on GPU 1 is not."""
    low = [machine.start(f"filler-{gpu}", filler(machine), LOW, True, env=on(gpu)) for gpu in (0, 1)]
    for client in low:
        client.wait_ready(30)
    before = waits(machine)
    claim(len({gpu for gpu, _ in before.values()}) == 2, "clients are on two GPUs, says the agent")
    with machine.running("burst", burst(machine), HIGH, True, env=on(0)) as high:
        gpu = waits(machine)[high.process.pid][0]
        time.sleep(LOOK)
        held = increase(before, waits(machine))
    claim(held.pop(gpu, 0) > 0, f"on the GPU of who is above those below were held: {gpu}")
    claim(list(held.values()) == [0], f"on the other one nobody was: {held}")
    for client in low:
        client.stop()
    for client in low:
        client.result(20)  # a wrong value is a Failure


def both(machine):
    """A program on two GPUs, without Weir and then below somebody on GPU 0."""
    argv = [sys.executable, __file__, "--program"]
    alone = machine.start("alone", argv, LOW, False, files=False).result(DEADLINE)
    with machine.running("burst", burst(machine), HIGH, True, env=on(0)):
        before = waits(machine)
        client = machine.start("below", argv, LOW, True, files=False)
        seen = {}
        while client.process.poll() is None:
            for pid, (gpu, count) in waits(machine).items():
                if pid not in before:
                    seen[pid] = (gpu, max(count, seen.get(pid, (gpu, 0))[1]))
            time.sleep(0.2)
        below = client.result(1)
    for name, bits in alone.items():
        claim(below.get(name) == bits, f"the same bits: {name}")
    print(f"# held: {list(seen.values())}")
    claim(any(count for _, count in seen.values()), "and it was held meanwhile")


# The program on two GPUs


def hashed(tensor):
    import apps

    return apps.torch_hash(tensor)


def copies(torch):
    """From GPU to GPU and back, by the driver's peer copies where there are any."""
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
    """A process for each GPU; what they add up is the same in any order."""
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


def main():
    parser = argparse.ArgumentParser(prog="two.sh", description=__doc__)
    parser.add_argument("--bundle", type=pathlib.Path)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        return program()
    if options.simulated:
        os.environ.update(WEIR_SIM_GPUS="2", WEIR_SIM_SMS="2", WEIR_SIM_BLOCK_US="500")
    machine = node.Node(options.bundle, "two", options.simulated)
    try:
        machine.ensure_agent()
        separate(machine)
        if not options.simulated:
            both(machine)
    except node.Failure as error:
        claim(False, str(error))
    finally:
        machine.close()
        machine.remove()
    return failed


if __name__ == "__main__":
    sys.exit(main())
