"""Programs as event loops on the GPU against the same work as plain kernels, as split kernels, and on the CPU. Then LavaMD
alone and several times at once, against time-slicing and Weir's slices.

Loops are judged against the best way without a loop: kernels as they are or split, and with input and output the best way
in which the CPU drives the GPU. What the CPU does without the GPU stands beside it. Each port must also leave the GPU soon. In
a run for itself it leaves by itself every 0.2 ms: leaving takes from when a block knows that all must leave until the last one
has saved its state. loop-servers measures it from the moment when HIGH's demand is shown. --parts: some of PARTS."""

import contextlib
import statistics
import subprocess

import plot
import ports
from bursts import LOW
from experiment import PROGRAMS
from report import at_least, at_most

SHOWS = "event loops alone against native kernels, split kernels and the CPU; several LavaMD against hardware preemption"
PAPER = "GLoop figures 4, 5, 6, 15"
BOUNDS = {
    "a look": at_most(0.5, " us"), "a task": at_most(2.5, " us"), "against launches": at_least(3.5, "x"),
    "kernel": at_most(1.02), "hybrid sort": at_most(1.16), "grep and servers": at_most(1.03),
    "leaving": at_most(60, " us"), "several against time-slicing": at_most(1.0), "several against Weir's slices": at_most(1.0),
}  # fmt: skip
BASELINES = ("the original kernel", "split kernels", "the CPU", "time-slicing", "Weir's slices")
NEEDS = ("gpu", "root")  # and PyTorch for a row
SIMULATED = True

KERNELS = ("lava-md", "angular-correlation", "suffix-match", "hybrid-sort")
KERNEL_WAYS = ("native", "split")
CPU_DRIVEN = {"grep": ("native", "split", "parallel"), "images": ("native", "parallel", "split"), "tokens": ("native", "parallel")}
ROUNDS = ("tokens",)  # their seconds are the median of rounds of one process
SERVICES = {"echo": "echo server", "matmul": "matmul server", "kv": "key-value store"}
THROTTLE, SEVERAL = "throttle", "several"  # of --parts, as are kernels, what is driven by the CPU, and services
PARTS = (THROTTLE, *KERNELS, *CPU_DRIVEN, *SERVICES, SEVERAL)
SERVER_WAYS = ("cpu", "driven", "loop")
# On a machine that others use, too, a round's ratio varies by 20 %. Of 15 rounds the median was 1.04x and 0.92x in two runs.
SECONDS, SERVER_ROUNDS = 0.4, 40
CONNECTIONS = {"echo": 16, "matmul": 16, "kv": 64}  # of the store as many as in loop-servers
CPU_ROUNDS = 10  # the CPU is asked in one of so many
COUNTS = (1, 2, 4, 6)
SIZES = {"suffix-match": 1 << 17}  # queries; the CPU sorts a text of four times as many letters
# Passes of a round, for those that only write results. So it lasts about 20 ms, and the begin of a loop (0.1 ms) counts as in a
# program. More work in one pass would change the original: with 262144 queries suffix-match evicts its own data from the L1
# cache, and took 1.6 times as long as the loop (H100).
REPEATS = {"lava-md": 4, "suffix-match": 4}
BOXES, PASSES = 20, 200  # along an edge of each LavaMD; over all of them


def throttle(bench):
    """Returns a point's time in us, each way; original kernels have none."""
    found = {way: ports.measure(bench, "loop-throttle", "us_per_point", way=way) for way in ("split", "post", "look")}
    us = {way: result["us_per_point"] for way, result in found.items()}
    told = ", ".join(f"{way} {time:.3f} us" for way, time in us.items())
    bench.report.judge("throttle: a look", us["look"], BOUNDS["a look"], told)
    bench.report.judge("throttle: a task", us["post"], BOUNDS["a task"], told)
    bench.report.judge("throttle: tasks against launches", us["split"] / us["post"], BOUNDS["against launches"], told)
    return {"native": us["split"], "split": us["split"], "loop": us["post"]}


def leaving(bench, name, result):
    """0 says that it never left."""
    bench.report.judge(f"{name} leaves within, p99", result["leaving_us"] or float("inf"), BOUNDS["leaving"])


def measure(bench, way, **options):
    """ports.measure(); a loop also says how soon it leaves."""
    return ports.measure(bench, way=way, **options, **({"leaving": None} if way == "loop" else {}))


def kernel(bench, name):
    """Returns us, each way."""
    options = {"only": name, "class": "trivial" if bench.node.simulated else "large", "iterations": 1 if bench.node.simulated else 20}
    if name in SIZES and not bench.node.simulated:
        options["size"] = SIZES[name]
    options["repeat"] = 1 if bench.node.simulated else REPEATS.get(name, 1)
    # The CPU computes the same each time, which takes seconds: one run, whose rounds vary little.
    found = {way: measure(bench, way, program="loop-ports", key="us", times=1, **options) for way in (*KERNEL_WAYS, "loop")}
    us = {way: result["us"] for way, result in found.items()}
    best = min(KERNEL_WAYS, key=us.get)
    bound = BOUNDS["hybrid sort" if name == "hybrid-sort" else "kernel"]
    told = (
        f"passes: {options['repeat']}; {us['loop']:.0f} us, made and freed in {found['loop']['setup_us']:.0f} us; native {us['native']:.0f} us; "
        f"split {us['split']:.0f} us; CPU with inputs {found['native']['cpu_us']:.0f} us"
    )
    bench.report.judge(f"{name} against {best}", us["loop"] / us[best], bound, told)
    leaving(bench, name, found["loop"])
    return us


def driven(bench, name):
    """Files in; a file or a tensor out. Returns seconds, each way."""
    options = {"folder": ports.files(bench)} | ports.blocks(bench, name)
    ways = ("cpu", *CPU_DRIVEN[name], "loop")
    times = 1 if name in ROUNDS else ports.TIMES
    found = {way: measure(bench, way, program=f"loop-{name}", key="seconds", times=times, **options) for way in ways}
    seconds = {way: result["seconds"] for way, result in found.items()}
    best = min(CPU_DRIVEN[name], key=seconds.get)
    told = ", ".join(f"{way} {1e3 * s:.1f} ms" for way, s in seconds.items())
    bound = BOUNDS["grep and servers" if name == "grep" else "kernel"]
    bench.report.judge(f"{name} against {best}", seconds["loop"] / seconds[best], bound, told)
    leaving(bench, name, found["loop"])
    return seconds


def torch_reads(bench):
    """The loop writes into a tensor of PyTorch's."""
    what = "PyTorch finds the right tensor"
    if bench.node.simulated:
        return
    wants = "import torch; assert torch.cuda.is_available()"
    if subprocess.run(["python3", "-c", wants], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        bench.report.skipped(f"{what}: not measured, python3 has no PyTorch for CUDA")
        return
    argv = ["python3", str(PROGRAMS / "tokens.py"), str(bench.node.bundle / "lib/libloop-tokens.so")]
    result = bench.node.start("tokens", argv, LOW, False, files=False).result(ports.TIMEOUT)
    bench.report.holds(what, result["right"], f"{result['tokens']} tokens in {1e3 * result['seconds']:.1f} ms")


def server(bench, service):
    """The ways are asked in turns, either first, as what else the machine does varies; the CPU, which is only shown, less
    often. Where threads run would decide more than the way. So each server's main thread, which does its input and output,
    has the same processor, and each client another one. The clients compare each reply with what they expect: of echo and
    of the store all its bytes."""
    seconds, rounds = (0.3, 1) if bench.node.simulated else (SECONDS, SERVER_ROUNDS)
    places = [] if bench.node.simulated else ports.processors(1 + ports.CLIENTS)
    found, connections = {way: [] for way in SERVER_WAYS}, CONNECTIONS[service]
    with contextlib.ExitStack() as stack:
        options = ports.blocks(bench, service)
        at = {way: stack.enter_context(ports.serving(bench, service, way, **options)) for way in SERVER_WAYS}
        for _, client in at.values() if places else ():
            ports.pin(client, places[0])
        for i in range(rounds):
            for way in SERVER_WAYS if i % 2 == 0 else reversed(SERVER_WAYS):
                port, _ = at[way]
                if way != "cpu" or i % CPU_ROUNDS == 0:
                    found[way].append(ports.ask_together(bench, service, port, seconds, connections, on=places[1:]))
    pairs = zip(found["driven"], found["loop"])
    slower = statistics.median(driven["requests_per_second"] / loop["requests_per_second"] for driven, loop in pairs)
    middle = {way: ports.median_of(results) for way, results in found.items()}
    told = "; ".join(f"{way} {ports.shown(result)}" for way, result in middle.items())
    of_medians = middle["driven"]["requests_per_second"] / middle["loop"]["requests_per_second"]
    told += f"; of the medians {of_medians:.3f}x; {connections} connections; {rounds} rounds; processors {places}"
    bench.report.judge(f"{SERVICES[service]}, time of a request against driven", slower, BOUNDS["grep and servers"], told)


def together(bench, way, weir, n):
    """Seconds that each of @n LavaMD took, begun at the same time."""
    boxes, passes = (1, 4) if bench.node.simulated else (BOXES, PASSES)
    argv = ports.argv_of(bench, "loop-ports", way=way, only="lava-md", iterations=1, repeat=passes, size=boxes) + ["--wait"]
    clients = [bench.node.start(f"lava-{way}", argv, LOW, weir, mps=False, stdin=subprocess.PIPE) for _ in range(n)]
    for client in clients:
        client.wait_ready()
    for client in clients:
        client.tell("go")
    return [client.result(ports.TIMEOUT)["us"] / 1e6 for client in clients]


def several(bench):
    """As in GLoop's figure 15."""
    ways = {"time-slicing": ("native", False), "Weir's slices": ("native", True), "event loops": ("loop", True)}
    series = {name: [] for name in ways}
    bench.node.share_gpu(mps=False)
    counts = COUNTS[:2] if bench.node.simulated else COUNTS
    for n in counts:
        took = {name: together(bench, way, weir, n) for name, (way, weir) in ways.items()}
        mean = {name: statistics.fmean(seconds) for name, seconds in took.items()}
        told = ", ".join(f"{name} {mean[name]:.3f} s +- {statistics.pstdev(took[name]):.3f}" for name in ways)
        for name in ways:
            series[name].append(mean[name])
        for name in ("time-slicing", "Weir's slices"):
            bench.report.judge(f"{n} LavaMD against {name}", mean["event loops"] / mean[name], BOUNDS[f"several against {name}"], told)
    if bench.plots:
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", "LavaMD, several at once (GLoop fig. 15)", "s", [str(n) for n in counts], series)


def draw_alone(bench, times):
    """As in GLoop's figures 4 to 6: the time of each way in parts of the native, or else of the CPU's."""
    ways = ("native", "split", "cpu", "loop")
    series = {way: [of.get(way, 0) / of.get("native", of.get("cpu", 0)) for of in times.values()] for way in ways}
    plot.bars(bench.plots / f"{bench.report.experiment}-alone.svg", "Event loops alone (GLoop fig. 4 to 6)", "x", list(times), series)


def alone(bench, part):
    """Returns the time of each way."""
    if part == THROTTLE:
        return throttle(bench)
    return kernel(bench, part) if part in KERNELS else driven(bench, part)


def run(bench):
    bench.node.stop_mps()
    parts = bench.part_of(PARTS)
    times = {part: alone(bench, part) for part in parts if part not in (*SERVICES, SEVERAL)}
    if "tokens" in times:
        torch_reads(bench)
    if bench.plots and times:
        draw_alone(bench, times)
    for service in SERVICES:
        if service in parts:
            server(bench, service)
    if SEVERAL in parts:
        several(bench)
