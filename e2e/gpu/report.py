"""Figures with their bounds and baselines, as a table and as a section of RESULTS.md."""

import datetime
import pathlib
import subprocess

import newest

PASS, FAIL, NOTE, NOT_RUN = "PASS", "FAIL", "", "not run"
CELL_MAX = 100  # in the table: an error message must not push the figures away
COLUMNS = ("part", "what", "figure", "bound", "verdict", "baselines of the same run")


class Report:
    """@simulated: times are those of a simulation, and bounds on them say nothing."""

    def __init__(self, name, simulated=False):
        self.name, self.simulated, self.rows = name, simulated, []

    def add(self, part, what, figure, bound="", verdict=NOTE, baselines=""):
        self.rows.append((part, what, figure, bound, verdict, baselines))
        print("  " + " | ".join(cell for cell in self.rows[-1] if cell), flush=True)

    def verdict(self, good, timed):
        return NOTE if timed and self.simulated else PASS if good else FAIL

    def at_most(self, part, what, value, limit, unit="x", baselines="", timed=True):
        verdict = self.verdict(value <= limit, timed)
        self.add(part, what, f"{value:.3f}{unit}", f"<= {limit:g}{unit}", verdict, baselines)

    def at_least(self, part, what, value, limit, unit=" %", baselines="", timed=True):
        verdict = self.verdict(value >= limit, timed)
        self.add(part, what, f"{value:.2f}{unit}", f">= {limit:g}{unit}", verdict, baselines)

    def holds(self, part, what, good, figure, baselines=""):
        self.add(part, what, figure, "must hold", PASS if good else FAIL, baselines)

    def failed(self, part, message):
        self.add(part, message, "", "", FAIL)

    def skipped(self, part, why):
        self.add(part, why, "", "", NOT_RUN)

    @property
    def good(self):
        return all(row[4] in (PASS, NOTE) for row in self.rows)

    def summary(self):
        count = {verdict: sum(row[4] == verdict for row in self.rows) for verdict in (PASS, FAIL, NOT_RUN)}
        return f"{self.name}: {count[PASS]} passed, {count[FAIL]} failed, {count[NOT_RUN]} not run"

    def table(self):
        rows = [COLUMNS, *([cell[:CELL_MAX] for cell in row] for row in self.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS) - 1)]
        lines = [
            "  ".join([cell.ljust(width) for cell, width in zip(row, widths)] + [row[-1]]).rstrip()
            for row in rows
        ]
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])

    def markdown(self, machine, command):
        lines = [
            f"## {datetime.date.today()}, {machine}",
            "",
            f"`{command}`",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
            *("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in self.rows),
            "",
            self.summary(),
            "",
        ]
        return "\n".join(lines)


def append(path, section):
    """To the file of all runs, whose first table then shows this one."""
    with open(path, "a") as file:
        file.write("\n" + section)
    newest.update(pathlib.Path(path))


def machine_name(simulated=False):
    if simulated:
        return "simulated GPU"
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=60)
    except OSError:
        return "no nvidia-smi"
    lines = done.stdout.strip().splitlines()
    return lines[0].replace(", ", ", driver ") if done.returncode == 0 and lines else "no GPU"
