"""The newest JSON of each experiment, and RESULTS.md, which is made of them."""

import json
import shutil
import textwrap

import experiment
import readme
from report import FAIL, MUST_HOLD, NOT_RUN, NOTE, PASS, figure_of

LINES_MAX, WIDTH = 200, 120
NOTES_MAX = 3  # rows that are shown of an experiment without bounds
FIELDS = {"experiment": str, "date": str, "commit": str, "command": str, "gpu": str, "driver": str, "rows": list, "cut": str}
ROW_FIELDS = {"what": str, "figure": (str, int, float), "unit": str, "bound": str, "verdict": str, "baselines": str}
VERDICTS = (PASS, FAIL, NOTE, NOT_RUN)
MPS_MARK = "†"
MPS_AS_BASELINE = ("-timeslice", "-per-level", "hidden-switch")  # ends of names: Weir is not under one server there
MPS_NOTE = f"""
{MPS_MARK} With clients of one MPS server, which is one fault domain: a client that is killed in a long kernel takes the
work of all others with it, that of higher levels too.
"""
HEAD = """# Results

The newest run of each experiment, made by `e2e/bench/run --report` from `results/*.json`: its figures, with their
bounds in brackets. Bounds are for an H200; where a run names an H100, none of its figures are of an H200. The JSONs
also have the figures without a bound and the baselines of the same run. Older runs, with remarks on them, stand in the
history of this file in git. Ratios are against a baseline of the same run. A command of before experiments had names
(`sched.sh --only a`) stands as it was then: `git show COMMIT:e2e/bench/README.md` explains it.
"""


def load():
    """Name to record of all that are kept."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(experiment.RESULTS.glob("*.json"))}


def find_problems(name, record, experiments):
    """What is wrong with a JSON, as text."""
    for field, kind in FIELDS.items():
        if not isinstance(record.get(field), kind):
            yield f"results/{name}.json: {field} is missing or of another type"
            return
    if record["experiment"] != name or name not in experiments:
        yield f"results/{name}.json: there is no experiment of this name"
    if not record["rows"]:
        yield f"results/{name}.json: no rows"
    for row in record["rows"]:
        bad = [field for field, kind in ROW_FIELDS.items() if not isinstance(row.get(field), kind)]
        if bad or row["verdict"] not in VERDICTS:
            yield f"results/{name}.json: '{row.get('what')}': {', '.join(bad) or 'verdict'}"


def is_shown(row, printed):
    judged = row["verdict"] in (FAIL, NOT_RUN) or (row["verdict"] == PASS and row["bound"] != MUST_HOLD)
    return judged or row["what"].startswith(printed)


def shown_rows(rows, printed):
    """(what, figure, bound, verdict) of each line in RESULTS.md. What must hold and does is one line. @printed: how rows
    begin that are shown although they have no bound."""
    for row in rows:
        if is_shown(row, printed):
            yield row["what"], figure_of(row), row["bound"], row["verdict"]
    must = [row for row in rows if row["bound"] == MUST_HOLD]
    if must:
        good = sum(row["verdict"] == PASS for row in must)
        yield "what must hold", f"{good} of {len(must)}", MUST_HOLD, PASS if good == len(must) else FAIL


def under_one_server(record, what, experiments):
    name = record["experiment"]
    if name.endswith(MPS_AS_BASELINE):
        return False
    needs = experiments[name].needs if name in experiments else ()
    return "mps" in needs or "mps" in name or "MPS" in what


def told(what, figure, bound, verdict):
    text = ": ".join(filter(None, (what, figure))) + (f" ({bound})" if bound and bound != MUST_HOLD else "")
    return f"**{verdict}** {text}" if verdict in (FAIL, NOT_RUN) else text


def line_of(record, experiments, gpu):
    """A line of a table, with all that has a bound. @gpu: whether it says on which."""
    of = experiments.get(record["experiment"])
    rows = list(shown_rows(record["rows"], of.printed if of else ()))
    rows = rows or [(row["what"], figure_of(row), "", "") for row in record["rows"][:NOTES_MAX]]
    command = record["command"] if record["command"].startswith("(") else f"`{record['command']}`"
    run = " ".join(filter(None, (record["date"], record["commit"], command)))
    run += f" on {record['gpu']}" if gpu else ""
    run += f"; cut: {record['cut']}" if record["cut"] else ""
    marked = any(under_one_server(record, what, experiments) for what, *_ in rows)
    name = record["experiment"] + (f" {MPS_MARK}" if marked else "")
    cells = [cell.replace("|", "/") for cell in (name, "; ".join(told(*row) for row in rows), run)]
    return "| " + " | ".join(cells) + " |"


def text_of(records):
    """All of RESULTS.md."""
    lines, experiments = [HEAD + MPS_NOTE], experiment.load_all()
    for name, of in experiment.sets().items():
        own = [one for one in of["experiments"] if experiments[one].home == name]
        here = [records[one] for one in own if one in records]
        missing = [one for one in own if one not in records]
        lines.append(f"## {name}: {of['shows']}\n")
        machines = dict.fromkeys(f"{r['gpu']}, driver {r['driver']}" if r["driver"] else r["gpu"] for r in here)
        if here:
            lines += [f"| experiment | figures | run on {'; '.join(machines)} |", "|" + "---|" * 3]
            lines += [line_of(record, experiments, len(machines) > 1) for record in here]
        if missing:
            lines += [""] * bool(here) + textwrap.wrap(f"No result is kept of: {', '.join(missing)}.", WIDTH, break_on_hyphens=False)
        lines.append("")
    return "\n".join(lines)


def write():
    (experiment.BENCH / "RESULTS.md").write_text(text_of(load()))
    if readme.README.exists():
        readme.README.write_text(readme.updated(load()))
    return check({})


def check(experiments):
    """Prints what is wrong; whether all is well. @experiments: all that there are, or none."""
    records = load()
    problems = [text for name, record in records.items() for text in find_problems(name, record, experiments or {name: None})]
    text = "" if problems else text_of(records)
    if not problems and text != (experiment.BENCH / "RESULTS.md").read_text():
        problems.append("RESULTS.md is not what results/*.json make; e2e/bench/run --report writes it")
    if not problems and readme.README.exists() and readme.README.read_text() != readme.updated(records):
        problems.append("README.md has other tables than results/*.json make; e2e/bench/run --report writes them")
    if text.count("\n") > LINES_MAX:
        problems.append(f"RESULTS.md has {text.count(chr(10))} lines, more than {LINES_MAX}")
    print("\n".join(problems), end="\n" if problems else "")
    return not problems


def adopt(folder):
    """Takes what a run left in @folder as the newest results."""
    for path in sorted(folder.glob("*.json")):
        if json.loads(path.read_text())["gpu"] != "simulated GPU":
            shutil.copy(path, experiment.RESULTS / path.name)
    for path in folder.glob("plots/*.svg"):
        shutil.copy(path, experiment.BENCH / "plots" / path.name)
