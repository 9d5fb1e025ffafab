"""The figures of one experiment, with bounds and verdicts, and the JSON that keeps them."""

import contextlib
import datetime
import json
import subprocess
import time
import traceback
import typing

PASS, FAIL, NOTE, NOT_RUN = "PASS", "FAIL", "", "not run"
MUST_HOLD = "must hold"
UNFINISHED = "it did not end"
NEAR = 0.95
CELL_MAX = 100  # characters of a printed cell: an error message must not push the figures away
COLUMNS = ("experiment", "what", "figure", "bound", "verdict", "baselines of the same run")


class Bound(typing.NamedTuple):
    """@timed: a time or a rate, which says nothing on the simulated GPU."""

    limit: float
    unit: str
    is_upper: bool
    timed: bool = True

    def __str__(self):
        return f"{'<=' if self.is_upper else '>='} {self.limit:g}{self.unit}"

    def times(self, factor):
        return self._replace(limit=self.limit * factor)

    def reachable(self, ideal):
        """This bound, or NEAR of what an ideal can reach, if that is less. @ideal: a figure; None: it reaches all."""
        if ideal is None:
            return self
        near = ideal / NEAR if self.is_upper else ideal * NEAR
        return self._replace(limit=round(max(self.limit, near) if self.is_upper else min(self.limit, near), 4))

    def allows(self, value):
        return value <= self.limit if self.is_upper else value >= self.limit


def at_most(limit, unit="x"):
    return Bound(limit, unit, True)


def at_least(limit, unit=" %", timed=True):
    return Bound(limit, unit, False, timed)


class Report:
    """Rows as they stand in the JSON: what, figure, unit, bound, verdict, baselines. @keep: is called with this report for each row.
    @over: the experiment has done what it wanted to."""

    def __init__(self, experiment, simulated=False, keep=lambda _: None):
        self.experiment, self.simulated, self.rows, self.cuts = experiment, simulated, [], []
        self.began, self.keep, self.over = time.monotonic(), keep, False

    def add(self, what, figure, unit="", bound="", verdict=NOTE, baselines=""):
        """A row without a bound, unless one of the methods below fills it in."""
        row = {"what": what, "figure": figure, "unit": unit, "bound": str(bound), "verdict": verdict, "baselines": baselines}
        self.rows.append(row)
        print("  " + " | ".join(cell for cell in cells(self.experiment, row)[1:] if cell), flush=True)
        self.keep(self)

    def judge(self, what, value, bound, baselines=""):
        good = bound.allows(value)
        verdict = NOTE if bound.timed and self.simulated else PASS if good else FAIL
        self.add(what, round(value, 3 if bound.is_upper else 2), bound.unit, bound, verdict, baselines)

    def lacks(self, what, bound, why):
        """There is no figure to judge."""
        self.add(what, why, "", bound, NOTE if bound.timed and self.simulated else NOT_RUN)

    def holds(self, what, good, figure, baselines=""):
        """Something that is true or not, on the simulated GPU as well."""
        self.add(what, figure, "", MUST_HOLD, PASS if good else FAIL, baselines)

    def failed(self, message):
        self.add(message, "", verdict=FAIL)

    @contextlib.contextmanager
    def guard(self, part=""):
        """What fails in here is a row, and what comes behind it goes on."""
        try:
            yield
        except Exception as error:
            traceback.print_exc()
            self.failed(": ".join(filter(None, (part, f"{type(error).__name__}: {error}"))))

    def skipped(self, why):
        self.add(why, "", verdict=NOT_RUN)

    def cut(self, what):
        """The experiment did only this part of its work, for want of time."""
        self.cuts.append(what)

    def count(self, verdict):
        return sum(row["verdict"] == verdict for row in self.rows)

    @property
    def good(self):
        return not self.count(FAIL) and not self.count(NOT_RUN)

    def record(self, commit, command, machine):
        """What is kept as JSON. @machine: (GPU, driver)."""
        gpu, driver = machine
        return {
            "experiment": self.experiment,
            "date": str(datetime.date.today()),
            "commit": commit,
            "command": command,
            "gpu": gpu,
            "driver": driver,
            "seconds": round(time.monotonic() - self.began),
            "rows": self.rows,
            "cut": "; ".join([*self.cuts, *([] if self.over else [UNFINISHED])]),
        }


def dump(record):
    """The record as JSON with a row a line, so that two runs can be compared by diff."""
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in record["rows"])
    head = ",\n".join(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in record.items() if key != "rows")
    return f'{{\n{head},\n "rows": [\n{rows}\n ]\n}}\n'


def figure_of(row):
    """The figure with its unit, as text."""
    figure = row["figure"]
    return (figure if isinstance(figure, str) else f"{figure:g}") + row["unit"]


def cells(experiment, row):
    return [experiment, row["what"], figure_of(row), row["bound"], row["verdict"], row["baselines"]]


def table(reports):
    """All rows of all experiments, as text in columns."""
    rows = [[cell[:CELL_MAX] for cell in cells(of.experiment, row)] for of in reports for row in of.rows]
    rows.insert(0, list(COLUMNS))
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS) - 1)]
    lines = ["  ".join([cell.ljust(width) for cell, width in zip(row, widths)] + [row[-1]]).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def summary(reports):
    count = {verdict: sum(of.count(verdict) for of in reports) for verdict in (PASS, FAIL, NOT_RUN)}
    return f"bench: {count[PASS]} passed, {count[FAIL]} failed, {count[NOT_RUN]} not run"


def machine_of(simulated=False):
    """(GPU, driver) of this machine."""
    if simulated:
        return "simulated GPU", ""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return "no GPU", ""
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return "no GPU", ""
    gpu, _, driver = lines[0].partition(", ")
    return (f"{len(lines)} x {gpu}" if len(lines) > 1 else gpu), driver
