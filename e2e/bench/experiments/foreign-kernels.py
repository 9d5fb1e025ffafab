"""Kernels of CUB, Thrust, CUTLASS, ggml and Triton (e2e/foreign/corpus.py) in all forms, built as the compile service does."""

import collections
import re

import foreign
from report import at_least

SHOWS = "kernels that others wrote: which can have each form, what that takes of an SM, and that ptxas accepts it"
PAPER = ""
BOUNDS = {
    "sliced": at_least(99.8, timed=False),
    "persistent": at_least(97, timed=False),
    "resumable": at_least(90, timed=False),
}
BASELINES = ("the original kernels",)
NEEDS = ("no gpu",)
SIMULATED = True

EVERY = 4  # one of so many kernels is built and assembled
SHOWN = 8  # reasons
# About blocks on an SM: launches say the rest.
ASSUMED = f"without dynamic shared memory, blocks of {foreign.USUAL_THREADS} threads where the PTX does not say"


def kept(kernel, form):
    """Blocks on an SM in the best build of a form, relative to the original; None: refused."""
    fit = [foreign.blocks(build.entry, kernel.threads) for build in kernel.builds if build.form == form and build.entry]
    return max(fit) / max(1, foreign.blocks(kernel.native, kernel.threads)) if fit else None


def shares(eligible):
    eligible = list(eligible)
    return f"{100 * sum(eligible) / len(eligible):.1f} % of {len(eligible)}"


def count_eligible(bench, paths):
    """By weir-transform's word, over the whole corpus."""
    rows = foreign.verdicts(paths)
    for form, bound in BOUNDS.items():
        of = [row for row in rows if row[1] == form]
        good = sum(row[2] for row in of)
        parts = ", ".join(f"{part} {shares(row[2] for row in of if row[0] == part)}" for part in dict.fromkeys(row[0] for row in of))
        bench.report.judge(f"kernels that can be {form}", 100 * good / len(of), bound, f"{good} of {len(of)}: {parts}")
        reasons = (re.sub(r"\d+ of \d+ registers", "too many registers", row[3]) for row in of if not row[2])
        for reason, count in collections.Counter(reasons).most_common(SHOWN):
            bench.report.add(f"not {form}: {reason}", f"{count} kernels")


def show_cost(bench, kernels, form):
    """The first build of each kernel, beside the original."""
    pairs = [(kernel.native, next(build.entry for build in kernel.builds if build.form == form)) for kernel in kernels]
    more = sorted(entry.registers - native.registers for native, entry in pairs)
    spill = sum(entry.spilled > native.spilled for native, entry in pairs)
    median, p99 = more[len(more) // 2], more[len(more) * 99 // 100]
    beside = f"p99 {p99:+d}; {spill} of {len(pairs)} spill more"
    bench.report.add(f"{form}: registers, median", f"{median:+d}", baselines=beside)
    worst = max((entry for _, entry in pairs), key=lambda entry: entry.ms)
    beside = f"{worst.spilled} bytes spilled; other work on the machine makes it longer"
    bench.report.add(f"{form}: longest in ptxas", f"{worst.ms / 1000:.1f} s", baselines=beside)


def show_occupancy(bench, kernels, form):
    parts = {kernel: kept(kernel, form) for kernel in kernels}
    can = [kernel for kernel, part in parts.items() if part is not None]
    half = sum(parts[kernel] >= 0.5 for kernel in can)
    whole = sum(parts[kernel] >= 1 for kernel in can)
    beside = f"{half} of {len(kernels)}; {len(can)} can be {form}, {whole} keep all blocks; {ASSUMED}"
    what = f"{form} with at least half of the blocks on an SM"
    if form == "resumable":
        bench.report.judge(what, 100 * half / len(kernels), BOUNDS[form], beside)
    else:
        bench.report.add(what, f"{100 * half / len(kernels):.2f} %", baselines=beside)
    show_cost(bench, can, form)


def build_some(bench, paths):
    """One kernel of EVERY in all forms."""
    kernels, count_all, refused = foreign.survey(paths, EVERY)
    count = collections.Counter(kernel.part for kernel in kernels)
    parts = ", ".join(f"{part} {n}" for part, n in count.items())
    bench.report.add("kernels that were built", f"{len(kernels)} of {count_all}", baselines=parts)
    bench.report.cut(f"one kernel of {EVERY} is built and assembled")
    named = "; ".join(f"{name}: {error}" for name, error in refused.items())
    bench.report.add("files that ptxas refuses as they are, left out", f"{len(refused)} of {len(paths)}", baselines=named)
    bad = [kernel for kernel in kernels if kernel.error]
    for kernel in bad[:SHOWN]:
        bench.report.add(f"{kernel.file}: {kernel.name[:60]}", kernel.error[:90])
    bench.report.holds(f"every build is assembled, of one kernel in {EVERY}", not bad, f"{len(kernels) - len(bad)} of {len(kernels)}")
    for form in BOUNDS:
        show_occupancy(bench, kernels, form)


PARTS = {"eligible": count_eligible, "builds": build_some}


def run(bench):
    tiny = bench.report.simulated
    parts = ("dependent",) if tiny else foreign.corpus.ALL
    paths = foreign.corpus.make(foreign.BUILD / "foreign", parts)
    for part in bench.part_of(tuple(PARTS)):
        PARTS[part](bench, paths)
