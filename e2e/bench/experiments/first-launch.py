"""LOW is a program that nobody has run before: one launch of seconds, 262 144 threads that compare and swap one word. HIGH
sends bursts from the moment that it starts. The code is that of a new program in each cold start, and the same again in
the warm start behind it.

Under time-slicing three to five of HIGH's requests meet the program's context while the driver makes it. With slices of
2 ms for HIGH alone these lasted 0.52 ms longer (H100); slices of 10 ms are not measured. The p99 of a start leaves out
four requests."""

import time

import bursts
from bursts import LOW
from endless import EndlessBursts, p99, slow_ones
from experiment import MPS
from report import at_most

SHOWS = "latency of HIGH's bursts from the start of a program that is one launch of seconds"
PAPER = ""
BOUNDS = {"p99 against alone": at_most(1.15)}
BASELINES = ("HIGH alone", "time-slicing", "MPS", "Weir whose first launches do not wait, or for 50 ms at most")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
MODES = ("mps", "timeslice")

PAIRS = 5  # of a cold and a warm start
PLAIN_STARTS = 2  # of each baseline
SHORT_MS = 50  # a first launch that waits no longer than this
LENGTH_MS = 2500  # of the launch, alone
WINDOW = 5.0  # seconds from a start
LONGER = 2  # times that length: with CUDA_SCALE_LAUNCH_QUEUES=1x a chain of continuations ends before it does
ITERATIONS_MAX = 4096  # of the program
ENOUGH = 125  # seconds; the starts that are left then are cut
SALTS = 100000  # code of different runs differs
NATIVE = "its forms were not ready in time"


class Starts(EndlessBursts):
    """Starts of the program beside a HIGH that sends bursts all the time. @iterations: of the program's loop."""

    def __init__(self, bench, weir, mps, wait_ms=None):
        super().__init__(bench, weir, mps)
        self.env = {"WEIR_LOG": "info"}
        if wait_ms is not None:
            self.env["WEIR_FIRST_LAUNCH_MS"] = str(wait_ms)
        self.window = 0.2 if bench.node.simulated else WINDOW
        self.native = 0  # first launches whose forms were not ready in time

    def start(self, salt, iterations, times=1):
        """HIGH's requests of the window, pairs of s and us; and what the program says of its launch, whose result is right."""
        node = self.bench.node
        argv = [node.program("cas"), *node.sizes, "--salt", str(salt), "--iterations", str(times * iterations)]
        begin = time.time()
        low = node.start("cas", argv, LOW, self.weir, mps=self.mps, env=self.env)
        time.sleep(times * self.window)
        launch = low.result()
        self.native += NATIVE in low.errors
        return self.timed(begin, begin + times * self.window), launch


def measured_iterations(bench):
    argv = [bench.node.program("cas"), *bench.node.sizes, "--calibrate"]
    argv += ["--length-ms", "20" if bench.node.simulated else str(LENGTH_MS)]
    return int(bench.node.start("calibrate", argv, LOW, False).result())


def p99_of(requests):
    return p99([us for _, us in requests])


def described(requests, launch):
    return (
        f"p99 {p99_of(requests):.0f} us (n={len(requests)}), the launch {launch['ms']:.0f} ms, "
        f"its call returned after {launch['launch_ms']:.0f} ms"
    )


def show(bench, name, alone, iterations, salts, **how):
    """A baseline: the worst of its starts, of programs that nobody has run before."""
    starts = 1 if bench.node.simulated else PLAIN_STARTS
    with Starts(bench, **how) as of:
        measured = [of.start(next(salts), iterations) for _ in range(starts)]
    ratios = [p99_of(requests) / alone["p99"] for requests, _ in measured]
    each = ", ".join(f"{ratio:.2f}x" for ratio in ratios)
    native = f"; forms not ready in time in {of.native}" if of.weir else ""
    shown = f"{each}; {described(*measured[-1])}{native}"
    bench.report.add(f"{name}, p99, worst of {starts}", f"{max(ratios):.2f}x", baselines=shown)


def judge(bench, name, measured, alone):
    """Each start has to be within the bound: so the worst is judged."""
    ratios = [p99_of(requests) / alone["p99"] for requests, _ in measured]
    worst = max(range(len(ratios)), key=lambda i: ratios[i])
    each = ", ".join(f"{ratio:.2f}x" for ratio in ratios)
    bench.report.judge(
        f"Weir, {name}, p99, worst of {len(ratios)}", ratios[worst], BOUNDS["p99 against alone"],
        f"{each}; {described(*measured[worst])}; {slow_ones(measured[worst][0], alone, BOUNDS['p99 against alone'].limit)}",
    )


def show_running(bench, alone, iterations, salts):
    """A launch that began while nobody above shared the GPU runs natively, and HIGH comes meanwhile. Under MPS nothing ends
    it sooner; else the hardware keeps it out of HIGH's way."""
    node, mps, what = bench.node, bench.mode == MPS, "Weir, a launch that began before HIGH came, p99"
    longer = ITERATIONS_MAX if node.simulated else LONGER * iterations
    argv = [node.program("cas"), *node.sizes, "--salt", str(next(salts)), "--iterations", str(longer)]
    low = node.start("cas", argv, LOW, True, mps=mps)
    low.wait_ready()
    with EndlessBursts(bench, True, mps) as high:
        begin = time.time()
        state = next((known["state"] for known in node.status() if known["pid"] == low.process.pid), "")
        if not state or low.process.poll() is not None:
            bench.report.add(what, "it had ended when HIGH was ready")
            return
        launch = low.result()
        requests = high.timed(begin, time.time())
    figure = f"{p99_of(requests) / alone['p99']:.2f}x"
    bench.report.add(what, figure, baselines=f"{described(requests, launch)}; its state: {state}")


def pairs_of_starts(bench, iterations, salts, until):
    """Cold starts, warm starts, one of a longer launch, and how many first launches of them ran natively."""
    cold, warm, pairs = [], [], 1 if bench.node.simulated else PAIRS
    with Starts(bench, True, bench.mode == MPS) as of:
        while len(cold) < pairs and (time.monotonic() < until or not cold):
            salt = next(salts)
            cold.append(of.start(salt, iterations))
            warm.append(of.start(salt, iterations))
        longer = [of.start(salt, iterations, LONGER)]
    if len(cold) < pairs:
        bench.report.cut(f"{len(cold)} of {pairs} pairs of starts")
    return cold, warm, longer, of.native


def run(bench):
    until = time.monotonic() + ENOUGH
    first = time.time_ns() // 1000 % SALTS * 1000
    salts = iter(range(first, first + 1000))
    bench.node.ensure_mps()
    iterations = measured_iterations(bench)
    alone = bench.burst(False)
    bench.report.add("HIGH alone", "1.000x", baselines=bursts.figures(alone))
    show(bench, "time-slicing", alone, iterations, salts, weir=False, mps=False)
    show(bench, "MPS", alone, iterations, salts, weir=False, mps=True)
    bench.node.share_gpu(bench.mode == MPS)
    show(bench, "Weir, first launches do not wait", alone, iterations, salts, weir=True, mps=bench.mode == MPS, wait_ms=0)
    show(
        bench, f"Weir, first launches wait for {SHORT_MS} ms at most", alone, iterations, salts, weir=True,
        mps=bench.mode == MPS, wait_ms=SHORT_MS,
    )
    cold, warm, longer, native = pairs_of_starts(bench, iterations, salts, until)
    judge(bench, "cold compile cache", cold, alone)
    judge(bench, "warm compile cache", warm, alone)
    requests, launch = longer[0]
    bench.report.add(
        f"Weir, a launch {LONGER} times as long, p99", f"{p99_of(requests) / alone['p99']:.2f}x",
        baselines=described(requests, launch),
    )
    show_running(bench, alone, iterations, salts)
    bench.report.add("Weir, forms not ready in time", f"{native} of {len(cold) + len(warm) + 1} starts")
