"""Each of the papers' kernels with large inputs: in processes without Weir, and in the form that libweir chose."""

import math
import re
import statistics
import typing

import forms
from bursts import LOW
from report import at_least, at_most

SHOWS = "what each of the papers' kernels costs alone, in the form that libweir chose"
PAPER = ""
BOUNDS = {
    "mean": at_most(1.01), "worst": at_most(1.03), "kernels that leave in time": at_least(90),
    "kernels that leave in time and cost little": at_least(70),
}
BASELINES = ("the same kernels without Weir",)
NEEDS = ("gpu", "root")
SIMULATED = True

PROCESSES = 2  # without Weir
WARM_UP = 1.5  # seconds of each benchmark with Weir: to measure, compile and choose
WORST_LIMIT = BOUNDS["worst"].limit
# Memory lies elsewhere in each process, which changes a kernel shorter than this by 5 %.
SHORT_US = 20
# Processes of each kind that follow for short kernels, and for those that differ by more than the bound.
MORE_PROCESSES = 4
# The log line of a choice, with WEIR_LOG=debug.
CHOICE = re.compile(r"kernel (\S+), (\d+) blocks, (\d+) us: (\w+)(?: as it is)?, chunk (\d+)[^,]*, \d+ us \(([^)]*)\)")
# Reasons of a choice in that log.
WAITED, SAME_LEVEL = "while somebody waits", "while same-level clients wait"


class Choice(typing.NamedTuple):
    form: str
    chunk: int  # blocks of a ticket, or of a slice
    us: int  # without a form
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
    """Kernel to the mean time of its launches, in the median round."""
    client.result(400)
    return {
        f"{line['workload']}/{kernel['name']}": kernel["round_us"] / kernel["launches"]
        for line in client.json_lines()
        for kernel in line["kernels"]
    }


def measure_times(bench, of, turn, natives):
    """([times of each process without Weir], times with it, its process). All run the same benchmarks in the same order,
    because earlier benchmarks decide where memory lies."""
    clients = [start_times(bench, False, of, turn) for _ in range(natives)]
    governed = start_times(bench, True, of, turn)  # two clients would wait for each other
    return [kernel_times(client) for client in clients], kernel_times(governed), governed


def choices(client):
    """Kernel to what libweir chose for it, for each geometry."""
    found = {}
    for kernel, blocks, us, form, chunk, why in CHOICE.findall(client.errors):
        found.setdefault(kernel, []).append(Choice(form, int(chunk), int(us), int(blocks), why))
    return found


def reach(bench, name, us, chosen):
    """The longest time in us until this kernel has left, and its form."""
    if not chosen:
        return us, "native"
    worst = (0, "")
    for c in chosen:
        if c.form == "native":
            of = (c.us, f"native: {c.why}")
        elif c.form == "sliced":
            of = (c.us * c.chunk / c.blocks, f"a slice of {c.chunk} blocks")
        else:
            delay = forms.measured_delay(bench, name, c.form, c.chunk, c.us, c.blocks)
            of = (delay, f"{c.form}, chunk {c.chunk}") if delay else (c.us, f"{c.form}, chunk {c.chunk}: not measured")
        worst = max(worst, of)
    return worst


def judge_reach(bench, native, chosen, what, late_what):
    """A row for @what, and one for each kernel that leaves too late. Returns these."""
    reached = {name: reach(bench, name, us, chosen.get(name.split("/")[1])) for name, us in native.items()}
    late = {name: (us, form) for name, (us, form) in reached.items() if us > forms.WITHIN_US}
    share = 100 * (len(reached) - len(late)) / len(reached)
    usual = statistics.multimode(form.split(",")[0].split(":")[0] for _, form in reached.values())
    named = f"{len(reached) - len(late)} of {len(reached)}; most are {usual[0]}"
    bench.report.judge(what, share, BOUNDS["kernels that leave in time"], named)
    for name, (us, form) in sorted(late.items()):
        bench.report.add(f"{late_what}: {name}", f"{us:.0f} us", baselines=form)
    return late


def judge_cost(bench, ratios, late):
    """Kernels for which libweir chose what leaves in time and costs little. Beside it what the best choice would be."""
    good = sum(forms.LITTLE.allows(ratio) for name, ratio in ratios.items() if name not in late)
    known = {forms.name_of(kernel): forms.least_cost(bench, kernel) for kernel in forms.measured(bench)}
    best = forms.count_cheap(known[name] for name in ratios if name in known)
    share = 100 * good / len(ratios)
    named = f"{good} of {len(ratios)}; with the cheapest of all measured variants, small inputs, {best}"
    what = f"kernels that leave within {forms.WITHIN_US} us in the form that libweir chose and cost {forms.LITTLE}"
    bench.report.judge(what, share, BOUNDS["kernels that leave in time and cost little"], named)


def show_reach(bench, ratios, native, chosen):
    """While nobody waits, and while another client waits: then a form may cost more."""
    chosen = {name: [c for c in found if c.why != SAME_LEVEL] for name, found in chosen.items()}
    usual = {name: [c for c in found if c.why != WAITED] for name, found in chosen.items()}
    # libweir logs this choice after the usual one of the same blocks, if it differs.
    waited = {name: list({c.blocks: c for c in found}.values()) for name, found in chosen.items()}
    leave = f"kernels that leave within {forms.WITHIN_US} us in their chosen form"
    judge_cost(bench, ratios, judge_reach(bench, native, usual, leave, "later"))
    judge_reach(bench, native, waited, f"{leave} {WAITED}", f"later {WAITED}")


def is_unsteady(native, weir):
    """Whether more processes are needed to know how long a kernel takes."""
    far = max(native) > WORST_LIMIT * min(native) or weir[0] > WORST_LIMIT * statistics.median(native)
    return far or min(native) < SHORT_US


def kernels_alone(bench):
    """(kernel to its us in each process without Weir, the same with it, the process with Weir that ran all). Processes run
    in turn, so that a change of the GPU meets both kinds."""
    turn = bench.node.folder / "turn"
    turn.touch()
    turn.chmod(0o666)  # clients may be other users
    of = [name for name in forms.names(bench) if name not in forms.EATERS]
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


def listed(times):
    return " ".join(f"{us:.2f}" for us in times)


def run(bench):
    bench.node.stop_mps()
    bench.node.ensure_agent()
    natively, weir, governed = kernels_alone(bench)
    native = {name: statistics.median(us) for name, us in natively.items()}
    chosen = choices(governed)
    ratios = {name: statistics.median(us) / native[name] for name, us in weir.items()}
    noise = {name: max(us) / min(us) for name, us in natively.items()}
    noisy, worst = max(noise, key=noise.get), max(ratios, key=ratios.get)
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
    bench.report.judge("kernel alone, geometric mean", mean, BOUNDS["mean"], f"{len(ratios)} kernels")
    shown = f"{worst}; native processes differ by up to {noise[noisy]:.3f}x, {noisy}"
    bench.report.judge("kernel alone, worst", ratios[worst], BOUNDS["worst"], shown)
    for name, ratio in ratios.items():
        of_choice = ", ".join(f"{c.form} chunk {c.chunk}" for c in chosen.get(name.split("/")[1], [])) or "native"
        of = f"native {listed(natively[name])} us, Weir {listed(weir[name])} us; {of_choice}"
        if ratio > WORST_LIMIT:
            bench.report.add(f"over {WORST_LIMIT}x: {name}", f"{ratio:.3f}x", baselines=of)
        elif len(weir[name]) > 1:
            bench.report.add(f"of several processes: {name}", f"{ratio:.3f}x", baselines=of)
    show_reach(bench, ratios, native, chosen)
