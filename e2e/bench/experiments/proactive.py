"""HIGH copies 2 MiB to the GPU and launches a kernel of 20 us right behind, beside the kernels of PEP's table I, one after
the other. They begin to leave when HIGH launches (reactive), or when its copy begins (at once). What was tried in between,
and is gone, stands in runtime-lib/gates/README.md. libweir makes no checkpoints before the launch, so the run has none.

PEP's techniques for smaller contexts save a sixth less than whole contexts. So the bytes saved here are judged against the
registers and the shared memory that the same blocks take of an SM. Finishing blocks is another technique: what that spares
stands beside the figure. PEP halves the wait at equal cost: demand when the copy begins is judged by that.

HIGH's wait is taken from the GPU's clock: from where it comes to HIGH's launch to the kernel's end, less the same alone.
The client's own times do not show it: medians of 0.6 s of requests, alone, differed by 2.4 us (38.7 to 41.1, H100,
3a2516b). LOW leaves while the launch is on its way to the GPU, which takes as long: beside it requests needed no longer
than alone, and 2 to 3 us more where LOW had left when the copy began (9c16574). So a wait below 1 us counts as 1 us: where
requests do not wait when LOW leaves at their launch, no way can halve that. The row says so."""

import dataclasses
import statistics
import time

import bursts
from endless import SPANS, EndlessBursts, p99
from report import at_least, at_most
from workers import SLOTS, Job, pool_of

SHOWS = "lower levels that leave before the launch: HIGH's wait and LOW's rate; blocks saved and finished"
PAPER = "PEP figures 8 to 15"
BOUNDS = {"wait": at_most(0.5), "LOW's rate": at_least(0.99, "x"), "bytes": at_most(0.84)}
BASELINES = ("reactive", "HIGH alone")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS

ROUNDS = 2  # of all ways, in turn
SETTLES = 4  # seconds, at most
EDGE = 0.05  # seconds at both ends of a window that do not count
COPY_KIB = 2048  # 0.1 to 0.3 ms
GAPS = ["--gap-min-us", "2000", "--gap-max-us", "5000"]
KERNEL_US, LOW_US = 20, 5000
LEAST_US = 1  # of a wait
FORM = "resumable"  # with the choice between finishing and saving
# Table I: its name of a kernel, our benchmark and kernel.
PEP = {
    "CP": ("cutoff-potential", "cutoff_potential"),
    "LBM": ("lattice-boltzmann", "lattice_stream_collide"),
    "MRI": ("magnetic-resonance", "resonance"),
    "ST": ("stencil-cube", "stencil_7"),
    "SC": ("stream-cluster", "cluster_cost"),
    "GM": ("matrix-multiply", "matrix_multiply"),
    "BS": ("black-scholes", "black_scholes"),
    "KS": ("k-means", "means_invert"),
    "PF": ("path-find", "path_find"),
    "SRAD1": ("speckles", "speckle_extract"),
    "SRAD2": ("speckles-tiled", "speckle_tile"),
    "SRAD3": ("speckles", "speckle_coefficients"),
    "HS": ("heat", "heat"),
    "LUD": ("lu-decomposition", "lud_internal"),
    "BP": ("back-propagation", "net_forward"),
    "BP2": ("back-propagation", "net_adjust"),
}
SIMULATED_KERNELS = 2
REACTIVE, AT_ONCE = "reactive", "at once"
EARLY = {REACTIVE: "off", AT_ONCE: "on"}
COUNTERS = ("evictions", "blocksSaved", "blocksDrained", "bytesSaved")


def high_argv(bench):
    argv = [bench.node.program("burst"), *bench.node.sizes, "--calibrate", "--length-us", str(KERNEL_US)]
    iterations = bench.node.start("calibrate", argv, bursts.HIGH, False).result()
    argv = [bench.node.program("burst"), *bench.node.sizes, "--kernels", "1", "--copy-kib", str(COPY_KIB), *GAPS, *SPANS]
    return [*argv, "--iterations", str(int(iterations)), "--requests", str(1 << 40)]


def window(bench, high, low):
    """HIGH's requests meanwhile, and what low() returns. On the simulated GPU there may be none meanwhile; a later one
    will do."""
    begin = time.time()
    found = low()
    return high.requests(begin + EDGE, time.time() + (60 if bench.node.simulated else -EDGE)), found


def beside(bench, pool, job, high, seconds):
    (before,) = pool.clients([job])
    requests, (ends,) = window(bench, high, lambda: pool.endless("Weir", [job], seconds))
    time.sleep(0.2)  # the last report of LOW's client
    (after,) = pool.clients([job])
    return requests, len(ends) / (ends[-1] / 1e9), {name: after[name] - before[name] for name in COUNTERS}


def settle(bench, pool, jobs, argv):
    """Until libweir has compared the forms of LOW's kernels beside HIGH."""
    with EndlessBursts(bench, True, argv=argv, env={"WEIR_EARLY": EARLY[REACTIVE]}):
        for job in jobs.values():
            for _ in range(1 if bench.node.simulated else SETTLES):
                pool.endless("Weir", [job], 0.1 if bench.node.simulated else 1)
                if not pool.tuning([job]):
                    break


def measure(bench, pool, jobs, argv):
    """By way and kernel: HIGH's requests, LOW's launches a second, LOW's counters, of each round. And HIGH's requests
    alone."""
    seconds = 0.2 if bench.node.simulated else min(1.2, 0.4 * bench.seconds)
    found, alone = {(way, name): [] for way in EARLY for name in jobs}, []
    for _ in range(1 if bench.node.simulated else ROUNDS):
        for way, early in EARLY.items():
            with EndlessBursts(bench, True, argv=argv, env={"WEIR_EARLY": early}) as high:
                alone += window(bench, high, lambda: time.sleep(seconds / 2))[0]
                for name, job in jobs.items():
                    found[way, name].append(beside(bench, pool, job, high, seconds))
    return found, alone


def gpu_us(requests):
    """The mean, without the tenth at either end."""
    spans = sorted(one.spanned for one in requests)
    tenth = len(spans) // 10
    return statistics.fmean(spans[tenth : len(spans) - tenth])


def all_of(rounds):
    return [one for requests, _, _ in rounds for one in requests]


def rate(rounds):
    return statistics.fmean(of for _, of, _ in rounds)


def show_kernel(bench, name, found, alone):
    """Returns HIGH's wait and LOW's rate, by way."""
    waits = {way: max(0, gpu_us(all_of(found[way, name])) - gpu_us(alone)) for way in EARLY}
    rates = {way: rate(found[way, name]) for way in EARLY}
    late = {way: p99([one.spanned for one in all_of(found[way, name])]) - gpu_us(alone) for way in EARLY}
    seen = {way: statistics.median(one.us for one in all_of(found[way, name])) for way in EARLY}
    shown = "; ".join(
        f"{way}: {waits[way]:.1f} us, p99 {late[way]:.0f} us, as HIGH sees it {seen[way]:.0f} us, LOW {rates[way]:.1f}/s"
        for way in EARLY)
    bench.report.add(f"{name}: HIGH's wait, at once", f"{waits[AT_ONCE]:.1f} us", baselines=shown)
    return waits, rates


@dataclasses.dataclass
class Saved:
    """Bytes: @written; whole contexts of the blocks that were saved (@whole), and of those that were finished (@finished)."""

    written: float = 0
    whole: float = 0
    finished: float = 0

    def __add__(self, other):
        return Saved(self.written + other.written, self.whole + other.whole, self.finished + other.finished)


def show_blocks(bench, name, found, context):
    """@context: bytes of a block."""
    total = {key: sum(counts[key] for way in EARLY for _, _, counts in found[way, name]) for key in COUNTERS}
    saved, drained, written = (total[key] for key in COUNTERS[1:])
    shown = f"{total['evictions']} evictions: {saved} blocks saved, {drained} finished"
    if saved:
        shown += f"; of a block {written / saved / 1e3:.1f} of {context / 1e3:.1f} KB"
    bench.report.add(f"{name}: bytes saved in an eviction", f"{written / max(1, total['evictions']) / 1e3:.1f} KB", baselines=shown)
    return Saved(written, context * saved, context * drained)


def judge_bytes(bench, kernels):
    """@kernels: a Saved of each."""
    saved, having = sum(kernels, Saved()), sum(of.written > 0 for of in kernels)
    what = f"bytes saved, against whole contexts of the same blocks; {having} of {len(kernels)} kernels save any"
    if not saved.whole:
        bench.report.lacks(what, BOUNDS["bytes"], "no block was saved")
        return
    bench.report.judge(
        what, saved.written / saved.whole, BOUNDS["bytes"],
        f"with those of blocks that were finished {saved.written / (saved.whole + saved.finished):.3f}x")


def judge_wait(bench, waits, alone):
    """@waits: HIGH's beside each kernel, by way. @alone: in words."""
    wait = {way: statistics.fmean(of[way] for of in waits) for way in EARLY}
    below = sum(of[REACTIVE] < LEAST_US for of in waits)
    what = f"HIGH's wait, mean of {len(waits)} of {len(PEP)} kernels: at once against reactive; below {LEAST_US} us taken as that"
    bench.report.judge(
        what, max(LEAST_US, wait[AT_ONCE]) / max(LEAST_US, wait[REACTIVE]), BOUNDS["wait"],
        f"{', '.join(f'{way} {us:.1f} us' for way, us in wait.items())}; reactive is below {LEAST_US} us beside {below}; {alone}")


def run(bench):
    bench.report.cut("checkpoints before the launch: libweir makes none")
    pool = pool_of(bench)
    jobs = {name: Job(PEP[name][0], kernel=PEP[name][1], us=LOW_US, form=FORM) for name in bench.part_of(PEP)}
    if bench.node.simulated:
        jobs = dict(list(jobs.items())[:SIMULATED_KERNELS])
    pool.ensure("Weir", jobs.values())
    argv = high_argv(bench)
    settle(bench, pool, jobs, argv)
    found, alone = measure(bench, pool, jobs, argv)
    waits, rates = zip(*(show_kernel(bench, name, found, alone) for name in jobs))
    later = p99([one.spanned for one in alone]) - gpu_us(alone)
    judge_wait(bench, waits, f"alone {gpu_us(alone):.1f} us, p99 {later:.1f} us more")
    kept = statistics.geometric_mean(of[AT_ONCE] / of[REACTIVE] for of in rates)
    bench.report.judge("LOW's rate, the same", kept, BOUNDS["LOW's rate"])
    saved = [show_blocks(bench, name, found, pool.context("Weir", job)) for name, job in jobs.items()]
    judge_bytes(bench, saved)
    pool.leave("Weir", jobs.values())
