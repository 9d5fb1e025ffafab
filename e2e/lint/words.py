#!/usr/bin/env python3
"""Words that were given up (retired.txt), and lines of Markdown that are too wide to read.

Prints FILE:LINE and what is wrong; exits 1 if anything is. A Markdown line may be wider than 120 columns only in a
table, in a code block, or around a URL.
"""
import os
import re
import subprocess
import sys

WIDTH = 120
HERE = os.path.dirname(os.path.abspath(__file__))
READ = (".c", ".h", ".cu", ".cuh", ".S", ".def", ".py", ".sh", ".mk", ".md", ".yaml", ".tpl", ".txt", ".json", ".go", "Makefile")
# History, data, and what has to name the old words.
EXEMPT = ("CHANGELOG.md", "e2e/lint/", "LICENSE", "/corpus/", "/golden/", "/results/", "go.sum")
ALLOWED = re.compile(r"deprecat|0\.1\.0|alias|renamed|old name|language: keep", re.I)


def retired():
    with open(os.path.join(HERE, "retired.txt")) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                where, pattern, better = re.split(r"\s{2,}", line.strip())
                yield "" if where == "*" else where + "/", re.compile(pattern), better


def wide(path, lines):
    fenced = False
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith("```")
        text = line.rstrip("\n")
        if len(text) > WIDTH and not (fenced or text.startswith("    ") or text.lstrip().startswith("|") or "://" in text):
            yield f"{path}:{number}: {len(text)} columns, at most {WIDTH}"


def main():
    words = list(retired())
    bad = []
    for path in subprocess.check_output(["git", "ls-files"], text=True).split("\n"):
        if not path.endswith(READ) or not os.path.isfile(path):
            continue
        lines = open(path, errors="replace").readlines()
        if path.endswith(".md"):
            bad += wide(path, lines)
        if any(e in path for e in EXEMPT):
            continue
        for number, line in enumerate(lines, 1):
            for where, pattern, better in words:
                match = path.startswith(where) and pattern.search(line)
                if match and not ALLOWED.search(line):
                    bad.append(f"{path}:{number}: '{match[0]}' is retired: {better}")
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
