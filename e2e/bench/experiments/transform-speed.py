"""bench-transform reads and rewrites a module of 50 MB, a tenth and a hundredth of it; no GPU takes part."""

import forms
from bursts import LOW
from report import at_least

SHOWS = "speed of the transformer: MB/s, and whether time grows faster than the module"
PAPER = ""
BOUNDS = {"MB/s against a tenth of the size": at_least(80)}
BASELINES = ("a module of a tenth of the size",)
NEEDS = ()
SIMULATED = True

CORPUS_MB = 50


def run(bench):
    node = bench.node
    corpus = [str(path) for path in forms.modules(bench)]
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
        bench.report.add(what, median, baselines=f"median of {len(figures)}")
    for form, (*_, tenth, whole) in rates.items():
        bench.report.judge(f"{form}: MB/s against those of a tenth of the size", 100 * whole / tenth, BOUNDS["MB/s against a tenth of the size"])
