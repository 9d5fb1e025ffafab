"""Parts a, g and t: what forms cost when nobody asks kernels to leave."""

import collections
import math
import re
import statistics
import typing

import form_delay
from form_truth import EATERS, modules, names
from sharing import LOW

GROUPS = 3  # of benchmarks without Weir: some prepare their inputs while another measures
WARM_UP = 1.5  # seconds of each benchmark with Weir: to measure, compile and choose
MEAN_LIMIT, WORST_LIMIT = 1.01, 1.03
SHORT_US = 20  # a shorter kernel is judged in the mean only: events are not that exact
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


def start_times(bench, weir, input_class, turn, group):
    """Without Weir twice, before and after, as far as turns come in order."""
    node = bench.node
    only = ",".join(group)
    argv = [node.program("kernels"), *node.sizes, "--time", "--class", input_class, "--only", only, "--turn", str(turn)]
    if weir:
        argv += ["--warm-up", str(0.1 if node.simulated else WARM_UP)]
    else:
        argv += ["--times", "2"]
    return node.start("kernels", argv, LOW, weir, files=False, env={"WEIR_LOG": "debug"} if weir else None)


def kernel_times(*clients):
    """Of each turn: kernel to the mean of its launches in a round, of the median round."""
    turns = {}
    for client in clients:
        client.result(400)
        seen = collections.Counter()
        for line in client.json_lines():
            seen[line["workload"]] += 1
            for kernel in line["kernels"]:
                name = f"{line['workload']}/{kernel['name']}"
                turns.setdefault(seen[line["workload"]], {})[name] = kernel["round_us"] / kernel["launches"]
    return list(turns.values())


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


WAITED, EQUALS = "while somebody waits", "while equals wait"


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


def part_a(bench):
    """In turn, so that a GPU that gets warmer or slower does so for both."""
    node = bench.node
    node.stop_mps()
    node.ensure_agent()
    turn = node.folder / "turn"
    turn.touch()
    turn.chmod(0o666)  # clients may be other users
    input_class = "trivial" if node.simulated else "large"
    of = [name for name in names(bench) if name not in EATERS]  # the host says how long those last
    natively = [start_times(bench, False, input_class, turn, of[first::GROUPS]) for first in range(GROUPS)]
    governed = start_times(bench, True, input_class, turn, of)  # one client: of two, each waits for the other
    (first, second), (weir,) = kernel_times(*natively), kernel_times(governed)
    native = {name: (us + second[name]) / 2 for name, us in first.items()}
    chosen = choices(governed)
    ratios = {name: weir[name] / us for name, us in native.items()}
    noise = {name: max(us / second[name], second[name] / us) for name, us in first.items() if us >= SHORT_US} or {"-": 1}
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
    judged = {name: ratio for name, ratio in ratios.items() if native[name] >= SHORT_US} or ratios
    worst = max(judged, key=judged.get)
    bench.report.at_most("a", "kernel alone, geometric mean", mean, MEAN_LIMIT, baselines=f"{len(ratios)} kernels")
    bench.report.at_most(
        "a", f"kernel alone, worst of those from {SHORT_US} us", judged[worst], WORST_LIMIT,
        baselines=f"{worst}; {len(judged)} kernels; native against native {max(noise.values()):.3f}x, {max(noise, key=noise.get)}",
    )
    for name, ratio in ratios.items():
        if ratio > WORST_LIMIT:
            forms = ", ".join(f"{c.form} chunk {c.chunk}" for c in chosen.get(name.split("/")[1], []))
            shown = f"native {first[name]:.1f} and {second[name]:.1f} us; {forms or 'native'}"
            bench.report.add("a", f"over {WORST_LIMIT}x: {name}", f"{ratio:.3f}x", baselines=shown)
    show_reach(bench, native, chosen)


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
