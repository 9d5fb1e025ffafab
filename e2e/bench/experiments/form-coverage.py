import subprocess

import forms
from report import at_least

SHOWS = "which kernels can have each form, and why others cannot"
PAPER = ""
BOUNDS = {"persistent": at_least(95, timed=False), "resumable": at_least(80, timed=False)}
BASELINES = ()
NEEDS = ("gpu",)
SIMULATED = True


def verdicts(bench):
    """(kernel, form, eligible, reason) of all kernels."""
    rows = []
    for path in forms.modules(bench):
        argv = [bench.node.program("weir-transform"), "--list", str(path)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
        for line in done.stdout.splitlines():
            kernel, form, eligible, *reason = line.split("\t")
            rows.append((f"{path.stem}: {kernel}", form, eligible == "yes", " ".join(reason)))
    return rows


def run(bench):
    rows = verdicts(bench)
    for form, bound in BOUNDS.items():
        of = [row for row in rows if row[1] == form]
        good = sum(row[2] for row in of)
        bench.report.judge(f"kernels that can be {form}", 100 * good / len(of), bound, f"{good} of {len(of)}")
        for reason in sorted({row[3] for row in of if not row[2]}):
            refused = [row[0] for row in of if not row[2] and row[3] == reason]
            bench.report.add(f"not {form}: {reason}", f"{len(refused)} kernels", baselines=", ".join(refused))
