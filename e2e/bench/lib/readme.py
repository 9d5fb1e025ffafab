"""The tables in the project's README, made of the newest results: latency and the papers, in both modes."""

import re

import experiment
from report import figure_of

README = experiment.ROOT / "README.md"
BEGIN, END = "<!-- Made by e2e/bench/run --report. -->\n", "<!-- End of that. -->\n"
NONE = "not measured"
COLUMNS = ("time-slicing", "MPS", "MPS + stream priority", "MPS + Weir", "time-slicing + Weir")
# What runs below; which experiments know, under MPS and under time-slicing; what they call it.
BURSTS = (
    ("kernels of 20 us blocks", "burst-blocks-mps", "burst-blocks-timeslice", "LOW=20 us blocks"),
    ("kernels of 5 ms blocks", "burst-blocks-mps", "burst-blocks-timeslice", "LOW=5 ms blocks"),
    ("PyTorch, a training step", "burst-mps-training", "burst-timeslice", "LOW=train"),
    ("PyTorch, `mm` of 8192 x 8192 (cuBLAS has no PTX)", "burst-mps", "burst-timeslice", "LOW=mm"),
)
# Figure of a paper, what it shows, our experiment, how its row begins.
PAPERS = (
    ("FLEP 8", "speed-up of a kernel with priority over MPS, mean", "pairs-priority", "the high one's speed-up over MPS, mean"),
    ("", "the same, against an ideal preemption", "pairs-priority", "of the speed-up that an ideal preemption gives, mean"),
    ("FLEP 9", "the same, by the delay of its launch", "launch-delay", "of the speed-up that an ideal preemption gives, mean"),
    ("FLEP 10", "ANTT of pairs of one level, over MPS", "pairs-hpf", "hpf: ANTT improvement over MPS, mean"),
    ("FLEP 12", "ANTT of triplets, over MPS", "triplets-hpf", "hpf: ANTT improvement over MPS, mean of triplets"),
    ("FLEP 13", "furthest from a share in 1 s", "shares-ffs", "ffs: furthest from its share, 1 s windows"),
    ("FLEP 14", "throughput lost by that", "shares-ffs", "ffs: throughput lost, mean"),
    ("FLEP 17", "cost of cutting kernels into launches against forms that leave as soon", "slicing-cost", "FLEP's kernels: slicing against it, mean"),
    ("EffiSha 9", "evictions of low priorities against high ones", "evictions-by-priority", "priorities 1 to 3 against 7 to 9: evictions of a launch"),
    ("EffiSha 11", "ANTT cut against MPS, shortest first", "queue-dynamic", "SJF: ANTT cut against MPS"),
    ("EffiSha 13, 14", "cost of slicing against forms that leave as soon", "slicing-cost", "EffiSha's kernels: slicing against it, mean"),
    ("GLoop 9, 11", "furthest from a share in 200 ms", "shares-wfq", "wfq: furthest from its share, 200 ms"),
    ("", "the same in 1 s", "shares-wfq", "wfq: furthest from its share, 1000 ms"),
    ("GLoop 13", "servers' p99 beside a batch job, requests of 5 ms", "servers-batch", "Weir, requests of 5 ms: servers' p99 against without batch job"),
    ("", "the same, requests of 0.5 ms", "servers-batch", "Weir, requests of 0.5 ms: servers' p99 against without batch job"),
    ("", "what the batch job keeps of the rest, 0.5 ms", "servers-batch", "Weir, requests of 0.5 ms: the batch job's part of the rest"),
)  # fmt: skip
MODE_FREE = ("slicing-cost",)  # one process on the GPU


def rows_of(records, name):
    return {row["what"]: row for row in records[name]["rows"]} if name in records else {}


def beginning(rows, with_what):
    return next((row for what, row in rows.items() if what.startswith(with_what)), None)


def short(figure):
    """A ratio with three digits."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.3g}" if float(number[0]) >= 2 else f"{float(number[0]):.2f}", figure)


def latency(rows, way, low):
    """Median and p99 beside @low."""
    if f"{way}, {low}" in rows:
        return short(figure_of(rows[f"{way}, {low}"])).replace("p99 ", "")
    both = [rows.get(f"{way}, {low}, {what}") for what in ("median", "p99")]
    return f"**{', '.join(short(figure_of(row)) for row in both)}**" if all(both) else NONE


def table(head, rows):
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def tables(records):
    """The text between the two marks."""
    latencies = []
    for what, mps, timeslice, low in BURSTS:
        rows = {**rows_of(records, timeslice), **rows_of(records, mps)}
        latencies.append([what, *(latency(rows, way, low) for way in COLUMNS)])
    papers = []
    for figure, what, name, row in PAPERS:
        timeslice = name if name in MODE_FREE else f"{name}-{experiment.TIMESLICE}"
        both = (beginning(rows_of(records, one), row) for one in (name, timeslice))
        papers.append([figure, what, *(short(figure_of(one)) if one else NONE for one in both)])
    used = {name for _, *names, _ in BURSTS for name in names} | {f"{name}{more}" for _, _, name, _ in PAPERS for more in ("", "-timeslice")}
    gpus = sorted({records[name]["gpu"] for name in used if name in records})
    lines = table(["the low-priority pod runs", *COLUMNS], latencies)
    lines += ["", "The experiments of three papers that Weir builds on ([GLOSSARY.md](GLOSSARY.md#papers)), with Weir:", ""]
    lines += table(["figure", "shows", "MPS + Weir", "time-slicing + Weir"], papers)
    lines += ["", f"Measured on: {', '.join(gpus)}."]
    return "\n".join(lines) + "\n"


def updated(records):
    """The README with these tables."""
    text = README.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + tables(records) + END + after if after else text
