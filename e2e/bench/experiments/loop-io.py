"""A file is read into device memory in requests of one size: by an event loop on the GPU, by the host with copies behind
its reads, and by io_uring into the host's memory alone. The file is in the page cache, so the device is the memory of the
host: all processors read the same file into pinned memory. The loop is held against the slower of that and the link. They
take turns, as what the processors of a shared machine do varies by 20 % from run to run."""

import statistics

import plot
import ports
from bursts import LOW
from report import at_least

SHOWS = "a file into device memory by an event loop on the GPU, in requests of 4 KiB to 64 MiB"
PAPER = ""
BOUNDS = {"of the possible rate": at_least(90)}
PRINTED = ("requests of 4 KiB",)  # figures without a bound, also in RESULTS.md
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
PASSES = 8  # over the file; from BOUNDED on JUDGED have twice as many, as 0.1 s is short on a machine that others use, too
BLOCKS, SLOTS = 16, 8  # of the loop: 128 requests at a time
JUDGED = ("loop", "host", "link")  # take turns in a process, so that what else the machine does is the same for all
ROUNDS = 11  # of these, from BOUNDED on
OTHERS = ("read", "uring")  # once


def named(kib):
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def judge(bench, kib, rates, told):
    """The median of what the loop had in each round of the slower of the other two."""
    parts = [100 * loop / min(host, link) for loop, host, link in zip(*(rates[way] for way in JUDGED))]
    note = f"the lower of host and link in the same round; median of {len(parts)}, {min(parts):.0f} to {max(parts):.0f} %; {told}"
    bench.report.judge(f"requests of {named(kib)}, of the possible rate", statistics.median(parts), BOUNDS["of the possible rate"], note)


def measure(bench, ways, **options):
    """Bytes a second of each way in each round."""
    argv = ports.argv_of(bench, "loop-file-read", way=",".join(ways), **options)
    return bench.node.start("loop-file-read", argv, LOW, False).result(ports.TIMEOUT)["rates"]


def at_size(bench, kib):
    small = bench.node.simulated
    total = max(256, 4 * kib) * KIB if small else BYTES.get(kib, MOST)
    options = {"folder": ports.files(bench), "size": kib * KIB, "bytes": total, "iterations": 1}
    rounds, often = (ROUNDS, 2) if kib >= BOUNDED else (1, 1)
    if not small:
        options |= {"blocks": BLOCKS, "slots": SLOTS, "iterations": PASSES}
    rates = measure(bench, JUDGED, rounds=rounds, **options | {"iterations": often * options["iterations"]})
    for way in OTHERS:
        try:
            rates |= measure(bench, [way], **options)
        except RuntimeError as error:
            if way != "uring":  # some containers forbid io_uring
                raise
            print(f"    no io_uring: {error}", flush=True)
    rate = {way: statistics.median(each) for way, each in rates.items()}
    told = ", ".join(f"{way} {r / 1e9:.2f} GB/s" for way, r in rate.items())
    if kib < BOUNDED:
        bench.report.add(f"requests of {named(kib)}", f"{rate['loop'] / (kib * KIB):.0f}/s", baselines=told)
    else:
        judge(bench, kib, rates, told)
    return rate


def run(bench):
    bench.node.stop_mps()
    sizes = (4, 64, 1024) if bench.node.simulated else SIZES
    rates = [at_size(bench, kib) for kib in sizes]
    if bench.plots:
        series = {way: [rate.get(way, 0) / 1e9 for rate in rates] for way in (*JUDGED, *OTHERS)}
        plot.lines(bench.plots / f"{bench.report.experiment}.svg", "A file into device memory", "GB/s", [kib * KIB for kib in sizes], series)
