"""Parts a, g and t: what forms cost when nobody asks kernels to leave."""

import math
import re
import statistics
import typing

import form_delay
from form_truth import EATERS, modules, names
from sharing import LOW

PROCESSES = 2  # without Weir
WARM_UP = 1.5  # seconds of each benchmark with Weir: to measure, compile and choose
MEAN_LIMIT, WORST_LIMIT = 1.01, 1.03
# Where its memory lies, which is another place in each process, changes a shorter kernel by 5 %:
SHORT_US = 20
# So many more of each kind are asked then, as of those that differ by more than the bound without Weir, or are over it with it.
MORE_PROCESSES = 4
TARGET_US, TARGET_SHARE = 100, 90  # of the kernels, per cent
CACHED_LIMIT_MS = 2
CORPUS_MB = 50
LINEAR = 80  # per cent: so much of its speed the transformer has left when the input is ten times as large
# What libweir says when it has chosen, with WEIR_LOG=debug.
CHOICE = re.compile(r"kernel (\S+), (\d+) blocks, (\d+) us: (\w+)(?: as it is)?, chunk (\d+)[^,]*, \d+ us \(([^)]*)\)")


class Choice(typing.NamedTuple):
    form: str
    chunk: int  # blocks of a ticket, or of a slice
    us: int  # natively
    blocks: int
    why: str


def start_times(bench, weir, of, turn):
    node = bench.node
    input_class = "trivial" if node.simulated else "large"
    argv = [node.program("kernels"), *node.sizes, "--time", "--class", input_class, "--only", ",".join(of), "--turn", str(turn)]
    if weir:
        argv += ["--warm-up", str(0.1 if node.simulated else WARM_UP)]
    return node.start("kernels", argv, LOW, weir, files=False, env={"WEIR_LOG": "debug"} if weir else None)


def kernel_times(client):
    """Kernel to the mean of its launches in a round, of the median round."""
    client.result(400)
    return {
        f"{line['workload']}/{kernel['name']}": kernel["round_us"] / kernel["launches"]
        for line in client.json_lines()
        for kernel in line["kernels"]
    }


def measure_times(bench, of, turn, natives):
    """([times of each process without Weir], times with it, its process). All play the same benchmarks in the same order, as
    what was played before says where memory lies."""
    clients = [start_times(bench, False, of, turn) for _ in range(natives)]
    governed = start_times(bench, True, of, turn)  # one client: of two, each waits for the other
    return [kernel_times(client) for client in clients], kernel_times(governed), governed


def choices(client):
    """Kernel to what was chosen for it, with all its geometries."""
    found = {}
    for kernel, blocks, us, form, chunk, why in CHOICE.findall(client.errors):
        found.setdefault(kernel, []).append(Choice(form, int(chunk), int(us), int(blocks), why))
    return found


def reach(bench, name, us, chosen):
    """The longest that it may take until this kernel has left, in us, and in which form."""
    if not chosen:
        return us, "native"
    worst = (0, "")
    for c in chosen:
        if c.form == "native":
            of = (c.us, f"native: {c.why}")
        elif c.form == "sliced":
            of = (c.us * c.chunk / c.blocks, f"a slice of {c.chunk} blocks")
        else:
            delay = form_delay.measured_delay(bench, name, c.form, c.chunk, c.us, c.blocks)
            of = (delay, f"{c.form}, chunk {c.chunk}") if delay else (c.us, f"{c.form}, chunk {c.chunk}: not measured")
        worst = max(worst, of)
    return worst


WAITED, EQUALS = "while somebody waits", "while same-level clients wait"


def judge_reach(bench, native, chosen, what, late_what):
    """A row for @what, and one for each kernel that leaves late."""
    reached = {name: reach(bench, name, us, chosen.get(name.split("/")[1])) for name, us in native.items()}
    late = {name: (us, form) for name, (us, form) in reached.items() if us > TARGET_US}
    share = 100 * (len(reached) - len(late)) / len(reached)
    forms = statistics.multimode(form.split(",")[0].split(":")[0] for _, form in reached.values())
    named = f"{len(reached) - len(late)} of {len(reached)}; most are {forms[0]}"
    bench.report.at_least("a", what, share, TARGET_SHARE, " %", named)
    for name, (us, form) in sorted(late.items()):
        bench.report.add("a", f"{late_what}: {name}", f"{us:.0f} us", baselines=form)


def show_reach(bench, native, chosen):
    """Where nobody waits, and where somebody does: then a form may cost more."""
    chosen = {name: [c for c in found if c.why != EQUALS] for name, found in chosen.items()}
    usual = {name: [c for c in found if c.why != WAITED] for name, found in chosen.items()}
    # Said behind the usual choice of the same blocks, if it is another.
    waited = {name: list({c.blocks: c for c in found}.values()) for name, found in chosen.items()}
    leave = f"kernels that leave within {TARGET_US} us in their chosen form"
    judge_reach(bench, native, usual, leave, "later")
    judge_reach(bench, native, waited, f"{leave} {WAITED}", f"later {WAITED}")


def is_unsteady(native, weir):
    """One process of each kind does not say how long it takes."""
    far = max(native) > WORST_LIMIT * min(native) or weir[0] > WORST_LIMIT * statistics.median(native)
    return far or min(native) < SHORT_US


def kernels_alone(bench):
    """(kernel to its us in each process without Weir, and with it; the process with Weir that played all). In turn, so that a
    GPU that gets warmer or slower does so for both."""
    turn = bench.node.folder / "turn"
    turn.touch()
    turn.chmod(0o666)  # clients may be other users
    of = [name for name in names(bench) if name not in EATERS]  # the host says how long those last
    natives, weir, governed = measure_times(bench, of, turn, PROCESSES)
    native = {name: [times[name] for times in natives] for name in weir}
    weir = {name: [us] for name, us in weir.items()}
    unsteady = {name.split("/")[0] for name, us in native.items() if is_unsteady(us, weir[name])}
    for _ in range(MORE_PROCESSES if unsteady and not bench.node.simulated else 0):
        (first,), second, _ = measure_times(bench, [name for name in of if name in unsteady], turn, 1)
        for name in first:
            native[name].append(first[name])
            weir[name].append(second[name])
    return native, weir, governed


def part_a(bench):
    bench.node.stop_mps()
    bench.node.ensure_agent()
    natively, weir, governed = kernels_alone(bench)
    native = {name: statistics.median(us) for name, us in natively.items()}
    chosen = choices(governed)
    ratios = {name: statistics.median(us) / native[name] for name, us in weir.items()}
    noise = {name: max(us) / min(us) for name, us in natively.items()}
    noisy, worst = max(noise, key=noise.get), max(ratios, key=ratios.get)
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
    bench.report.at_most("a", "kernel alone, geometric mean", mean, MEAN_LIMIT, baselines=f"{len(ratios)} kernels")
    shown = f"{worst}; native processes differ by up to {noise[noisy]:.3f}x, {noisy}"
    bench.report.at_most("a", "kernel alone, worst", ratios[worst], WORST_LIMIT, baselines=shown)
    for name, ratio in ratios.items():
        forms = ", ".join(f"{c.form} chunk {c.chunk}" for c in chosen.get(name.split("/")[1], [])) or "native"
        of = f"native {listed(natively[name])} us, Weir {listed(weir[name])} us; {forms}"
        if ratio > WORST_LIMIT:
            bench.report.add("a", f"over {WORST_LIMIT}x: {name}", f"{ratio:.3f}x", baselines=of)
        elif len(weir[name]) > 1:
            bench.report.add("a", f"of several processes: {name}", f"{ratio:.3f}x", baselines=of)
    show_reach(bench, native, chosen)


def listed(times):
    return " ".join(f"{us:.2f}" for us in times)


def part_g(bench):
    node = bench.node
    node.stop_mps()
    node.renew_agent()
    env = {"WEIR_SOCKET": str(node.socket)}
    client = node.start("bench-compile", [node.bench("bench-compile"), *node.sizes], LOW, False, files=False, env=env)
    client.result(300)
    rows = client.json_lines()
    cold, cached = [row["cold_ms"] for row in rows], [row["cached_ms"] for row in rows]
    slowest = max(rows, key=lambda row: row["cold_ms"])
    bench.report.add(
        "g", "first use of a module, cold", f"median {statistics.median(cold):.0f} ms, worst {max(cold):.0f} ms",
        baselines=f"{len(rows)} modules, {sum(row['kernels'] for row in rows)} kernels; {slowest['module']}",
    )
    bench.report.at_most("g", "first use of a module, from the cache, worst", max(cached), CACHED_LIMIT_MS, " ms")
    load = [row["load_ms"] for row in rows]
    bench.report.add("g", "loading its objects", f"median {statistics.median(load):.1f} ms, worst {max(load):.1f} ms")


def part_t(bench):
    node = bench.node
    corpus = [str(path) for path in modules(bench)]
    argv = [node.bench("bench-transform"), *corpus, str(1 if node.simulated else CORPUS_MB)]
    client = node.start("bench-transform", argv, LOW, False, files=False)
    client.result(300)
    runs = {}  # form and size to the figures of its runs
    for line in client.output.splitlines():
        what, figure = line.split(None, 1)
        runs.setdefault(what, []).append(figure)
    rates = {}
    for what, figures in runs.items():
        figures.sort(key=lambda figure: float(figure.split()[0]))
        median = figures[len(figures) // 2]
        rates.setdefault(what.split("/")[0], []).append(float(median.split()[0]))
        bench.report.add("t", what, median, baselines=f"median of {len(figures)}")
    for form, (*_, tenth, whole) in rates.items():
        bench.report.at_least("t", f"{form}: MB/s against those of a tenth of the size", 100 * whole / tenth, LINEAR)
