"""A file is read into device memory in requests of one size: by an event loop on the GPU, by the host with copies behind
its reads, and by io_uring into the host's memory alone. The file is in the page cache, so the device is the memory of the
host: all processors read the same file into pinned memory. The loop is held against the slower of that and the link."""

import os

import plot
import ports
from report import at_least

SHOWS = "a file into device memory by an event loop on the GPU, in requests of 4 KiB to 64 MiB"
PAPER = ""
BOUNDS = {"of the possible rate": at_least(90)}
BASELINES = (
    "reads, each with a copy behind it", "io_uring into host memory", "reads into host memory by all processors", "copies alone",
)  # fmt: skip
NEEDS = ("gpu",)
SIMULATED = True

KIB = 1024
SIZES = (4, 16, 64, 256, 1024, 4096, 16384, 65536)  # KiB of a request
BOUNDED = 1024  # from this size on
BYTES = {4: 32 << 20, 16: 128 << 20}  # of the file with small requests
MOST = 512 << 20
PASSES = 8  # over the file
BLOCKS, SLOTS = 16, 8  # of the loop: 128 requests at a time
WAYS = ("loop", "read", "uring", "host", "link")
JUDGED = ("loop", "host", "link")  # the median of several runs; the others once
MANY = "loop, a reader on each processor"  # but one; the loop's default is three quarters of the processors, at most 12


def named(kib):
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def readers(bench):
    """As many as there are processors, but for the one of the loop's own thread."""
    return {} if bench.node.simulated else {"readers": min(64, max(1, len(os.sched_getaffinity(0)) - 1))}


def judge(bench, kib, rate, told):
    possible = min(rate["host"], rate["link"])
    note = f"the lower of host and link; {told}"
    bench.report.judge(f"requests of {named(kib)}, of the possible rate", 100 * rate["loop"] / possible, BOUNDS["of the possible rate"], note)


def at_size(bench, kib):
    small = bench.node.simulated
    total = max(256, 4 * kib) * KIB if small else BYTES.get(kib, MOST)
    options = {"folder": ports.files(bench), "size": kib * KIB, "bytes": total, "iterations": 1 if small else PASSES}
    if not small:
        options |= {"blocks": BLOCKS, "slots": SLOTS}
    found = {}
    runs = {way: {"way": way} for way in WAYS} | {MANY: {"way": "loop"} | readers(bench)}
    for way, own in runs.items():
        try:
            times = ports.TIMES if way in JUDGED and kib >= BOUNDED else 1
            found[way] = ports.measure(bench, "loop-file-read", "bytes_per_second", times=times, **options, **own)
        except RuntimeError as error:
            if way != "uring":  # some containers forbid io_uring
                raise
            print(f"    no io_uring: {error}", flush=True)
    rate = {way: result["bytes_per_second"] for way, result in found.items()}
    told = ", ".join(f"{way} {r / 1e9:.2f} GB/s" for way, r in rate.items())
    if kib < BOUNDED:
        bench.report.add(f"requests of {named(kib)}", f"{found['loop']['requests_per_second']:.0f}/s", baselines=told)
    else:
        judge(bench, kib, rate, told)
    return rate


def run(bench):
    bench.node.stop_mps()
    sizes = (4, 64, 1024) if bench.node.simulated else SIZES
    rates = [at_size(bench, kib) for kib in sizes]
    if bench.plots:
        series = {way: [rate.get(way, 0) / 1e9 for rate in rates] for way in (*WAYS, MANY)}
        plot.lines(bench.plots / f"{bench.report.experiment}.svg", "A file into device memory", "GB/s", [kib * KIB for kib in sizes], series)
