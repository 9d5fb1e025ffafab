"""What the forms of a kernel take of an SM, as the compile service builds them: one object for each kernel, assembled by
ptxas."""

import concurrent.futures
import contextlib
import math
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import typing

from experiment import ROOT

sys.path.insert(0, str(ROOT / "e2e/foreign"))
import corpus  # noqa: E402

BUILD = ROOT / os.environ.get("B", "build")
TRANSFORM = BUILD / "bin/weir-transform"
PTXAS = corpus.CUDA / "bin/ptxas"
FORMS = ("native", "sliced", "persistent", "resumable")
PTXAS_SECONDS = 600  # of processor time: other work on the machine makes no difference

# An SM of compute capability 9.0.
WARP, WARPS, BLOCKS, SHARED, SHARED_OF_SYSTEM = 32, 64, 32, 228 << 10, 1 << 10
QUARTER_REGISTERS, REGISTERS_UNIT = 16384, 256  # an SM has four quarters; a warp gets registers in such units
USUAL_THREADS = 256  # of kernels that do not say how large their blocks are

HEADER, FORM = struct.Struct("<32I"), struct.Struct("<8I")  # weir/object.h


class Entry(typing.NamedTuple):
    """What ptxas says of a kernel."""

    registers: int
    shared: int
    spilled: int
    ms: float


class Build(typing.NamedTuple):
    """One build of a form. @reason: why there is none; @entry: None: ptxas was not asked, or refused."""

    form: str
    reason: str
    entry: Entry


class Kernel(typing.NamedTuple):
    part: str
    file: str
    name: str
    threads: int
    native: Entry
    builds: tuple
    error: str  # of weir-transform or ptxas


def entries(text):
    """The output of ptxas -v: kernel to Entry."""
    found = {}
    for part in re.split(r"Compiling entry function '", text)[1:]:
        name = part.partition("'")[0]
        figures = [re.search(what, part) for what in (r"Used (\d+) registers", r"(\d+) bytes smem", r"(\d+) bytes spill stores")]
        ms = re.search(r"Compile time = ([\d.]+) ms", part)
        found[name] = Entry(*(int(of[1]) if of else 0 for of in figures), float(ms[1]) if ms else 0)
    return found


def assemble(path):
    """(kernel to Entry, error)."""
    target = re.search(r"^\s*\.target\s+sm_90(\w?)", path.read_text(), re.M)
    argv = [PTXAS, "-v", f"-arch=sm_90{target[1] if target else ''}", "-o", "/dev/null", path]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (PTXAS_SECONDS, PTXAS_SECONDS))
        _, said = process.communicate()
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {}, f"ptxas takes more than {PTXAS_SECONDS} s of processor time, or too much memory"
    fatal = [line for line in said.splitlines() if "error" in line or "fatal" in line]
    return entries(said), "; ".join(fatal)[:300] if process.returncode else ""


def kernels_of(text):
    """Kernel to threads of its block, as far as the PTX says that."""
    found = {}
    for part in re.split(r"\.entry\s+", text)[1:]:
        head = part.partition("{")[0]
        limit = re.search(r"\.(?:reqntid|maxntid)\s+([\d\s,]+)", head)
        threads = math.prod(int(word) for word in limit[1].replace(",", " ").split()) if limit else USUAL_THREADS
        found[re.match(r"[\w$]+", head)[0]] = threads
    return found


def blocks(entry, threads):
    """How many blocks fit on an SM. Dynamic shared memory, which the launch says, is not counted."""
    warps = -(-threads // WARP)
    per_warp = max(1, -(-entry.registers * WARP // REGISTERS_UNIT)) * REGISTERS_UNIT
    shared = -(-(entry.shared + SHARED_OF_SYSTEM) // 128) * 128
    return min(BLOCKS, WARPS // warps, 4 * (QUARTER_REGISTERS // per_warp) // warps, SHARED // shared)


def verdicts(paths):
    """(part, form, eligible, reason) of all kernels of the files; all forms of a kernel in turn."""
    rows = []
    for path in paths:
        done = subprocess.run([TRANSFORM, "--list", path], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            _, form, eligible, *reason = line.split("\t")
            rows.append((path.parent.name, form, eligible == "yes", re.sub(r"^line \d+: ", "", " ".join(reason))))
    return rows


def name_at(data, at):
    return data[at : data.index(b"\0", at)].decode()


def read_object(data):
    """([(form, entry, reason)], PTX)."""
    header = HEADER.unpack_from(data)
    image, size, forms, count = header[6:10]
    builds = []
    for number in range(count):
        form, entry, reason, *_ = FORM.unpack_from(data, forms + number * FORM.size)
        builds.append((FORMS[form], name_at(data, entry) if entry else "", name_at(data, reason) if reason else ""))
    return builds, data[image : image + size].rstrip(b"\0")


def survey_kernel(path, name, threads, native, folder):
    """One kernel in all forms."""
    made = pathlib.Path(folder) / f"{path.parent.name}-{path.stem}-{abs(hash(name))}"
    argv = [TRANSFORM, "--object", "--kernel", name, "--registers", str(native.registers), path, made]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        return Kernel(path.parent.name, path.stem, name, threads, native, (), done.stderr.strip())
    builds, ptx = read_object(made.read_bytes())
    made.write_bytes(ptx)
    found, error = assemble(made) if ptx else ({}, "")
    made.unlink()
    builds = tuple(Build(form, reason, found.get(entry)) for form, entry, reason in builds)
    return Kernel(path.parent.name, path.stem, name, threads, native, builds, error)


def survey(paths, every=1):
    """Of all kernels of the PTX files, one of @every; how many there are; and what ptxas says of files that it refuses as
    they are, whose kernels are left out."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wanted, refused = [], {}
        for path, (found, error) in zip(paths, pool.map(assemble, paths)):
            if error:
                refused[f"{path.parent.name}/{path.name}"] = error
            threads = kernels_of(path.read_text())
            wanted += [(path, name, threads[name], native) for name, native in found.items() if name in threads]
        return list(pool.map(lambda job: survey_kernel(*job, folder), wanted[::every])), len(wanted), refused
