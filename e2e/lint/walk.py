#!/usr/bin/env python3
"""How far a reader walks through the code to understand one path.

Follows a path as a reader does: from its first function down, each function that is called is read where it is first
called, in the order of the text, until the function that ends the path has been read. Prints how many files she
passes, and how often she turns back: comes into a file that she had left, to read on in it or to read another function
of it. She opens calls DEPTH deep; below that the function's name has to do. A path has several first functions where an
event or a pointer leads from one to the next. walks.txt names the paths, what they were in 0.1.0, and the functions
(failures) that a reader does not open. Fails if a walk does not arrive. Only .c files of the folder count, tests apart.

    walk.py [--verbose] [WALK...]
"""
import argparse
import os
import re
import subprocess
import sys

DEPTH = 4
HERE = os.path.dirname(os.path.abspath(__file__))
# A definition at the start of a line, as clang-format leaves it, up to the brace that opens its body.
DEFINITION = re.compile(r"^(?!typedef|struct [\w ]+\{|enum|union)(?:[A-Za-z_][\w \t*]*?)\b(\w+)\([^;{}]*?\)\s*\n\{", re.M)
CALL = re.compile(r"(?<![.>\w])([A-Za-z_]\w*)\(")
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|^\s*#[^\n]*', re.S | re.M)


class Function:
    def __init__(self, name, path, body, static):
        self.name, self.path, self.body, self.static = name, path, body, static


def read(folder):
    """All functions of a folder by name; a name may have several, static ones in files of their own."""
    table = {}
    names = subprocess.check_output(["git", "ls-files", folder], text=True).split()
    for path in names:
        if not path.endswith(".c") or "/tests/" in path or not os.path.exists(path):
            continue
        text = NOISE.sub(lambda m: "\n" * m[0].count("\n"), open(path).read())
        for match in DEFINITION.finditer(text):
            end = text.find("\n}", match.end())
            body = text[match.end() : end if end >= 0 else None]
            table.setdefault(match[1], []).append(Function(match[1], path, body, "static" in match[0].split("(")[0]))
    return table


def find(table, name, path):
    """The function that `name` means in the file `path`, or None."""
    candidates = table.get(name, [])
    return next((f for f in candidates if f.path == path), next((f for f in candidates if not f.static), None))


class Walk:
    def __init__(self, table, end, skip):
        self.table, self.end, self.skip = table, end, skip
        self.read, self.files, self.back, self.at, self.done, self.trail = set(), [], 0, None, False, []

    def go_to(self, path):
        if path == self.at:
            return
        if path in self.files:
            self.back += 1
        else:
            self.files.append(path)
        self.at = path

    def visit(self, function, depth=0):
        if (function.name, function.path) in self.read or function.name in self.skip or depth > DEPTH:
            return
        self.read.add((function.name, function.path))
        self.go_to(function.path)
        self.trail.append("  " * depth + f"{function.name} ({function.path})")
        for word in CALL.findall(function.body):
            target = find(self.table, word, function.path)
            if target and target is not function:
                self.visit(target, depth + 1)
                if self.done:
                    return
                self.go_to(function.path)
        self.done = self.done or function.name == self.end


def walks():
    """walks.txt: NAME FOLDER FILES/TURNS FILE:FIRST[+DEPTH][,FILE:FIRST...] END [-FUNCTION...]"""
    with open(os.path.join(HERE, "walks.txt")) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, folder, was, first, end, *skip = line.split()
                yield name, folder, was.split("/"), first.split(","), end, {s[1:] for s in skip}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("walk", nargs="*")
    options = parser.parse_args()
    complete = True
    for name, folder, was, first, end, skip in walks():
        if options.walk and name not in options.walk:
            continue
        table = read(folder)
        walk = Walk(table, end, skip)
        for root in first:
            if not walk.done:
                root, _, depth = root.partition("+")
                walk.visit(find(table, *root.split(":")[::-1]), int(depth or 0))
        if options.verbose:
            print("\n".join(walk.trail))
        print(f"{name}: {len(walk.files)} files (0.1.0: {was[0]}), {walk.back} turns back ({was[1]}), "
              f"{len(walk.read)} functions" + ("" if walk.done else f"; {end} NOT REACHED"))
        complete = complete and walk.done
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
