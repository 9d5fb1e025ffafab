"""Parts in their order, with a table at the end: what first-light.sh and bench/forms.sh are."""

import argparse
import json
import os
import pathlib
import tarfile
import time
import traceback

import node
import report
import sharing


class Suite:
    """@parts: letter to (what it shows, function of a Bench). @tenants: of the node."""

    def __init__(self, command, summary, parts, seconds, tenants=()):
        self.command, self.summary, self.parts, self.seconds = command, summary, parts, seconds
        self.tenants = tenants
        self.name = pathlib.Path(command).stem

    def parse(self):
        parser = argparse.ArgumentParser(prog=f"{self.name}.sh", description=self.summary)
        parser.add_argument("--bundle", required=True, help=argparse.SUPPRESS)
        parser.add_argument("--only", help="parts, with commas: " + " ".join(self.parts))
        parser.add_argument("--seconds", type=float, default=self.seconds, help="of one measurement")
        parser.add_argument("--deadline", type=float, default=540, help="start no part after so many seconds")
        parser.add_argument("--results", type=pathlib.Path, help="append the table to this file")
        parser.add_argument("--simulated", action="store_true", help="on the simulated GPU, tiny")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done")
        self.add_options(parser)
        options = parser.parse_args()
        options.parts = options.only.split(",") if options.only else list(self.parts)
        for part in options.parts:
            if part not in self.parts:
                parser.error(f"--only: no part '{part}'")
        return options

    def add_options(self, parser):
        """More of them, of a kind of suite."""

    def make_node(self, options):
        return node.Node(options.bundle, self.name, options.simulated, self.tenants)

    def prepare(self, bench):
        bench.prepare()

    def run_part(self, bench, part):
        try:
            self.parts[part][1](bench)
        except Exception as error:  # one part must not take the others with it
            traceback.print_exc()
            bench.report.failed(part, f"{type(error).__name__}: {error}")

    def run_parts(self, bench, options):
        begin = time.monotonic()
        self.prepare(bench)
        for part in options.parts:
            elapsed = time.monotonic() - begin
            if elapsed > options.deadline:
                bench.report.skipped(part, f"no time left after {elapsed:.0f} s")
                continue
            print(f"\n{part}: {self.parts[part][0]} ({elapsed:.0f} s so far)", flush=True)
            self.run_part(bench, part)
            self.keep_figures(bench)

    def plots(self, options):
        """Beside the table, or where details go; None: nobody keeps them."""
        if options.results:
            return options.results.parent / "plots"
        return pathlib.Path(os.environ["OUT"]) / "plots" if os.environ.get("OUT") else None

    def keep_figures(self, bench):
        """After each part, so that they outlive whatever ends this early."""
        if os.environ.get("OUT"):
            out = pathlib.Path(os.environ["OUT"])
            (out / f"{self.name}.json").write_text(json.dumps(bench.report.rows, indent=1))
            (out / f"{self.name}.txt").write_text(bench.report.table() + "\n")

    def keep_details(self, bench, out, section):
        """For whoever looks after it: the section for RESULTS.md, and what every program said."""
        out = pathlib.Path(out)
        (out / f"{self.name}.md").write_text(section)
        with tarfile.open(out / "logs.tar.gz", "w:gz") as tar:
            for path in sorted(bench.node.folder.rglob("*")):
                if path.name in ("stdout", "stderr") or path.suffix == ".log":
                    tar.add(path, path.relative_to(bench.node.folder))

    def main(self):
        options = self.parse()
        if options.dry_run:
            for part in options.parts:
                print(f"{part}: {self.parts[part][0]}")
            return 0
        machine = report.machine_name(options.simulated)
        table = report.Report(self.name, options.simulated)
        machine_node = self.make_node(options)
        bench = sharing.Bench(machine_node, table, options.seconds, plots=self.plots(options))
        print(f"{self.name}: {machine}", flush=True)
        try:
            self.run_parts(bench, options)
        except (node.Failure, KeyboardInterrupt) as error:
            table.failed("-", str(error) or "interrupted")
        finally:
            bench.node.close()
        print(f"\n{machine}\n{table.table()}\n\n{table.summary()}")
        section = table.markdown(machine, self.command + (f" --only {options.only}" if options.only else ""))
        self.keep_figures(bench)
        if os.environ.get("OUT"):
            self.keep_details(bench, os.environ["OUT"], section)
        if options.results:
            report.append(options.results, section)
        bench.node.remove()
        return 0 if table.good else 1
