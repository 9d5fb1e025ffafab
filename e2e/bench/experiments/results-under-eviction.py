"""Every workload in every form, while a demand generator stops it 1 000 times at random moments."""

import re
import time
from dataclasses import dataclass

import forms
from bursts import HIGH, LOW
from watch import Watch

SHOWS = "results under 1 000 random evictions of each workload, bit for bit"
PAPER = ""
BOUNDS = {}
BASELINES = ("the same workload without Weir",)
NEEDS = ("gpu", "mps", "root")
SIMULATED = True

FORMS = ("persistent", "resumable")
# Programs with kernels of their own, and what these are; the others are in `kernels`.
TENSOR, MASKS = "tensor", "masks"
KINDS = {TENSOR: "tensor cores, ", MASKS: "masks of lanes that exit, "}
REPEAT = 20  # launches before results are checked
SIMULATED_REPEAT = {"kernels": REPEAT, TENSOR: 2, MASKS: REPEAT}  # the simulated GPU takes long for matrices
EVICTIONS = 1000  # of each workload
GROUP = 9  # workloads at once
PASSES = (("small", GROUP), ("large", 3))  # class of the input, workloads at once
EVICTION_SECONDS = 6  # for so many evictions
ALONE = 30  # seconds for workloads of a form that failed and are tried again alone
# Sums of floats by atomics depend on their order. None of ours has one: all sums are of integers.
EXCEPTIONS = ()


@dataclass
class Run:
    form: str
    input_class: str
    names: list
    group: int  # workloads at once
    program: str = "kernels"


def hashes(text):
    return dict(re.findall(r"^(\S+): ok, .* ([0-9a-f]{16})$", text, re.MULTILINE))


def argv_of(bench, program, input_class, *options):
    if bench.node.simulated:
        input_class = "trivial"
    return [bench.node.program(program), *bench.node.sizes, "--class", input_class, *options]


def native_hashes(bench, program, input_class, only):
    argv = argv_of(bench, program, input_class, "--only", ",".join(only))
    client = bench.node.start("native", argv, LOW, False, files=False)
    client.result()
    return hashes(client.output)


def wait_evicted(watch, clients, want):
    """Stops the clients when each was evicted @want times or has ended, or when the time is over."""
    end = time.monotonic() + EVICTION_SECONDS
    left = list(clients)
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = [c for c in left if c.process.poll() is None and watch.counters(c)["evictions"] < want]
    for client in clients:
        client.stop()


def group_result(bench, watch, run, group, want):
    """Name to (hash or None, evictions, message)."""
    results = {}
    repeat = SIMULATED_REPEAT[run.program] if bench.node.simulated else REPEAT
    options = "--seconds", str(2 * EVICTION_SECONDS), "--repeat", str(repeat)
    argv = argv_of(bench, run.program, run.input_class, *options)
    env = {"WEIR_FORM": run.form}
    clients = [bench.node.start(f"{run.form}-{name}", [*argv, "--only", name], LOW, True, env=env) for name in group]
    wait_evicted(watch, clients, want)
    end = time.monotonic() + 2 * EVICTION_SECONDS
    for name, client in zip(group, clients):
        try:
            client.result(max(1, end - time.monotonic()))
            found, message = hashes(client.output).get(name), ""
        except Exception as error:
            client.kill()
            found, message = None, str(error)
        results[name] = (found, watch.counters(client)["evictions"], message)
    return results


def form_results(bench, watch, run, want):
    """Results of all workloads, run in groups. Under MPS a fault of one client hits all, so workloads that failed run
    again alone, as long as there is time."""
    results, end = {}, time.monotonic() + ALONE
    for i in range(0, len(run.names), run.group):
        results.update(group_result(bench, watch, run, run.names[i : i + run.group], want))
    for name in [name for name, (found, _, _) in results.items() if found is None]:
        if time.monotonic() < end:
            results.update(group_result(bench, watch, run, [name], want))
    return results


def show_truth(bench, run, results, native):
    what = f"{KINDS.get(run.program, '')}{run.form}, {run.input_class} inputs"
    wrong = {name: result for name, result in results.items() if result[0] is None or result[0] != native.get(name)}
    for name, (_, evictions, message) in wrong.items():
        bench.report.holds(f"{name}, {what}: as native, bit for bit", False, message or f"{evictions} evictions")
    good = len(results) - len(wrong)
    total = f"{sum(evictions for _, evictions, _ in results.values())} evictions"
    bench.report.holds(f"{what}: as native, bit for bit", not wrong, f"{good} of {len(results)} workloads", total)


def show_counts(bench, counts, want):
    few = {name: count for name, count in counts.items() if count < want}
    figure = f"{len(counts) - len(few)} of {len(counts)} workloads"
    if bench.node.simulated:  # too slow for all of them
        bench.report.holds("evicted at all", len(few) < len(counts), figure)
        return
    named = ", ".join(f"{name} {count}" for name, count in few.items())
    bench.report.holds(f"each evicted at least {want} times", not few, figure, f"less often: {named}" if few else "")


def truth(bench, watch, input_class, group, counts, want, program="kernels"):
    """One pass over the workloads with fewer than @want evictions; adds to @counts."""
    few = [name for name, count in counts.items() if count < want]
    if not few:
        return
    native = native_hashes(bench, program, input_class, few)
    # Kernels for tensor cores have no resumable form.
    for form in FORMS if not bench.node.simulated and program != TENSOR else ("persistent",):
        run = Run(form, input_class, few, group, program)
        results = form_results(bench, watch, run, want)
        show_truth(bench, run, results, native)
        for name, (_, evictions, _) in results.items():
            counts[name] += evictions


def run(bench):
    """WEIR_FORM gives every kernel a form; libweir's own choice would leave short kernels native. Large inputs follow
    where small ones bring too few evictions because all blocks run at once."""
    node = bench.node
    node.ensure_mps()
    node.ensure_agent()
    everything = forms.names(bench)[: GROUP if node.simulated else None]
    counts, want = dict.fromkeys(everything, 0), 1 if node.simulated else EVICTIONS
    others = {program: dict.fromkeys(forms.names(bench, program), 0) for program in KINDS}
    argv = [node.bench("demand-generator"), "--seconds", "600"]
    env = {"WEIR_SOCKET": str(node.socket)}
    with node.running("demand", argv, HIGH, False, env=env), Watch(node) as watch:
        for input_class, group in PASSES[: 1 if node.simulated else None]:
            truth(bench, watch, input_class, group, counts, want)
            for program, own in others.items():
                truth(bench, watch, input_class, group, own, want, program)
        show_counts(bench, {name: count for own in (counts, *others.values()) for name, count in own.items()}, want)
    bench.report.add("exceptions: sums of floats by atomics", ", ".join(EXCEPTIONS) or "none among ours")
