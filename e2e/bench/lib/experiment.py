"""Finds experiments and sets. An experiment is a file in experiments/ and is called as the file is. A file whose MODES has
`timeslice` is a second experiment, NAME-timeslice: there the clients with Weir are outside MPS."""

import importlib.util
import json
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
ROOT = BENCH.parents[1]
PROGRAMS = BENCH / "programs"
RESULTS = BENCH / "results"

# What each file declares; `run(bench)` besides.
FIELDS = {"SHOWS": str, "PAPER": str, "BOUNDS": dict, "BASELINES": tuple, "NEEDS": tuple, "SIMULATED": bool}
NEEDS = ("gpu", "two gpus", "pytorch", "cupy", "jax", "mps", "root", "kubelet", "no gpu")
# What a set's experiments run on: the simulated or real GPUs of this machine, a cluster on it, or no GPU.
NODES = ("standalone", "cluster", "host")
# How the GPU is shared among clients with Weir.
MPS, TIMESLICE = "mps", "timeslice"


class Experiment:
    """@module: the file, with its fields in small letters as attributes here."""

    def __init__(self, path, home, mode=MPS):
        spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.mode, self.home = mode, home
        self.name = path.stem if mode == MPS else f"{path.stem}-{mode}"
        self.tenants = getattr(self.module, "TENANTS", ())
        self.printed = getattr(self.module, "PRINTED", ())
        self.problems = list(self.find_problems())
        for field in FIELDS:
            setattr(self, field.lower(), getattr(self.module, field, None))
        if mode == TIMESLICE:
            self.shows = f"{self.shows}; time-slicing"

    def find_problems(self):
        for field, kind in FIELDS.items():
            if not isinstance(getattr(self.module, field, None), kind):
                yield f"{field} is missing, or no {kind.__name__}"
        if not callable(getattr(self.module, "run", None)):
            yield "run() is missing"
        for need in getattr(self.module, "NEEDS", ()):
            if need not in NEEDS:
                yield f"NEEDS: '{need}' is not one of {', '.join(NEEDS)}"
        if not self.home:
            yield "no set in sets.json has it"

    def run(self, bench):
        bench.mode = self.mode
        self.module.run(bench)
        if self.mode == TIMESLICE and not bench.node.simulated:
            gpus = bench.node.gpus() if bench.node.agent else bench.node.tested
            why = "; ".join(gpu.get("hardwarePreemptionReason", "") for gpu in gpus)
            bench.report.holds("hardware preemption", bool(gpus) and all(gpu.get("hardwarePreemption") for gpu in gpus), why or "yes")


def sets():
    """Name to what sets.json says of it; experiments run in that order."""
    return json.loads((BENCH / "sets.json").read_text())


def load_all():
    """Name to experiment: those of the sets first, in their order. The first set that has one is its home."""
    homes = {}
    for name, of in sets().items():
        for experiment in of["experiments"]:
            homes.setdefault(experiment, name)
    paths = {path.stem: path for path in sorted((BENCH / "experiments").glob("*.py"))}
    found = {name: Experiment(path, homes.get(name, "")) for name, path in paths.items()}
    for name, one in list(found.items()):
        if TIMESLICE in getattr(one.module, "MODES", ()):
            second = f"{name}-{TIMESLICE}"
            found[second] = Experiment(paths[name], homes.get(second, ""), TIMESLICE)
    unknown = [name for name in homes if name not in found]
    if unknown:
        sys.exit(f"sets.json: no experiment {', '.join(unknown)}")
    return {name: found[name] for name in dict.fromkeys([*homes, *found])}


def expand(names, experiments, known):
    """Sets, of @known, and experiments to experiments. Exits if there is no such name."""
    found = {}
    for name in (part for word in names for part in word.split(",")):
        if name not in known and name not in experiments:
            sys.exit(f"run: no set or experiment '{name}'; run --list shows them")
        for one in known[name]["experiments"] if name in known else [name]:
            found[one] = experiments[one]
    return list(found.values())
