"""What a scheduling point of an event loop costs, against a launch for each point; and loops of nothing but scheduling
points, TPACF and grep, one to eight at a time, begun at the same moment, with equal shares. --parts: some of PARTS."""

import statistics

import plot
import ports
from bursts import LOW
from report import at_least, at_most
from workers import SLOTS

SHOWS = "the cost of a scheduling point of event loops, and one to eight loops at a time: throttle, TPACF, grep"
PAPER = "GLoop figures 4, 7, 8"
BOUNDS = {
    "a look": at_most(0.5, " us"), "a task": at_most(2.5, " us"), "against launches": at_least(3.5, "x"),
    "eight at a time": at_most(8.0), "standard deviation": at_most(2.8, " %"),
}  # fmt: skip
BASELINES = ("a launch for each point", "one loop alone")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS  # clients of one tenant take no turns

POINTS, SIMULATED_POINTS = 300_000, 2000
TRIPS, SIMULATED_TRIPS = 20_000, 20
THREADS = (1, 32, 256, 1024)
GRIDS = {"one block": ("--blocks", 1), "a block on each SM": ("--per-sm", 1), "a full grid": ()}
COUNTS = (1, 2, 4, 8)
ALONE = 0.5  # seconds that one loop takes
TIMEOUT = 120
# TPACF's points and passes: about ALONE in its two loops. The CPU, too, computes the result.
ANGLES, PASSES = 14 << 10, 600
# Grep's files, of 1 MiB each on average, and passes over them: half a second or more alone, as one that ends a turn of 10 ms
# before another must make little difference. As many threads read as the library has. BUFFERS: of 1 MiB; two for each of these
# threads, so that those of eight loops are in the processors' caches. A loop that has the machine alone is quicker with the 64
# of loop-ports, and eight are slower with them: that is told, too. Eight that read share the processors' caches and memory
# (in the paper eight greps take 10.6 times one): they may take as much longer than one as eight greps driven by the CPU do,
# in the same run without Weir, if that is more than eight times.
FILES, TIMES, BUFFERS, MANY_BUFFERS = 2048, 10, 24, 64
WAITS = "the library's spin_us"
SPIN = 0  # loops wait as the library has it: threads of several that never sleep would take the processors from each other


def argv_of(bench, kernel, n, *options):
    return [bench.node.program("loop-runner"), *bench.node.sizes, "--kernel", kernel, "--n", str(n), *map(str, options)]


def run_one(bench, kernel, n, *options):
    return bench.node.start(kernel, argv_of(bench, kernel, n, *options), LOW, False).result(TIMEOUT)


def points_of(bench):
    return SIMULATED_POINTS if bench.node.simulated else POINTS


def us_per_point(bench, kernel, *options):
    return run_one(bench, kernel, points_of(bench), *options)["out"][0] / points_of(bench) / 1e3


def by_threads(bench):
    """GLoop's throttle: one block."""
    costs = {"a launch": [], "a task": [], "a look": []}
    counts = THREADS[:2] if bench.node.simulated else THREADS
    for threads in counts:
        options = ("--blocks", 1, "--threads", threads)
        look, post = (us_per_point(bench, kernel, *options) for kernel in ("points_look", "points_post"))
        n = 200 if bench.node.simulated else 100_000
        split = run_one(bench, "points_split", n, "--split", *options)["seconds"] / n * 1e6
        told = f"{threads} threads: a look {look:.3f} us, a task {post:.3f} us, a launch {split:.3f} us"
        bench.report.judge(f"post_task_if_necessary, {threads} threads", look, BOUNDS["a look"], told)
        bench.report.judge(f"post_task, {threads} threads", post, BOUNDS["a task"], told)
        bench.report.judge(f"tasks against launches, {threads} threads", split / post, BOUNDS["against launches"], told)
        for name, us in zip(costs, (split, post, look)):
            costs[name].append(us)
    if bench.plots:
        plot.bars(bench.plots / f"{bench.report.experiment}.svg", "A scheduling point, by threads (GLoop fig. 4)", "us", [str(n) for n in counts], costs)


def told_turns(bench, kernel, *options):
    """How long block 0 took for one point."""
    result = run_one(bench, kernel, points_of(bench), *options)
    ns, cycles, least, most = result["out"]
    mean = ns / points_of(bench)
    quickest, slowest = (ns * value / max(cycles, 1) for value in (least, most))
    polls = 1000 * result["polls"] / points_of(bench)
    return f"block 0: {mean:.0f} ns, the quickest {quickest:.0f} ns, the slowest {slowest:.0f} ns; {polls:.0f} polls per 1000 points of {result['blocks']} blocks"


def by_grid(bench):
    """Where the time of a point goes: its way alone is the quickest one, the rest are looks and polls. A task's work is
    counted apart, for blocks that all count in one word delay each other."""
    for name, options in GRIDS.items():
        sizes = (*options, "--threads", 128)
        look, post, task, body = (us_per_point(bench, f"points_{kernel}", *sizes) for kernel in ("look", "post", "task", "body"))
        bench.report.judge(f"post_task_if_necessary, {name}", look, BOUNDS["a look"], told_turns(bench, "turns_look", *sizes))
        bench.report.judge(f"post_task, {name}", post, BOUNDS["a task"], told_turns(bench, "turns_post", *sizes))
        bench.report.add(f"a task that counts, {name}", f"{task:.3f} us", baselines=f"without tasks {body:.3f} us, tasks that do nothing {post:.3f} us")


def points(bench):
    by_threads(bench)
    by_grid(bench)
    n = SIMULATED_TRIPS if bench.node.simulated else TRIPS
    trip = run_one(bench, "round_trips", n, "--threads", 32)["out"][0] / n / 1e3
    bench.report.add("a request to the host and back", f"{trip:.2f} us")


def together(bench, name, argv, n, weir=True, mps=False):
    """The results of @n programs that begin together."""
    go = bench.node.folder / f"go-{name}-{n}-{weir}-{mps}"
    clients = [bench.node.start(f"{name}-{n}", [*argv, "--go-file", go], SLOTS[i].name, weir, mps=mps) for i in range(n)]
    for client in clients:
        client.wait_ready()
    go.touch()
    go.chmod(0o644)
    return [client.result(TIMEOUT) for client in clients]


def share(bench, mps):
    """@mps: loops leave for each other, under wfq; else by the hardware's slices, which are switches of the context."""
    bench.node.share_gpu(mps=mps)
    if mps:
        bench.node.weirctl("policy", "wfq")


def draw(bench, name, title, curves):
    if bench.plots:
        labels = [str(n) for n in COUNTS[: len(curves["mean"])]]
        plot.bars(bench.plots / f"{bench.report.experiment}-{name}.svg", title, "s", labels, curves)


def in_turns(bench, what, argv, mps, more, possible=0):
    """Programs that take turns. @what: in words, before how many; @more(results): what else is to be told. @possible: how many
    times as long as one as many as COUNTS has at most take by what they share, if that is more."""
    alone, curves, where = None, {"mean": [], "slowest": [], "n times alone": []}, " under MPS" if mps else ""
    for n in COUNTS[:2] if bench.node.simulated else COUNTS:
        results = together(bench, what or "points", argv, n, mps=mps)
        seconds = [result["seconds"] for result in results]
        mean = statistics.fmean(seconds)
        alone = alone or mean
        spread = 100 * statistics.pstdev(seconds) / mean
        told = f"{mean:.3f} s, alone {alone:.3f} s; sigma {spread:.1f} %; {more(results)}"
        for name, value in zip(curves, (mean, max(seconds), n * alone)):
            curves[name].append(value)
        if n > 1:
            name = f"{what}{': ' if what else ''}{n} at a time{where}"
            times = max(n, possible) if n == COUNTS[-1] else n
            bench.report.judge(name, mean / alone, BOUNDS["eight at a time"].times(times / 8), told)
            bench.report.judge(name.replace(f"{n} at a time", f"standard deviation of {n}"), spread, BOUNDS["standard deviation"], told)
    return curves


def evictions(results):
    return f"{statistics.fmean(result['evictions'] for result in results):.0f} evictions each"


def several(bench):
    """As in GLoop's figure 7."""

    def argv(length):
        return argv_of(bench, "points_look", length, "--threads", 256)

    length = points_of(bench)
    alone = together(bench, "points", argv(length), 1, weir=False)[0]["seconds"]
    if not bench.node.simulated:
        length = int(length * ALONE / alone)
    for mps in (False, True):
        share(bench, mps)
        curves = in_turns(bench, "", argv(length), mps, evictions)
        draw(bench, f"together{'-mps' if mps else ''}", f"Loops at a time{' under MPS' if mps else ''} (GLoop fig. 7)", curves)


def tpacf(bench):
    """Its arguments; what is told of its results."""
    size = {"class": "trivial", "repeat": 2} if bench.node.simulated else {"size": ANGLES, "repeat": PASSES}

    def times(results):
        us, setup = (statistics.fmean(result[name] for result in results) for name in ("us", "setup_us"))
        return f"{us / 1e6:.3f} s of it in loops, {setup / 1e3:.1f} ms making and freeing them; {size['repeat']} passes; {WAITS}"

    return ports.argv_of(bench, "loop-ports", only="angular-correlation", way="loop", iterations=1, spin=SPIN, **size), times


def grep(bench, buffers=BUFFERS):
    """The same. The files are made before."""
    size = {"repeat": 2} if bench.node.simulated else {"size": FILES, "repeat": TIMES}
    options = {"folder": ports.files(bench), "spin": SPIN, "staging": buffers} | ports.blocks(bench, "grep") | size
    argv = ports.argv_of(bench, "loop-grep", way="loop", **options)
    bench.node.start("grep", argv, LOW, False).result(TIMEOUT)

    def read(results):
        passes, size = results[0]["passes"], results[0]["bytes"] / 1e9
        return f"{passes} times {size:.2f} GB from the page cache each; {buffers} buffers of 1 MiB each; {WAITS}"

    return argv, read


def show_most(bench, name, argv, weir, more):
    """How many times as long as one as many as COUNTS has at most take: shown, not judged."""
    n = (COUNTS[:2] if bench.node.simulated else COUNTS)[-1]
    alone, several = (together(bench, name.replace(" ", "-"), argv, n, weir, mps=True) for n in (1, n))
    one, mean = (statistics.fmean(result["seconds"] for result in results) for results in (alone, several))
    bench.report.add(f"{name}: {n} at a time under MPS", f"{mean / one:.2f}x", baselines=f"{mean:.3f} s, alone {one:.3f} s; {more(several)}")
    return mean / one


def driven_greps(bench):
    """What greps lose by reading at the same time: driven by the CPU."""
    size = {"repeat": 2} if bench.node.simulated else {"size": FILES, "repeat": TIMES}
    argv = ports.argv_of(bench, "loop-grep", way="parallel", folder=ports.files(bench), **size)
    return show_most(bench, "grep driven by the CPU", argv, False, lambda results: f"{results[0]['passes']} times the same files, without Weir")


def apps(bench):
    """As in GLoop's figure 8: the time of all rounds, with what the host does for them."""
    share(bench, True)
    loops = {"TPACF": tpacf(bench), "grep": grep(bench)}
    possible = {"grep": driven_greps(bench)}
    for what, (argv, more) in loops.items():
        draw(bench, what.lower(), f"{what}, several at a time (GLoop fig. 8)", in_turns(bench, what, argv, True, more, possible.get(what, 0)))
    argv, more = grep(bench, MANY_BUFFERS)
    show_most(bench, f"grep with {MANY_BUFFERS} buffers each", argv, True, more)


PARTS = {"points": points, "several": several, "apps": apps}  # of --parts


def run(bench):
    bench.node.stop_mps()
    for part in bench.part_of(tuple(PARTS)):
        PARTS[part](bench)
