"""e2e/cluster/tests/hostile-pods.sh with rounds of a minute: five hostile pods at once beside honest ones."""

import json
import os
import subprocess

from experiment import ROOT
from report import at_most

SHOWS = "hostile pods, five at once: how soon others have what they need of the agent"
PAPER = ""
BOUNDS = {
    "execs": at_most(20, " ms"),
    "welcome": at_most(50, " ms"),
    "healthz": at_most(100, " ms"),
    "compile": at_most(1000, " ms"),
    "start": at_most(1000, " ms"),
}
BASELINES = ("execs before the attack",)
NEEDS = ("no gpu", "root", "kubelet")
SIMULATED = False

# All programs, five at once. Five of `accounts` could have all accounts of a node.
ROUNDS = (
    "lease,http,compile,bits,accounts",
    "demoted,memory,object,flood,garbage",
    "forge,rights,orphan,lease,compile",
    "accounts,accounts,accounts,accounts,accounts",
)
ROUND_OF = 6  # times the seconds of a measurement: a minute by default


def measure(seconds):
    env = dict(os.environ, ROUND_SECONDS=str(seconds), ROUNDS=" ".join(ROUNDS))
    argv = [str(ROOT / "e2e/cluster/tests/hostile-pods.sh")]
    lines = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=1800, check=False).stdout.splitlines()
    for line in lines:
        print(f"  {line}")
    figures = [json.loads(line) for line in lines if line.startswith("{")]
    if not figures:
        raise RuntimeError(f"hostile-pods.sh: {lines[-1] if lines else 'no message'}")
    return figures[-1]


def shown(figure):
    return f"median {figure['median']:.3g}, p99 {figure['p99']:.3g}, worst {figure['worst']:.3g} ms of {figure['n']}"


def run(bench):
    seconds = max(1, round(ROUND_OF * bench.seconds))
    found = measure(seconds)
    if seconds != 60:
        bench.report.cut(f"{seconds} s a round, not 60")
    execs, alone = found["execs"], found["alone"]
    bench.report.judge("exec in another pod: p99 more than before the attack", execs["p99"] - alone["p99"], BOUNDS["execs"], f"{shown(execs)}; before {shown(alone)}")
    for name, what in {"welcome": "WELCOME, p99", "healthz": "/healthz, p99"}.items():
        bench.report.judge(what, found[name]["p99"], BOUNDS[name], shown(found[name]))
    for name, what in {"compile": "an honest pod's kernel, worst", "start": "the agent's start, worst"}.items():
        bench.report.judge(what, found[name]["worst"], BOUNDS[name], shown(found[name]))
    bench.report.add("weirctl health with its start, p99", f"{found['probe']['p99']:.3g} ms", baselines=shown(found["probe"]))
    bench.report.add("an honest process's memory account, worst", f"{found['account']['worst']:.3g} ms", baselines=shown(found["account"]))
    rest = f"{found['probe_failures']} probes failed, {found['agent_restarts']} restarts that were not ours"
    held = found["all_held"] and not found["probe_failures"] and not found["agent_restarts"]
    bench.report.holds("honest pods have their bit, account and kernel each time; the agent is never ended; no limit is exceeded", held, rest)
