"""Kernels of one level run at the same time, each with a bounded number of blocks on an SM. First every configuration of pairs of a
memory-bound and a compute-bound kernel, by hand (`weirctl bound`); then the policy coexec finds its own, for pairs, for three
and four kernels, and for a queue of all kernels."""

import importlib.util
import itertools
import random
import statistics

from coexec import COMPUTE, FLEXSCHED, MEMORY, Kernels, Pair, Timeline, Torch, makespan, speed_up, watch
from experiment import PROGRAMS
from node import Failure
from report import at_least, at_most
from table_2 import NOT_ALIKE, measure_what_there_is, work_of
from workers import SLOTS, sample

SHOWS = "kernels that run at the same time with bounded blocks on an SM: policy coexec against brute force, MPS, slices and turns"
PAPER = "FlexSched figures 4, 5, 6, 8"
BOUNDS = {
    "pairs": at_least(1.4, "x"), "search, mean": at_most(1, " %"), "search, worst": at_most(6, " %"),
    "profiling": at_most(0.92), "queue": at_least(1.22, "x"), "several": at_least(1, "x"),
}  # fmt: skip
BASELINES = ("sequential", "time-slicing", "MPS", "MPS with stream priority", "slices", "brute force")
NEEDS = ("gpu", "mps", "root")
SIMULATED = True
TENANTS = SLOTS

PARTS = PAIRS, THREE_OR_FOUR, QUEUE, PYTORCH, TABLE_2_PAIRS, TABLE_2 = "pairs", "several", "queue", "torch", "table-2-pairs", "table-2"  # of --parts
SECONDS, TAIL = 2.4, 0.4  # of a pair under the policy; the last of them, when it has found its configuration
LEARN = 1.6  # seconds of a pair, where it is only to be remembered
ORDERS, QUEUE_MS, APART_MS = 4, 150, 3  # of a queue: orders of arrival; alone, the mean kernel; between two arrivals
SEVERAL = (("RED", "MM", "MD5"), ("VA", "MRI", "GCEDD"), ("RED", "VA", "MM", "MRI"))
SEVERAL_SECONDS = 3.0
TORCH = (("RED", "MM"), ("RED", "MM", "MD5"))  # beside PyTorch
APP = "torch-eager"  # of programs/apps.py
CHECK_SECONDS = 1.0  # in which the results of a kernel's rounds are compared while others are at work


def best_partner(pairs, name):
    return max((pair for pair in pairs if name in pair.names), key=lambda pair: pair.highest)


def judge_pairs(bench, pairs):
    """All pairs, as in the paper, and the best partner of each kernel. Judged is the best configuration when it was measured again."""
    best = {name: best_partner(pairs, name) for pair in pairs for name in pair.names}
    for what, of in (("all pairs", pairs), ("best partner of each kernel", list({pair.names: pair for pair in best.values()}.values()))):
        mean, first = (statistics.fmean(getattr(pair, figure) for pair in of) for figure in ("again", "highest"))
        ways = {way: statistics.fmean(pair.baselines[way] for pair in of) for way in pairs[0].baselines}
        told = f"{len(of)} pairs; as the best of all configurations {first:.2f}x; " + ", ".join(f"{way} {found:.2f}x" for way, found in ways.items())
        bench.report.judge(f"{what}, best configuration, over sequential, mean", mean, BOUNDS["pairs"], told)
        bench.report.holds(f"{what}: above each baseline, mean", bench.node.simulated or mean > max(ways.values()), told)


def loss(bench, kernels, pair, chosen):
    """By how many per cent @chosen is slower than the best configuration, or than turns if they are better. Both configurations are
    measured again, one after the other. Else the best would be high by chance, as the highest of many measurements, and a kernel
    may have another form than then."""
    jobs = [kernels.plain[name] for name in pair.names]
    wanted = {pair.best} | ({chosen} if chosen else set())
    by = {configuration: found for configuration, (found, _) in kernels.by_hand(jobs, sorted(wanted)).items()} if len(wanted) > 1 else {}
    best, turns = by.get(pair.best, pair.highest), kernels.turns(jobs)
    found = by.get(chosen, pair.highest) if chosen else turns
    lost = 100 * (1 - found / max(best, turns))
    bench.report.add(f"{'_'.join(pair.names)}: search against brute force, loss", round(lost, 2), " %",
                     baselines=f"{chosen or 'turns'} {found:.2f}, best {pair.best} {best:.2f}, turns {turns:.2f}")  # fmt: skip
    return lost


def run_pair(kernels, pair, seconds):
    """Runs a pair under the policy. Returns (chosen configuration or None, time of the search relative to sequential or None, the same
    until the configuration stays, speed-up at the end)."""
    jobs = [kernels.plain[name] for name in pair.names]
    seen = watch(kernels.pool, jobs, seconds)
    search = seen.search
    profiling = settling = None
    if search and search[1] - search[0] > 0.05:
        profiling, settling = (1 / max(seen.speed_up(jobs, kernels.alone, search[0], end), 1e-9) for end in (search[1], max(search[1], seen.settled)))
    at_end = seen.speed_up(jobs, kernels.alone, seconds - TAIL * seconds / SECONDS, seconds - 0.01)
    told = ", ".join(f"{'+'.join(map(str, workers))} {' '.join(map(str, rates))}" for workers, rates in seen.tries.items())
    print(f"    {'_'.join(pair.names)}: {seen.chosen or 'turns'}; search {search}, profiling {profiling}, until {seen.settled:.2f} s {settling}; {at_end:.2f}; tries {told}", flush=True)
    return seen.chosen, profiling, settling, at_end


def measure_search(bench, kernels, pairs):
    """What there is is judged, whatever ends the measurements."""
    rows, losses = [], {}
    try:
        for pair in pairs:
            rows.append((pair, *run_pair(kernels, pair, 0.8 if bench.node.simulated else SECONDS)))
        kernels.pool.set_policy("levels")
        for pair, chosen, *_ in rows:
            losses["_".join(pair.names)] = loss(bench, kernels, pair, chosen)
        kernels.pool.set_policy("coexec")
    finally:
        if len(losses) < len(pairs):
            bench.report.cut(f"the search of {len(losses)} of {len(pairs)} pairs")
        if losses:
            judge_search(bench, rows, losses)


def judge_search(bench, rows, losses):
    """@rows: what run_pair() returned of each pair; @losses: of those whose loss is known. A choice that is better than the best by hand
    loses nothing."""
    lost = {pair: max(0, loss) for pair, loss in losses.items()}
    worst = max(lost, key=lost.get)
    told = f"{len(losses)} pairs, {statistics.fmean(losses.values()):.2f} % if a gain is a negative loss; choices after {SECONDS:g} s; "
    told += f"speed-up at the end {statistics.fmean(row[-1] for row in rows):.2f}x"
    bench.report.judge("search against brute force, mean loss", statistics.fmean(lost.values()), BOUNDS["search, mean"], told)
    bench.report.judge(f"the same, worst: {worst}", lost[worst], BOUNDS["search, worst"])
    for what, times in (("search", [row[2] for row in rows if row[2]]), ("search, until the configuration stays", [row[3] for row in rows if row[3]])):
        if times:
            bench.report.judge(f"time of the {what}, over sequential, mean", statistics.fmean(times), BOUNDS["profiling"],
                               f"{len(times)} searches; median {statistics.median(times):.3f}, worst {max(times):.3f}")  # fmt: skip


def judge_best(bench, what, ours, baselines, more=""):
    """@baselines: speed-up over sequential by way."""
    told = ", ".join(f"{way} {found:.2f}x" for way, found in baselines.items())
    bench.report.judge(f"{what}: speed-up over the best baseline", ours / max(1, *baselines.values()), BOUNDS["several"],
                       f"{ours:.2f}x over sequential, {told}{more}")  # fmt: skip


def baselines_of(kernels, groups, measure):
    """By group of names. The policy is coexec before and after."""
    kernels.pool.set_policy("levels")
    found = {names: kernels.baselines(names, measure) for names in groups}
    kernels.pool.set_policy("coexec")
    return found


def measure_several(bench, kernels):
    groups = (tuple(kernels.names),) if bench.node.simulated else SEVERAL
    baselines = baselines_of(kernels, groups, lambda mode, jobs, prior: speed_up(kernels.pool, mode, jobs, kernels.alone, 0.5, priorities=prior)[0])
    for names in groups:
        jobs = [kernels.plain[name] for name in names]
        seconds = 1 if bench.node.simulated else SEVERAL_SECONDS
        seen = watch(kernels.pool, jobs, seconds)
        found = seen.speed_up(jobs, kernels.alone, seconds / 2, seconds - 0.01)
        judge_best(bench, "_".join(names), found, baselines[names],
                   f"; {seen.together:.1f} of {len(jobs)} at the same time on average; the first {seconds / 2:g} s, with the searches, do not count")  # fmt: skip
        print(f"    {'_'.join(names)}: {seen.timeline}", flush=True)
    checked = [kernels.pool.check(jobs, CHECK_SECONDS) for jobs in ([kernels.plain[name] for name in names] for names in groups)]
    bench.report.holds("each in turn beside the others at work: results are the CPU's", all(all(of) for of in checked),
                       "; ".join(f"{'_'.join(names)} {' '.join(map(str, of))} rounds" for names, of in zip(groups, checked)))  # fmt: skip


def measure_torch(bench, kernels):
    torch = Torch(bench, kernels.pool)

    def together(mode, jobs, priorities):
        return torch.together(kernels.pool, mode, jobs, kernels.alone, SEVERAL_SECONDS, priorities)

    baselines = baselines_of(kernels, TORCH, together)
    for names in TORCH:
        ours = together("Weir", [kernels.plain[name] for name in names], ())
        judge_best(bench, f"PyTorch training, {', '.join(names)}", ours, baselines[names], f"; the first {SEVERAL_SECONDS / 2:g} s do not count")
    bench.report.cut("beside PyTorch stream priority is a kernel's, never PyTorch's")
    for client in torch.clients.values():
        client.leave()
    compare_hashes(bench, kernels, TORCH[-1])


def hashes_of(bench, tenant, weir):
    """SHA-256 of what a PyTorch program with products, a training and reductions has computed."""
    return bench.node.start("apps", ["python3", str(PROGRAMS / "apps.py"), APP], tenant, weir, files=False)


def compare_hashes(bench, kernels, names):
    """PyTorch's results, alone without Weir, and beside kernels at work under the policy."""
    pool, jobs = kernels.pool, [kernels.plain[name] for name in names]
    plain = hashes_of(bench, "low", False).result(240)
    client, beside = hashes_of(bench, pool.slots[0], True), 0
    while client.process.poll() is None:
        pool.endless("Weir", jobs, CHECK_SECONDS)
        beside += 1
    hashes = client.result(60)
    bad = [output for output, digest in plain.items() if hashes.get(output) != digest]
    bench.report.holds(f"PyTorch beside {', '.join(names)}: results are those without Weir, bit for bit", bool(plain) and not bad,
                       f"differ: {' '.join(bad)}" if bad else f"{len(plain)} outputs, beside {beside * CHECK_SECONDS:g} s of the kernels")  # fmt: skip


def orders_of(jobs, n):
    """@n orders of arrival, which begin with different jobs; the others come as chance will have it."""
    chance = random.Random(1)
    for first in sample(jobs, n):
        others = [job for job in jobs if job != first]
        chance.shuffle(others)
        yield [first, *others]


class Queue:
    """Kernels that arrive one behind the other. @ms: how long each takes alone, by name. @mps: seconds under MPS, by order of arrival."""

    def __init__(self, kernels, ms):
        jobs = {kernels.plain[name]: time for name, time in ms.items()}
        self.rounds = {job: max(1, round(time * 1e3 / kernels.alone[job])) for job, time in jobs.items()}
        self.sequential = sum(n * kernels.alone[job] / 1e6 for job, n in self.rounds.items())
        self.pool, self.mps = kernels.pool, {}

    def run(self, jobs):
        """Returns seconds under MPS, seconds under coexec, and who ran when under that."""
        order = tuple(jobs)
        if order not in self.mps:
            self.mps[order] = makespan(self.pool, "MPS", jobs, self.rounds, APART_MS)
        with Timeline(self.pool, jobs) as timeline:
            ours = makespan(self.pool, "Weir", jobs, self.rounds, APART_MS)
        return self.mps[order], ours, timeline


def measure_queue(bench, kernels, ms, what, orders, bound=None, times=1, told=""):
    """Each order of arrival is reported at once, and what there is is judged, whatever ends the measurements. All orders come @times
    times, so that pairs which met are known later. @bound: None: it is only shown."""
    queue, ratios = Queue(kernels, ms), []
    orders = list(orders_of(queue.rounds, 1 if bench.node.simulated else orders))
    what = f"{len(ms)} {what} in a queue"
    slices = makespan(kernels.pool, "time-slicing", orders[0], queue.rounds, APART_MS)
    told = "; ".join(filter(None, [f"time-slicing {slices:.3f} s in the first order", told]))
    try:
        for time, jobs in itertools.product(range(times), orders):
            mps, ours, timeline = queue.run(jobs)
            ratios.append((mps / ours, queue.sequential / ours))
            bench.report.add(f"{what}, {jobs[0].kernel} first" + ", again" * bool(time), f"{mps / ours:.2f}x",
                             baselines=f"MPS {mps:.3f} s, coexec {ours:.3f} s, {timeline.searched:.3f} s of them searches, sequential {queue.sequential:.3f} s")  # fmt: skip
            print(f"    {timeline}", flush=True)
    finally:
        if len(ratios) < times * len(orders):
            bench.report.cut(f"{what}: {len(ratios)} of {times * len(orders)} runs")
        if ratios:
            show_queue(bench, what, ratios, len(orders), bound, told)


def show_queue(bench, what, ratios, n, bound, told):
    """@n: orders of arrival. What counts is the first time that all of them came, with the searches in it, as in FlexSched's figure 8."""
    first, later = ratios[:n], ratios[n:]
    mean, sequential = (statistics.fmean(column) for column in zip(*first))
    text = [f"{len(first)} orders of arrival, {min(r for r, _ in first):.2f}x at least; sequential over coexec {sequential:.2f}x; pairs that ran "
            "together before are remembered"]  # fmt: skip
    if later:
        text.append(f"again, when pairs are known, {statistics.fmean(r for r, _ in later):.2f}x")
    what, told = f"{what}: time under MPS over that under coexec, mean", "; ".join(filter(None, [*text, told]))
    if bound:
        bench.report.judge(what, mean, bound, told)
    else:
        bench.report.add(what, round(mean, 2), "x", baselines=told)


def table_2(bench, kernels, parts, names):
    """FlexSched's kernels, each of which comes first once. No others are there: of about 45 clients of one MPS server some wait now and
    then."""
    ms, told = work_of(names, QUEUE_MS), ""
    kernels.leave_all_but(names)
    kernels.add(names)
    if TABLE_2_PAIRS in parts:
        with bench.report.guard(TABLE_2_PAIRS):
            kernels.pool.set_policy("levels")
            told = measure_what_there_is(bench, kernels, ms)
    if TABLE_2 in parts:
        with bench.report.guard(TABLE_2):
            kernels.pool.set_policy("coexec")
            measure_queue(bench, kernels, ms, "kernels of FlexSched's table 2", len(names), BOUNDS["queue"], 2, told)
            bench.report.cut(NOT_ALIKE)


def judge_results(bench, kernels):
    """At its end each worker compares the results of a last round with the CPU's."""
    try:
        kernels.leave_all_but(())
        bench.report.holds("results are right", True, f"{len(kernels.left)} kernels")
    except Failure as failure:
        bench.report.holds("results are right", False, str(failure))


def measure_by_hand(bench, kernels, pairs):
    """All configurations of each pair that fits on an SM. What there is is judged, whatever ends the measurements."""
    found, tried = [], 0
    try:
        for names in pairs:
            pair = kernels.pair(*names)
            tried += 1
            if pair.by:
                found.append(pair)
                bench.report.add("_".join(names), f"{pair.highest:.2f}x", baselines=str(pair))
    finally:
        if tried < len(pairs):
            bench.report.cut(f"{tried} of {len(pairs)} pairs by hand")
        if found:
            judge_pairs(bench, found)
    return found


def measure_pairs(bench, kernels, pairs):
    """All configurations of each pair, set by hand; then what the policy finds."""
    found = measure_by_hand(bench, kernels, pairs)
    if not found:
        bench.report.failed("no pair fits on an SM")
        return
    kernels.pool.set_policy("coexec")
    measure_search(bench, kernels, found)


def learn_pairs(kernels, pairs):
    """Lets the policy find the pairs' configurations, which it remembers for the other parts."""
    kernels.pool.set_policy("coexec")
    for names in pairs:
        run_pair(kernels, Pair(names, {}), LEARN)


def ours(bench, kernels, parts, pairs):
    """The parts with kernels that are bound by memory or arithmetic."""
    with bench.report.guard(PAIRS):
        if PAIRS in parts:
            measure_pairs(bench, kernels, pairs)
        else:
            learn_pairs(kernels, pairs)
    kernels.pool.set_policy("coexec")
    if THREE_OR_FOUR in parts:
        with bench.report.guard(THREE_OR_FOUR):
            measure_several(bench, kernels)
    if PYTORCH in parts and importlib.util.find_spec("torch") and not bench.node.simulated:
        with bench.report.guard(PYTORCH):
            measure_torch(bench, kernels)
    elif PYTORCH in parts:
        bench.report.cut("no PyTorch among those that run together: it is not there")
    if QUEUE in parts:
        with bench.report.guard(QUEUE):
            measure_queue(bench, kernels, dict.fromkeys(kernels.names, QUEUE_MS), "kernels", ORDERS)


def kernels_of(parts, names):
    """Those of @names that are measured in slices."""
    groups = ((PAIRS, (names,)), (THREE_OR_FOUR, SEVERAL), (PYTORCH, TORCH))
    wanted = {name for part, of in groups if part in parts for group in of for name in group}
    return [name for name in names if name in wanted]


def run(bench):
    simulated, parts = bench.node.simulated, bench.part_of(PARTS)
    if QUEUE in parts or TABLE_2 in parts:
        bench.report.cut("queues without MPS with stream priority and without slices")
    memory, compute = (("VA", "TRI"), ("GCEDD",)) if simulated else (tuple(MEMORY), tuple(COMPUTE))
    thirteen = ("VA", "GCEDD", "PF") if simulated else tuple(FLEXSCHED)
    is_ours = any(part in parts for part in PARTS if part not in (TABLE_2_PAIRS, TABLE_2))
    sliced = kernels_of(parts, (*memory, *compute))
    kernels = Kernels(bench, [*memory, *compute] if is_ours else thirteen, sliced)
    bounded = [name for name in kernels.names if kernels.parts[name]]
    bench.report.holds("kernels whose blocks can be bounded", bool(bounded), f"{len(bounded)} of {len(kernels.names)}")
    if is_ours:
        bench.report.cut(f"pairs of {len(kernels.names)} kernels of ours, of which RED, VA, HST, MM and GCEDD are FlexSched's: most others of "
                         "its 13 are bound by neither memory nor arithmetic on this GPU")  # fmt: skip
        ours(bench, kernels, parts, [(a, b) for a in memory for b in compute if a in bounded and b in bounded])
    if TABLE_2_PAIRS in parts or TABLE_2 in parts:
        table_2(bench, kernels, parts, thirteen)
    judge_results(bench, kernels)
