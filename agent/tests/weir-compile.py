#!/usr/bin/env python3
"""weir-compile without an agent, for all PTX that the build made with nvcc: each kernel in all forms that can leave, as
PTX and as machine code. Not for PTX that is in forms already. Prints TAP."""
import os
import pathlib
import re
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("B", "build")
MAGIC, VERSION, HEADER = 0x4C504D43, 1, 64
FORMS = 14  # all but native, as bits
ENTRY = re.compile(rb"^(?:\.visible |\.weak )?\.entry ([^ (]*)", re.M)
TARGET = re.compile(rb"^\.target sm_([0-9]*)", re.M)


def request(text, kernel, sm):
    """What weir-compile gets from the agent: struct weir_compile_file, the name and the image."""
    name = kernel + b"\0"
    head = struct.pack("<4I6Q", MAGIC, VERSION, sm, FORMS, HEADER, len(name), HEADER + len(name), len(text), 0, 0)
    return head + name + text


def run(asked, made, options):
    """True: the program succeeded. It reads its request from descriptor 3 and writes an object into descriptor 4."""
    program = str(BUILD / "bin/weir-compile")
    pid = os.posix_spawn(program, [program, *options], os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 3, asked, os.O_RDONLY, 0),
                                       (os.POSIX_SPAWN_OPEN, 4, made, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)])
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def is_object(made, begins):
    """An object, whose image begins so if it has one."""
    if made[:4] != b"EWOB":
        return False
    at, size = struct.unpack_from("<2I", made, 24)
    return size == 0 or made[at:at + 4] == begins


def is_good(folder, content):
    asked, made = folder / "request", folder / "object"
    asked.write_bytes(content)
    for begins, options in ((b".ver", []), (b"\x7fELF", ["--machine-code"])):
        good = run(asked, made, options)
        content = made.read_bytes()
        if not good or not is_object(content, begins):
            print("#", content[:200].decode(errors="replace"))
            return False
    return True


def main():
    failed = False
    inputs = sorted(p for p in (BUILD / "gen").rglob("*.ptx") if "reprint" not in p.parts and p.stem != "spin-forms")
    with tempfile.TemporaryDirectory(prefix="weir-compile-") as name:
        for path in inputs:
            text = path.read_bytes()
            sm = int(TARGET.search(text)[1])
            kernels = ENTRY.findall(text)
            good = sum(is_good(pathlib.Path(name), request(text, k, sm if sm > 75 else 90)) for k in kernels)
            failed |= good != len(kernels)
            print("not ok" if good != len(kernels) else "ok", "-", path.relative_to(BUILD / "gen"),
                  f"{good} of {len(kernels)} kernels", flush=True)
    if not inputs:
        print("not ok - there is no PTX")
    return failed or not inputs


sys.exit(main())
