#!/usr/bin/env python3
"""The newest run of each part that has bounds, as the table at the top of RESULTS.md.

    newest.py RESULTS.md            writes that table anew
    newest.py RESULTS.md --check    fails if it is not what it would be
"""

import collections
import pathlib
import re
import sys

BEGIN, END = "<!-- newest: written by e2e/gpu/newest.py -->", "<!-- end of newest -->"
# In this order; what a command is known by, and what it shows.
SCRIPTS = {
    "first-light.sh": "one GPU: a pod above beside one below, and what libweir costs",
    "forms.sh": "kernels that leave while they run",
    "sched.sh": "who runs next: the papers' experiments",
    "cluster.sh": "pods on a real kubelet with real GPUs",
    "make bench": "the agent and the device plugin, no GPU",
}
ALIASES = {"node.py": "make bench"}
MUST_HOLD = "must hold"

Row = collections.namedtuple("Row", "what figure bound verdict")


class Run:
    """What one command showed: where that stands, of which commit, and its rows with bounds by part."""

    def __init__(self, script, date, section):
        self.script, self.date, self.section, self.commit = script, date, section, ""
        self.parts = collections.defaultdict(list)


def anchor(title, seen):
    """Of a heading, as GitHub makes it."""
    slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    seen[slug] += 1
    return slug if seen[slug] == 1 else f"{slug}-{seen[slug] - 1}"


def script_of(line):
    """That a command names, if a line begins with one."""
    command = re.match(r"`([^`]+)`", line)
    for name in [*SCRIPTS, *ALIASES] if command else []:
        if name in command[1]:
            return ALIASES.get(name, name)
    return None


def row_of(line):
    """(part, Row) of a line of a table that has a verdict on a bound."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if not line.startswith("|") or len(cells) < 5 or not cells[3] or cells[4] not in ("PASS", "FAIL"):
        return None
    return cells[0], Row(*cells[1:5])


def commit_of(line):
    found = None if line.startswith("|") else re.search(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7}\b", line)
    return found[0] if found else ""


def read(lines):
    """All runs, oldest first. A commit is named with the command, or else below its table."""
    runs, run, seen = [], Run(None, "", ""), collections.Counter()
    for line in lines:
        if line.startswith("## "):
            run = Run(None, line[3:13], anchor(line[3:].strip(), seen))
        elif script_of(line):
            run = Run(script_of(line), run.date, run.section)
            runs.append(run)
        row = row_of(line)
        if row:
            run.parts[row[0]].append(row[1])
        run.commit = run.commit or commit_of(line)
    return runs


def held(rows):
    """Rows that are true or not become one."""
    must = [row for row in rows if row.bound == MUST_HOLD]
    good = sum(row.verdict == "PASS" for row in must)
    others = [row for row in rows if row.bound != MUST_HOLD]
    if must:
        verdict = "PASS" if good == len(must) else "FAIL"
        others.append(Row("what must hold", f"{good} of {len(must)}", MUST_HOLD, verdict))
    return others


def table(runs, script):
    newest = {part: run for run in runs if run.script == script for part in run.parts}
    lines = ["", f"**{script}**: {SCRIPTS[script]}", "", "| part | what | figure | bound | | run |", "|" + "---|" * 6]
    for part, run in sorted(newest.items()):
        link = f"[{run.date}](#{run.section}) {run.commit}".strip()
        for row in held(run.parts[part]):
            verdict = "**FAIL**" if row.verdict == "FAIL" else row.verdict
            lines.append(f"| {part} | {row.what} | {row.figure} | {row.bound} | {verdict} | {link} |")
    return lines if newest else []


def renewed(text):
    """The text with the table that its runs make."""
    head, behind = text.split(BEGIN, 1)[0], text.split(END, 1)[1]
    runs = read(behind.splitlines())
    lines = [line for script in SCRIPTS for line in table(runs, script)]
    return head + "\n".join([BEGIN, *lines, "", END]) + behind


def update(path):
    """Of a file that has the marks."""
    text = path.read_text()
    if BEGIN in text and END in text:
        path.write_text(renewed(text))


def main():
    path = pathlib.Path(sys.argv[1])
    if "--check" not in sys.argv[2:]:
        update(path)
        return 0
    text = path.read_text()
    if renewed(text) != text:
        print(f"{path}: the table at the top is not that of the runs below; e2e/gpu/newest.py {path} writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
