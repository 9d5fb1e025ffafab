#!/usr/bin/env python3
"""Everything that must be seen on a real GPU, part by part. Called by first-light.sh."""

import argparse
import json
import os
import pathlib
import sys
import tarfile
import time
import traceback

import cost
import node
import report
import sharing
import truth

PARTS = {
    "w": ("our workloads, checked", truth.part_w),
    "c": ("bursts beside torch.mm, MPS", sharing.part_c),
    "d": ("bursts beside a training step, MPS", sharing.part_d),
    "h": ("applications bit for bit", truth.part_h),
    "j": ("agent killed under load", truth.part_j),
    "e": ("bursts beside both, time-slicing", sharing.part_e),
    "g": ("cost of a launch", cost.part_g),
    "f": ("throughput with nobody else", cost.part_f),
}


def parse():
    parser = argparse.ArgumentParser(prog="first-light.sh", description=__doc__)
    parser.add_argument("--bundle", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas: " + " ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=4, help="of one measurement")
    parser.add_argument("--deadline", type=float, default=540, help="start no part after so many seconds")
    parser.add_argument("--results", type=pathlib.Path, help="append the table to this file")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    options = parser.parse_args()
    options.parts = options.only.split(",")
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"--only: no part '{part}'")
    return options


def run_part(bench, part):
    try:
        PARTS[part][1](bench)
    except Exception as error:  # one part must not take the others with it
        traceback.print_exc()
        bench.report.failed(part, f"{type(error).__name__}: {error}")


def run_parts(bench, options):
    begin = time.monotonic()
    bench.calibrate()
    print(f"first-light: {sharing.KERNEL_US} us are {bench.iterations} iterations", flush=True)
    for part in options.parts:
        elapsed = time.monotonic() - begin
        if elapsed > options.deadline:
            bench.report.skipped(part, f"no time left after {elapsed:.0f} s")
            continue
        print(f"\n{part}: {PARTS[part][0]} ({elapsed:.0f} s so far)", flush=True)
        run_part(bench, part)


def keep_details(bench, out, section):
    """For whoever looks after it: figures, table, the section for RESULTS.md, and what every program
    said."""
    out = pathlib.Path(out)
    (out / "first-light.json").write_text(json.dumps(bench.report.rows, indent=1))
    (out / "first-light.txt").write_text(bench.report.table() + "\n")
    (out / "first-light.md").write_text(section)
    with tarfile.open(out / "logs.tar.gz", "w:gz") as tar:
        for path in sorted(bench.node.folder.rglob("*")):
            if path.name in ("stdout", "stderr") or path.suffix == ".log":
                tar.add(path, path.relative_to(bench.node.folder))


def main():
    options = parse()
    if options.dry_run:
        for part in options.parts:
            print(f"{part}: {PARTS[part][0]}")
        return 0
    here = pathlib.Path(__file__).resolve().parent
    bench = sharing.Bench(node.Node(options.bundle), report.Report(), here, options.seconds)
    machine = report.machine_name()
    print(f"first-light: {machine}", flush=True)
    try:
        run_parts(bench, options)
    except node.Failure as error:
        bench.report.failed("-", str(error))
    finally:
        bench.node.close()
    print(f"\n{machine}\n{bench.report.table()}\n\n{bench.report.summary()}")
    command = "e2e/gpu/first-light.sh" + ("" if options.only == ",".join(PARTS) else f" --only {options.only}")
    section = bench.report.markdown(machine, command)
    if os.environ.get("OUT"):
        keep_details(bench, os.environ["OUT"], section)
    if options.results:
        with open(options.results, "a") as file:
            file.write("\n" + section)
    bench.node.remove()
    return 0 if bench.report.good else 1


if __name__ == "__main__":
    sys.exit(main())
