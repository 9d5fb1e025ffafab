"""Kernels in the forms that can leave: which there are, and how soon each leaves."""

import math

from bursts import LOW
from node import Failure
from report import at_most

EATERS = ("work-queue", "polling-server", "endless-simulation")  # they end only when the host tells them to
TRIALS = 50  # evictions of each variant
ROUNDS = 5  # measured for the cost of a variant
FEW = 10  # evictions, too few for a p99 below this
WITHIN_US = 100  # in which a kernel leaves in time
LITTLE = at_most(1.03)  # what a form may cost


def modules(bench):
    """Files with the device code of every workload."""
    folder = bench.node.folder / "ptx"
    if not folder.exists():
        folder.mkdir()
        folder.chmod(0o777)  # clients may be other users
        argv = [bench.node.program("kernels"), "--write-ptx", str(folder)]
        bench.node.start("write-ptx", argv, LOW, False, files=False).result()
    return sorted(folder.glob("*.ptx"))


def names(bench, program="kernels"):
    argv = [bench.node.program(program), "--list"]
    client = bench.node.start("list", argv, LOW, False, files=False)
    client.result()
    return [line.split()[0] for line in client.output.splitlines()]


def name_of(kernel):
    return f"{kernel['workload']}/{kernel['kernel']}"


def enough(bench):
    """Evictions of a variant for a p99."""
    return 1 if bench.node.simulated else FEW


def was_evicted(bench, variants):
    """Whether each variant was evicted often enough."""
    return all(v.get("evictions", 0) >= enough(bench) for v in variants)


def needs_form(kernel):
    """A launch that is over within the time in which a form has to leave needs none."""
    return kernel["native_us"] / kernel["launches"] > WITHIN_US


def least_cost(bench, kernel):
    """Of the variants that libweir could launch and that leave in time, native included. None: none leaves in time."""
    as_launched = [v for v in kernel["forms"] if not v["saves"] and not v["finishes"]]
    in_time = [v["ratio"] for v in as_launched if was_evicted(bench, [v]) and v["delay_us"]["p99"] <= WITHIN_US]
    return min(in_time + ([] if needs_form(kernel) else [1.0]), default=None)


def count_cheap(costs):
    return sum(cost is not None and LITTLE.allows(cost) for cost in costs)


def measured(bench):
    """Every kernel in every form with small inputs, as bench-kernels measures it; once in a run."""
    if not bench.kernels:
        for form in ("persistent", "resumable"):
            measure(bench, form, "small")
    return [kernel for (input_class, _), kernel in bench.kernels.items() if input_class == "small"]


def run_kernels(bench, input_class, trials, limit, *options):
    """What bench-kernels prints of each kernel within @limit seconds. If it fails, what it printed before counts all the
    same."""
    node = bench.node
    node.stop_mps()
    argv = [node.bench("bench-kernels"), *node.sizes, "--trials", str(trials), "--iterations", str(ROUNDS)]
    argv += ["--class", "trivial" if node.simulated else input_class, *options]
    client = node.start("bench-kernels", argv, LOW, False, files=False)
    try:
        client.result(limit)
    except Failure as error:
        client.kill()
        bench.report.failed(f"bench-kernels {' '.join(options)}: {error}")
    return client.json_lines()


def measure(bench, form, input_class, *options):
    """Adds to bench.kernels. @form: empty: all of them."""
    trials = 3 if bench.node.simulated else TRIALS
    options = [*options, *(["--form", form] if form else [])]
    for kernel in run_kernels(bench, input_class, trials, 240, *options):
        key = input_class, name_of(kernel)
        bench.kernels.setdefault(key, {**kernel, "forms": []})["forms"] += kernel["forms"]


def with_delays(kernels, name, form):
    """Pairs of a kernel called @name, of any workload, and a variant of it with enough evictions."""
    of = [k for k in kernels if k["kernel"] == name.split("/")[1]]
    return [(k, v) for k in of for v in k["forms"] if v["form"] == form and v.get("evictions", 0) >= FEW]


def measured_delay(bench, name, form, chunk, us, blocks):
    """p99 in us until the kernel has left, by the measured variant with the nearest chunk, corrected for the length of
    blocks: all @blocks take @us. Kernels too short to be evicted with small inputs are measured with large ones.
    None: no variant was evicted."""
    found = with_delays(measured(bench), name, form)
    if not found and ("large", name) not in bench.kernels:
        measure(bench, form, "large", "--only", name.split("/")[0])
    found = found or with_delays(bench.kernels.values(), name, form)
    if not found:
        return None
    kernel, nearest = min(found, key=lambda pair: abs(math.log2(pair[1]["parts"] / chunk)))
    block_us = us * min(1, kernel["resident"] / blocks)
    longer = 0 if form == "resumable" else block_us - kernel["block_us"]
    return max(nearest["delay_us"]["p99"] + chunk * longer, block_us if form == "persistent" else 0)


def show_queue(bench, length, options, bound):
    """How soon 64 queued kernels leave. @length: of a block in us; 0: without end."""
    node = bench.node
    node.stop_mps()
    argv = [node.bench("bench-queue"), *node.sizes, *(["--length-us", str(length)] if length else []), *options]
    result = node.start("bench-queue", argv, LOW, False, files=False).result()
    what = f"{result['blocks']} blocks of {f'{length} us' if length else 'no end'}, 64 queued, resumable: p99"
    shown = f"p50 {result['p50']:.1f}, max {result['max']:.1f} us; {result['evicted']} evicted, {result['idle']} idle"
    bench.report.judge(what, result["p99"], bound, shown)
