#!/usr/bin/env python3
"""Opens, reads and locks that may wait for another process.

A process of a pod can take a lease on any file that it can open, or put a FIFO where a file is expected; an open of it
then waits. The product opens files with file_open() and file_read() (weir/file.h). Opens with O_PATH or O_DIRECTORY do
not wait, nor do those that make a new file (O_CREAT and O_EXCL). opens.txt lists the other calls, with reasons. Prints
each further call as FILE:LINE, and each line of opens.txt that fits no call; exits 1 if there are any.
"""
import os
import re
import subprocess
import sys

from walk import DEFINITION, NOISE

FOLDERS = ["transformer", "runtime-lib", "agent", "deviceplugin"]
ALLOWED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opens.txt")
OPENS = r"(?<!\w)(?P<open>open(?:64|at|at64)?|creat|f(?:re)?open(?:64)?|truncate|dlopen)"
READS = r"(?<![.>\w])(?P<read>readv?|fread|fgets|fgetc|getc|getline|getdelim|fscanf|recv(?:from|msg)?|accept4?)"
CALL = re.compile(rf"(?:{OPENS}|{READS}|(?<!\w)(?P<lock>flock|lockf))\s*\(|\b(?P<word>SYS_openat2|F_(?:OFD_)?SETLKW)\b")


def arguments(text, at):
    """The text up to the parenthesis that closes the one before `at`."""
    depth, end = 1, at
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at:end]


def waits(match, text):
    given = arguments(text, match.end())
    if match["open"]:
        return not re.search(r"\bO_(PATH|DIRECTORY)\b", given) and not ("O_CREAT" in given and "O_EXCL" in given)
    if match["read"]:
        return "MSG_DONTWAIT" not in given
    return bool(match["word"]) or not re.search(r"LOCK_NB|LOCK_UN|F_TLOCK|F_ULOCK", given)


def calls(path):
    """The calls of a file that may wait, as (line, function, callee)."""
    text = NOISE.sub(lambda m: "\n" * m[0].count("\n"), open(path).read())
    functions = [(m.end(), m[1]) for m in DEFINITION.finditer(text)]
    for match in CALL.finditer(text):
        inside = [name for at, name in functions if at <= match.start()]
        if inside and waits(match, text):
            yield text.count("\n", 0, match.start()) + 1, inside[-1], match[match.lastgroup]


def main():
    with open(ALLOWED) as lines:
        rows = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    allowed = {row[0] for row in rows if len(row) == 2}  # a row without a reason does not count
    names = subprocess.check_output(["git", "ls-files", *FOLDERS], text=True).split()
    used, bad = set(), 0
    for path in names:
        if not path.endswith((".c", ".h")) or "/tests/" in path or not os.path.exists(path):
            continue
        for line, function, callee in calls(path):
            row = f"{path}:{function}:{callee}"
            used.add(row)
            if row not in allowed:
                bad += 1
                print(f"{path}:{line}: {function}() may wait in {callee}: use weir/file.h, or say why not in opens.txt")
    for row in sorted(allowed - used):
        bad += 1
        print(f"{ALLOWED}: {row} fits no call")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
