#!/usr/bin/env python3
"""Who may include whom: between folders, between the rooms of a folder, and no circle between modules.

A module is a pair x.c and x.h. rooms.txt lists the rooms of each folder, lowest first. Prints each
violation as FILE:LINE, then the largest circle and the fullest folder; exits 1 if anything is wrong.
"""
import collections
import os
import re
import subprocess
import sys

FOLDERS = ["transformer", "runtime-lib", "agent", "deviceplugin", "e2e"]  # each uses those before it
PRODUCT = FOLDERS[:4]
MAX_FLAT = 20
GRPC_ROOM = "deviceplugin/rpc/"  # the only files that may include gRPC's headers
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def tracked():
    names = subprocess.check_output(["git", "ls-files", *FOLDERS], text=True).split()
    return [n for n in names if n.endswith((".c", ".h")) and os.path.exists(n)]


def rooms():
    table = {}
    with open(os.path.join(os.path.dirname(__file__), "rooms.txt")) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                folder, names = line.split(":")
                table[folder] = names.split()
    return table


def module(path):
    return os.path.splitext(path)[0].replace("/include/weir/", "/")


def room(path, table):
    """The room of a file: its longest prefix that rooms.txt names, or None (tests, top of a folder)."""
    folder, _, rest = path.partition("/")
    named = [r for r in table.get(folder, []) if rest.startswith(r + "/")]
    return max(named, key=len, default=None)


def resolve(path, name, files):
    """The tracked file that `#include "name"` in `path` means, or None for one of the system's."""
    folder = path.partition("/")[0]
    candidates = [os.path.join(os.path.dirname(path), name), f"{folder}/{name}"]
    candidates += [f"{f}/include/{name}" for f in FOLDERS]
    return next((n for n in map(os.path.normpath, candidates) if n in files), None)


def circles(graph):
    """Strongly connected components of more than one module (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(graph[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for v in sorted(graph):
        if v not in index:
            visit(v)
    return [c for c in found if len(c) > 1]


def main():
    table, files = rooms(), set(tracked())
    bad, graph = [], collections.defaultdict(set)
    for path in sorted(files):
        folder = path.partition("/")[0]
        for number, line in enumerate(open(path, errors="replace"), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            if "grpc/" in match[2] and folder == "deviceplugin" and not path.startswith(GRPC_ROOM):
                bad.append(f"{path}:{number}: only {GRPC_ROOM} may include gRPC")
            target = resolve(path, match[2], files)
            if not target or target == path:
                continue
            theirs = target.partition("/")[0]
            if theirs != folder:
                if folder in PRODUCT and FOLDERS.index(theirs) > FOLDERS.index(folder):
                    bad.append(f"{path}:{number}: {folder} may not use {theirs}")
                elif folder in PRODUCT and "/tests/" not in path and "/include/weir/" not in target:
                    bad.append(f"{path}:{number}: {target} is not a public header of {theirs}")
                continue
            if "/tests/" in path:
                continue
            graph[module(path)].add(module(target)) if module(path) != module(target) else None
            graph[module(target)]
            ours, other = room(path, table), room(target, table)
            if ours and other and table[folder].index(other) > table[folder].index(ours):
                bad.append(f"{path}:{number}: room {ours} may not use {other}")
    rings = circles(graph)
    bad += ["include circle: " + " ".join(ring) for ring in rings]
    flat = collections.Counter(os.path.dirname(f) for f in files if f.endswith(".c") and "/tests" not in f)
    fullest, count = flat.most_common(1)[0]
    bad += [f"{name}: {n} C files flat, at most {MAX_FLAT}" for name, n in flat.items() if n > MAX_FLAT]
    print("\n".join(bad))
    print(f"largest include circle: {max(map(len, rings), default=1)}; fullest folder: {fullest}, {count} C files")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
