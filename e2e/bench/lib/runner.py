"""Runs experiments one after the other, and leaves a JSON of each, a table, plots, and what the programs said."""

import argparse
import contextlib
import itertools
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import bursts
import experiment
import report
import results

INSTALL = "cluster-install"  # comes before all others on a cluster
ROUNDS = 3  # of experiments without a GPU
BUILD = experiment.ROOT / os.environ.get("B", "build")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="run", description="Runs experiments and sets of them; the exit status says whether all bounds hold.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of an experiment or a set; several, also with commas")
    parser.add_argument("--list", action="store_true", help="show what there is, or what NAME... would run")
    parser.add_argument("--only", default="", help="of the NAMEs, only these experiments, with commas")
    parser.add_argument("--parts", default="", help="of the programs or parts of experiments that have some (the names in their files), only these, with commas")
    parser.add_argument("--seconds", type=float, help="of one measurement; by default the set's")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="experiments without a GPU are measured so often; the median counts")
    parser.add_argument("--deadline", type=float, default=540, help="start no experiment after so many seconds")
    parser.add_argument("--out", type=pathlib.Path, help="folder for JSONs, table, plots, logs; by default $OUT or build/results")
    parser.add_argument("--bundle", help="of `make bundle` or `make cluster-bundle`, or its folder; by default the one in build/")
    parser.add_argument("--simulated", action="store_true", help="on the simulated GPU, tiny; times get no verdict")
    parser.add_argument("--report", action="store_true", help="write RESULTS.md from results/*.json")
    parser.add_argument("--adopt", type=pathlib.Path, metavar="DIR", help="take the JSONs in DIR as the newest, and --report")
    parser.add_argument("--check", action="store_true", help="check experiments, results/*.json and RESULTS.md")
    parser.add_argument("--cluster", help=argparse.SUPPRESS)  # lib/cluster.sh has made the node in this folder
    parser.add_argument("--command", help=argparse.SUPPRESS)  # what the user gave, where lib/cluster.sh calls this
    options = parser.parse_args(arguments)
    # Where the results lie says nothing about them.
    said = re.sub(r" --out[ =]\S+", "", shlex.join(["e2e/bench/run", *arguments]))
    options.command = options.command or said
    options.out = (options.out or pathlib.Path(os.environ.get("OUT") or BUILD / "results")).absolute()
    return options


def show(experiments):
    rows = [("experiment", "set", "needs", "paper", "shows")]
    for one in experiments:
        needs = ", ".join(one.needs) + ("" if one.simulated else "; not simulated")
        rows.append((one.name, one.home, needs, one.paper or "-", one.shows))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        print("  ".join([cell.ljust(width) for cell, width in zip(row, widths)] + [row[-1]]))


def is_unpacked(folder):
    return (folder / "bin/weir-agent").exists()


@contextlib.contextmanager
def unpacked(bundle):
    """Folder of a bundle's programs: the bundle that this file is a part of, or the one in build/, if none is named."""
    if not bundle and is_unpacked(experiment.ROOT):
        yield experiment.ROOT
        return
    made = sorted(BUILD.glob("weir-[0-9]*.tar.gz"))
    path = pathlib.Path(bundle) if bundle else made[-1] if made else None
    if not path or not path.exists():
        sys.exit(f"run: no bundle{f' {path}' if path else ''}: run 'make bundle', or name one with --bundle")
    if path.is_dir():
        yield path.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="weir-bundle-") as folder:
        os.chmod(folder, 0o755)  # clients may be other users
        subprocess.run(["tar", "-xzf", path, "-C", folder], check=True)
        yield next(pathlib.Path(folder).glob("weir-*"))


def commit_of(bundle):
    """The commit that the programs were built from."""
    for folder in filter(None, (bundle, experiment.ROOT)):
        if (folder / "commit").exists():
            return (folder / "commit").read_text().strip()
    argv = ["git", "-C", str(experiment.ROOT), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip()


class Runner:
    """@reports: of all experiments that ran or were skipped."""

    def __init__(self, options):
        self.options, self.reports, self.began = options, [], time.monotonic()
        self.parts = tuple(filter(None, options.parts.split(",")))
        self.commit, self.machine = "", ("", "")

    def run_set(self, name, of, experiments):
        """Experiments with one home, which share a node."""
        simulated, kind = self.options.simulated, of["node"]
        self.machine = ("no GPU", "") if kind == "host" else report.machine_of(simulated)
        print(f"{name}: {', '.join(filter(None, self.machine))}", flush=True)
        if kind == "host":
            self.commit = commit_of(None)
            bench = bursts.Bench(None, None, 0, rounds=self.options.rounds, parts=self.parts)
            self.run_all(bench, of, experiments)
        elif kind == "standalone":
            import node

            tenants = [tenant for one in experiments for tenant in one.tenants]
            with unpacked(self.options.bundle) as bundle:
                self.commit = commit_of(bundle)
                self.run_on(node.Node(bundle, name, simulated, list(dict.fromkeys(tenants))), name, of, experiments)
        elif self.options.cluster:
            import pods

            self.commit = commit_of(pathlib.Path(self.options.bundle))
            self.run_on(pods.Cluster(self.options.bundle, self.options.cluster, simulated), name, of, experiments)
        else:
            return self.run_in_cluster(experiments)
        return all(of.good for of in self.reports)

    def run_in_cluster(self, experiments):
        """lib/cluster.sh makes the node, calls this program there, and takes the node away."""
        options = self.options
        argv = [str(experiment.BENCH / "lib/cluster.sh"), options.bundle or "", *(one.name for one in experiments)]
        argv += ["--out", str(options.out), "--deadline", str(options.deadline), "--command", options.command]
        argv += ["--seconds", str(options.seconds)] if options.seconds else []
        argv += ["--simulated"] if options.simulated else []
        return subprocess.run(argv, check=False).returncode == 0

    def run_on(self, node, name, of, experiments):
        bench = bursts.Bench(node, None, 0, plots=self.options.out / "plots", parts=self.parts)
        try:
            bench.prepare()
            self.run_all(bench, of, experiments)
        finally:
            node.close()
            self.keep_logs(node, name)
            node.remove()

    def run_all(self, bench, of, experiments):
        usual = of["seconds"]
        bench.seconds = self.options.seconds or usual
        for one in experiments:
            elapsed = time.monotonic() - self.began
            bench.report = report.Report(one.name, self.options.simulated, self.keep)
            self.reports.append(bench.report)
            if bench.seconds < usual:
                bench.report.cut(f"{bench.seconds:g} s a measurement, not {usual:g}")
            if not bench.node and bench.rounds < ROUNDS:
                bench.report.cut(f"rounds: {bench.rounds}, not {ROUNDS}")
            if elapsed > self.options.deadline:
                bench.report.skipped(f"no time left after {elapsed:.0f} s")
            else:
                print(f"\n{one.name}: {one.shows} ({elapsed:.0f} s so far)", flush=True)
                self.run_one(bench, one)
            bench.report.over = True
            self.keep(bench.report)

    def run_one(self, bench, one):
        try:
            with bench.report.guard():
                one.run(bench)
        except KeyboardInterrupt:
            if bench.report.rows:
                bench.report.failed("interrupted")
            raise

    def keep(self, of):
        """With each row, so that its figures outlive whatever ends this program, SIGKILL, too."""
        if of.count(report.NOT_RUN) == len(of.rows):
            return
        record = of.record(self.commit, self.options.command, self.machine)
        self.write(f"{of.experiment}.json", report.dump(record))
        self.write("table.txt", report.table(self.reports) + "\n")

    def write(self, name, text):
        """The file is the former or the new one, whenever this program ends."""
        new = self.options.out / f".{name}"
        new.write_text(text)
        new.replace(self.options.out / name)

    def keep_logs(self, node, name):
        path = self.options.out / f"logs-{name}.tar.gz"
        if path.exists():  # of experiments of this set before those of another one
            path = self.options.out / f"logs-{name}-{time.monotonic_ns()}.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for path in sorted(node.folder.rglob("*")):
                if path.name in ("stdout", "stderr") or path.suffix == ".log":
                    tar.add(path, path.relative_to(node.folder))


def choose(options, experiments):
    """The experiments that the options name and this machine can run."""
    chosen = experiment.expand(options.names, experiments, experiment.sets()) if options.names else list(experiments.values())
    only = experiment.expand([options.only], experiments, {}) if options.only else chosen
    chosen = [one for one in chosen if one in only]
    if not options.list and any(one.home == "cluster" for one in chosen) and experiments[INSTALL] not in chosen:
        chosen.insert(next(i for i, one in enumerate(chosen) if one.home == "cluster"), experiments[INSTALL])
    if options.simulated:
        absent = [one.name for one in chosen if not one.simulated]
        if absent:
            print(f"not on the simulated GPU: {', '.join(absent)}")
        chosen = [one for one in chosen if one.simulated]
    return chosen


def stop(_number, _frame):
    """`timeout` sends SIGTERM twice: to the process, then to its group. The second must not end what keeps the figures."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(options, chosen):
    options.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, stop)  # the table of what there is comes all the same
    runner, good = Runner(options), True
    try:
        for name, group in itertools.groupby(chosen, key=lambda one: one.home):
            good = runner.run_set(name, experiment.sets()[name], list(group)) and good
    except KeyboardInterrupt:
        good = False
    except RuntimeError as error:
        print(f"run: {error}", file=sys.stderr)
        good = False
    if runner.reports:
        print(f"\n{report.table(runner.reports)}\n\n{report.summary(runner.reports)}\n{options.out}/*.json")
    return 0 if good else 1


def main():
    options = parse(sys.argv[1:])
    experiments = experiment.load_all()
    if options.adopt:
        results.adopt(options.adopt)
    if options.report or options.adopt:
        return 0 if results.write() else 1
    if options.check:
        problems = [f"{one.name}: {problem}" for one in experiments.values() for problem in one.problems]
        print("\n".join(problems), end="\n" if problems else "")
        return 0 if results.check(experiments) and not problems else 1
    chosen = choose(options, experiments)
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `run --list | head`
        show(chosen)
        return 0
    if not options.names:
        sys.exit("run: name experiments or sets; run --list shows them")
    return run(options, chosen)
