#!/usr/bin/env python3
"""The tables of deploy/docs/security.md say what is there.

Each test that a table names exists: a path of the tree, an attack of e2e/robustness/hostile, or a word of some test. In
the table by object no cell is empty, and each names a test or has one of the words that are explained above it."""
import pathlib
import re
import subprocess
import sys

PAGE = "deploy/docs/security.md"
ATTACKS = "e2e/robustness/hostile/main.c"
TESTS = ("*/tests/*", "e2e/*", "*.mk", ":!e2e/lint/*", ":!e2e/bench/results/*", ":!*.md")


def tables(text):
    """(header, rows of cells, number of the first line) of each table."""
    lines = text.splitlines()
    begin = [i for i, line in enumerate(lines) if line.startswith("|") and (i == 0 or not lines[i - 1].startswith("|"))]
    for i in begin:
        rows = []
        for line in lines[i:]:
            if not line.startswith("|"):
                break
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        yield rows[0], rows[2:], i + 1


def is_there(name, attacks):
    if name.startswith("hostile "):
        return name.split()[1] in attacks
    if pathlib.Path(name).exists():
        return True
    return subprocess.run(["git", "grep", "-qw", "--", name, "--", *TESTS], check=False).returncode == 0


def problems(text, attacks):
    words, known = set(), {}
    for header, rows, line in tables(text):
        if header[0] == "word":
            words = {row[0] for row in rows}
        by_object = header[0] == "object"
        for at, row in enumerate(rows, line + 2):
            if len(row) != len(header):
                yield f"{PAGE}:{at}: {len(row)} cells, not {len(header)}"
                continue
            cells = row[1:] if by_object else [cell for name, cell in zip(header, row) if name == "shown by"]
            for name, cell in zip(header[1:], cells):
                names = [one for one in re.findall(r"`([^`]*)`", cell) if not one.startswith("/")]
                has_word = any(re.search(rf"\b{word}\b", cell) for word in words)
                if by_object and not names and not has_word:
                    yield f"{PAGE}:{at}: '{name}' names no test, and has no word that says why there is none"
                for one in names:
                    if one not in known:
                        known[one] = is_there(one, attacks)
                    if not known[one]:
                        yield f"{PAGE}:{at}: there is no test {one}"


def main():
    attacks = set(re.findall(r'\{"(\w+)", ', pathlib.Path(ATTACKS).read_text()))
    found = list(problems(pathlib.Path(PAGE).read_text(), attacks))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
