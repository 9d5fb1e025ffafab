#!/usr/bin/env python3
"""Makes PTX of kernels that others wrote: instances of CUB and Thrust (from the toolkit), CUTLASS's examples, the kernels
of ggml, and Triton's output. The sources come as packages of PyPI into a cache; this repository keeps none of them. Kernels of
this folder are added: those of dependent.cu, as inference engines write them.

    corpus.py FOLDER [PART...]     writes FOLDER/PART/NAME.ptx; what is there already stays. Without PART: all parts.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CUDA = pathlib.Path(os.environ.get("CUDA_HOME", HERE.parents[1] / "build/cuda")).absolute()
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "weir/foreign"
JOBS = os.cpu_count()
HOPPER, HOPPER_ONLY = "-arch=compute_90", "-arch=compute_90a"  # the latter: with instructions that no other GPU has
PACKAGES = {
    "ggml": ("llama-cpp-python==0.3.36", "--no-binary", ":all:"),
    "cutlass": ("nvidia-cutlass==4.2.0.0", "--only-binary", ":all:"),
    "curand": ("nvidia-curand==10.4.0.35", "--only-binary", ":all:"),
    "triton": ("triton==3.9.0", "--only-binary", ":all:"),
}

# Of the many files with instances of the same templates, these few.
GGML_INSTANCES = (
    "fattn-mma-f16-instance-ncols1_8-ncols2_1",
    "fattn-mma-f16-instance-ncols1_1-ncols2_16",
    "fattn-tile-instance-dkq128-dv128",
    "fattn-vec-instance-f16-f16",
    "fattn-vec-instance-q8_0-f16",
    "mmf-instance-ncols_4",
    "mmq-instance-q4_0",
    "mmq-instance-q6_k",
)
GGML_LEFT_OUT = ("fattn", "ggml-cuda", "mmvf", "mmvq")  # no kernels, or hundreds of instances

# Folders of CUTLASS's examples, by their numbers; for Hopper: those that need sm_90a.
CUTLASS_EXAMPLES = (
    *("00", "05", "06", "08", "09", "12", "13", "14", "15", "16", "17", "18", "23", "24", "25", "26", "27", "28"),
    *("31", "32", "33", "34", "35", "36", "37", "38", "39", "41", "42", "43", "45", "46", "47", "58", "59"),
)
CUTLASS_HOPPER = ("48", "54")


def run(argv, **options):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise RuntimeError(f"{' '.join(str(word) for word in argv[:3])} ...: {said}")


def unpacked(name):
    """The folder with a package's files."""
    folder, package = CACHE / name, CACHE / f"{name}.package"
    if not folder.exists():
        requirement, *options = PACKAGES[name]
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"]
        run([*pip, *options, "-d", package, requirement])
        part = CACHE / f"{name}.part"
        part.mkdir(exist_ok=True)
        for file in package.iterdir():
            run(["tar", "-xzf", file, "-C", part] if file.suffix == ".gz" else ["unzip", "-qo", file, "-d", part])
            file.unlink()
        part.rename(folder)
    return folder


def compile_ptx(source, target, *options):
    """PTX of a CUDA source. @options: the architecture and others."""
    if target.exists():
        return
    part = target.with_suffix(".part")
    run([CUDA / "bin/nvcc", "-ptx", "-std=c++17", "-w", *options, "-o", part, source])
    part.rename(target)


def cub(folder):
    yield HERE / "cub.cu", folder / "cub.ptx", HOPPER


def thrust(folder):
    yield HERE / "thrust.cu", folder / "thrust.ptx", HOPPER


def dependent(folder):
    yield HERE / "dependent.cu", folder / "dependent.ptx", HOPPER


def ggml(folder):
    root = next(unpacked("ggml").glob("*/vendor/llama.cpp/ggml"))
    sources = root / "src/ggml-cuda"
    files = [file for file in sorted(sources.glob("*.cu")) if file.stem not in GGML_LEFT_OUT]
    files = [file for file in files if "cublas" not in file.read_text()]
    files += [sources / "template-instances" / f"{name}.cu" for name in GGML_INSTANCES]
    headers = [f"-I{path}" for path in (HERE / "stub", root / "include", root / "src", sources)]
    for file in files:
        yield file, folder / f"{file.stem}.ptx", HOPPER, "--extended-lambda", *headers


def cutlass(folder):
    root = unpacked("cutlass") / "cutlass_library/source"
    random = next(unpacked("curand").glob("**/curand_kernel.h")).parent
    folders = (root / "include", root / "tools/util/include", root / "examples/common", random)
    headers = [f"-I{path}" for path in folders]
    for example in (*CUTLASS_EXAMPLES, *CUTLASS_HOPPER):
        for file in sorted(root.glob(f"examples/{example}_*/*.cu"))[:2]:
            target = HOPPER_ONLY if example in CUTLASS_HOPPER else HOPPER
            yield file, folder / f"{file.stem}.ptx", target, "--expt-relaxed-constexpr", f"-I{file.parent}", *headers


PARTS = {"dependent": dependent, "cub": cub, "thrust": thrust, "ggml": ggml, "cutlass": cutlass}


def compile_part(part, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for done in [pool.submit(compile_ptx, *job) for job in PARTS[part](folder)]:
            done.result()


def make(folder, parts=()):
    """The PTX files of the parts, made where they are missing."""
    for part in parts or ALL:
        if part in PARTS:
            compile_part(part, folder / part)
        elif not (folder / part).exists():
            env = dict(os.environ, PYTHONPATH=str(unpacked("triton")), TRITON_CACHE_DIR=str(CACHE / "triton-cache"))
            run([sys.executable, HERE / "triton_kernels.py", folder / f"{part}.part"], env=env)
            (folder / f"{part}.part").rename(folder / part)
    return sorted(file for part in parts or ALL for file in (folder / part).glob("*.ptx"))


ALL = (*PARTS, "triton")

if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]), sys.argv[2:])
