"""Kernels of CUB, CUTLASS, ggml and Triton (e2e/foreign/corpus.py) in all forms, built as the compile service does."""

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

EVERY = 2  # kernels of the corpus: this one of so many
SHOWN = 6  # reasons


def kept(kernel, form):
    """Blocks on an SM in the best build of a form, relative to the original; None: refused."""
    fit = [foreign.blocks(build.entry, kernel.threads) for build in kernel.builds if build.form == form and build.entry]
    return max(fit) / max(1, foreign.blocks(kernel.native, kernel.threads)) if fit else None


def first_builds(kernels, form):
    """(original, build) without a limit of registers."""
    for kernel in kernels:
        build = next((build for build in kernel.builds if build.form == form and build.entry), None)
        if build:
            yield kernel.native, build.entry


def show_reasons(bench, kernels, form):
    reasons = [build.reason for kernel in kernels for build in kernel.builds if build.form == form and build.reason]
    reasons = collections.Counter(re.sub(r"\d+ of \d+ registers", "too many registers", reason) for reason in reasons)
    for reason, count in reasons.most_common(SHOWN):
        bench.report.add(f"not {form}: {reason}", f"{count} kernels")


def show_cost(bench, kernels, form):
    pairs = list(first_builds(kernels, form))
    more = sorted(entry.registers - native.registers for native, entry in pairs)
    spill = sum(entry.spilled > native.spilled for native, entry in pairs)
    median, p99 = more[len(more) // 2], more[len(more) * 99 // 100]
    beside = f"p99 {p99:+d}; {spill} of {len(pairs)} spill more; no limit of registers"
    bench.report.add(f"{form}: registers, median", f"{median:+d}", baselines=beside)
    worst = max((entry for _, entry in pairs), key=lambda entry: entry.ms)
    bench.report.add(f"{form}: longest in ptxas", f"{worst.ms / 1000:.1f} s", baselines=f"{worst.spilled} bytes spilled")


def show_form(bench, kernels, form):
    can = [kernel for kernel in kernels if kept(kernel, form) is not None]
    half = [kernel for kernel in can if kept(kernel, form) >= 0.5]
    whole = sum(kept(kernel, form) >= 1 for kernel in can)
    good = half if form == "resumable" else can
    what = f"kernels that can be {form}" + (" with at most half of the occupancy lost" if form == "resumable" else "")
    beside = f"{len(can)} of {len(kernels)} can; {len(half)} keep half of their blocks on an SM, {whole} all"
    bench.report.judge(what, 100 * len(good) / len(kernels), BOUNDS[form], beside)
    show_cost(bench, can, form)
    show_reasons(bench, kernels, form)


def run(bench):
    tiny = bench.report.simulated
    parts = ("dependent",) if tiny else foreign.corpus.ALL
    paths = foreign.corpus.make(foreign.BUILD / "foreign", parts)
    kernels = foreign.survey(paths, 1 if tiny else EVERY)
    count = collections.Counter(kernel.part for kernel in kernels)
    bench.report.add("kernels", f"{len(kernels)}", baselines=", ".join(f"{part} {n}" for part, n in count.items()))
    bad = [kernel for kernel in kernels if kernel.error]
    for kernel in bad[:SHOWN]:
        bench.report.add(f"{kernel.file}: {kernel.name[:60]}", kernel.error[:90])
    bench.report.holds("every build is assembled", not bad, f"{len(kernels) - len(bad)} of {len(kernels)}")
    for form in BOUNDS:
        show_form(bench, kernels, form)
