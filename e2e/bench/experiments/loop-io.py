"""A file is read into device memory in requests of one size: by an event loop on the GPU, by the host with copies behind
its reads, and by io_uring into the host's memory alone. The file is in the page cache, so the device is the memory of the
host: all processors read the same file into pinned memory. The loop is held against the slower of that and the link. They
take turns, as what the processors of a shared machine do varies by 20 % from run to run.

Then a file by O_DIRECT, from the disk: what part of the rate of the host alone the loop reaches, with as many requests of the
same size at a time. The host uses io_uring, or where that is forbidden a thread on each processor. Nothing is judged: it is
the disk that decides, and a slow one hides what the loop costs. GPUDirect Storage is not used. --parts: some of PARTS."""

import os

import statistics

import plot
import ports
from bursts import LOW
from report import at_least

SHOWS = "a file into device memory by an event loop on the GPU, in requests of 4 KiB to 64 MiB"
PAPER = ""
BOUNDS = {"of the possible rate": at_least(90)}
PRINTED = ("requests of 4 KiB", "from the disk")  # figures without a bound, also in RESULTS.md
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
CACHED, DISK = "cached", "disk"
PARTS = (CACHED, DISK)
DISK_SIZES = (4, 64, 1024, 16384)  # KiB of a request
DISK_BYTES, DISK_ROUNDS = 256 << 20, 5
DISK_BLOCKS, DISK_SLOTS, DISK_DEPTH = 4, 8, 32  # requests at a time, of the loop and of io_uring
SLOW = 1e9  # bytes a second of the host alone: with less the disk is all that is measured
MEMORY = ("tmpfs", "ramfs")  # file systems without a disk


def named(kib):
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def judge(bench, kib, rates, told):
    """The median of what the loop had in each round of the slower of the other two."""
    parts = [100 * loop / min(host, link) for loop, host, link in zip(*(rates[way] for way in JUDGED))]
    note = f"the lower of host and link in the same round; median of {len(parts)}, {min(parts):.0f} to {max(parts):.0f} %; {told}"
    bench.report.judge(f"requests of {named(kib)}, of the possible rate", statistics.median(parts), BOUNDS["of the possible rate"], note)


def measure(bench, ways, **options):
    """Bytes a second of each way in each round."""
    return read(bench, ways, **options)["rates"]


def read(bench, ways, **options):
    argv = ports.argv_of(bench, "loop-file-read", way=",".join(ways), **options)
    return bench.node.start("loop-file-read", argv, LOW, False).result(ports.TIMEOUT)


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


def place_of(folder):
    """File system and device."""
    status = os.stat(folder)
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            mount, _, system = line.partition(" - ")
            if mount.split()[2] == device:
                return tuple(system.split()[:2])
    return "a file system that is not known", device


def read_disk(bench, kib):
    """What the program says, and which way the host alone reads."""
    small = bench.node.simulated
    options = {"folder": ports.files(bench), "size": kib * KIB, "direct": None, "depth": DISK_DEPTH}
    options |= {"bytes": 4 << 20, "rounds": 2} if small else {"bytes": DISK_BYTES, "rounds": DISK_ROUNDS}
    options |= {"slots": DISK_SLOTS} | ({} if small else {"blocks": DISK_BLOCKS})
    try:
        return read(bench, ("loop", "uring"), **options), "uring"
    except RuntimeError as error:
        if "io_uring" not in str(error):
            raise
        print(f"    no io_uring: {error}", flush=True)
    return read(bench, ("loop", "host"), **options), "host"


def disk_row(bench, kib, found, host, about):
    rates = found["rates"]
    parts = [100 * loop / alone for loop, alone in zip(rates["loop"], rates[host])]
    told = ", ".join(f"{way} {statistics.median(each) / 1e9:.3f} GB/s" for way, each in rates.items())
    told += f"; median of {len(parts)}, {min(parts):.0f} to {max(parts):.0f} %; {about}"
    if found["cached"]:
        told += f"; {found['cached']} bytes of the file came into the page cache: not all was read from the disk"
    bench.report.add(f"from the disk, requests of {named(kib)}, of the host alone", round(statistics.median(parts), 1), " %", baselines=told)


def from_disk(bench):
    system, device = place_of(ports.files(bench))
    if system in MEMORY:
        bench.report.add("from the disk", "not measured", baselines=f"{ports.files(bench)} is {system}")
        return
    sizes = DISK_SIZES[:3] if bench.node.simulated else DISK_SIZES
    try:
        found = {kib: read_disk(bench, kib) for kib in sizes}
    except RuntimeError as error:
        if "O_DIRECT" not in str(error):  # some file systems have none
            raise
        bench.report.add("from the disk", "not measured", baselines=f"{system} on {device}: {error}")
        return
    fastest = max(statistics.median(result["rates"][host]) for result, host in found.values())
    about = f"{DISK_DEPTH} requests at a time; {system} on {device}"
    if fastest < SLOW:
        about += f"; the disk gives the host alone {fastest / 1e9:.2f} GB/s at most, too slow to say anything about the loop"
    for kib, (result, host) in found.items():
        disk_row(bench, kib, result, host, about)


def from_cache(bench):
    sizes = (4, 64, 1024) if bench.node.simulated else SIZES
    rates = [at_size(bench, kib) for kib in sizes]
    if bench.plots:
        series = {way: [rate.get(way, 0) / 1e9 for rate in rates] for way in (*JUDGED, *OTHERS)}
        plot.lines(bench.plots / f"{bench.report.experiment}.svg", "A file into device memory", "GB/s", [kib * KIB for kib in sizes], series)


def run(bench):
    bench.node.stop_mps()
    parts = bench.part_of(PARTS)
    if CACHED in parts:
        from_cache(bench)
    if DISK in parts:
        from_disk(bench)
