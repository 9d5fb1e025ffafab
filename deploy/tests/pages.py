#!/usr/bin/env python3
"""Checks what is in the fences of the operators' pages. The words after the backticks say what a fence has:

  sh              commands; each is checked: helm installs and upgrades are rendered with their settings, weirctl and
                  make must know the command, kubectl lines must parse
  sh run          the same, and they are executed in the repository's root
  sh cluster      the same, and a test executes them on a cluster, with its names for NODE, NAMESPACE and POD
                  (e2e/cluster/tests/quick-start.sh). A page in deploy/docs with commands that no test executes must
                  have the words "No test runs"
  text output     what the commands above print, with `…` for anything
  yaml manifest   objects for the API server: HELM renders them, and `--manifests FOLDER` writes them for a test that
                  has one (e2e/cluster/tests/chart.sh)
  yaml values     values of the chart, rendered with it
  yaml agent      a part of the agent's configuration, which weir-agent checks; `yaml plugin`: of the device plugin's
  promql          expressions, one a line; promtool checks them, and the metrics must exist
  text, yaml part output, and parts of files; not checked

configuration.md must also say of each key of agent.yaml when a change takes effect.

An object that commands give to kubectl (<<END) is checked like a manifest. More words after `sh` (TAGS) say for which
readers the commands are.

  pages.py [--manifests FOLDER] HELM PAGE...    prints TAP; $B has the programs, $PROMTOOL may be empty
  pages.py --steps FOLDER PAGE TAG...           writes the commands of all readers and of those with these tags, and
                                                their output, as FOLDER/LINE.sh and LINE.output, for a test that runs
                                                them (e2e/cluster/tests/quick-start.sh)
  pages.py --cluster FOLDER PAGE NAME=VALUE...  the same for the commands of kind `sh cluster`, with these values
  pages.py --compare OUTPUT SAID                says which line of such an output is not, in its place, in the file SAID
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

B = os.environ.get("B", "build")
TAGS = {"kind", "k3s", "kubeadm", "gpu", "simulated"}
QUICK_START = "deploy/docs/quick-start.md"
CONFIGURATION = "deploy/docs/configuration.md"
QUICK_START_RUN = {"kubeadm", "simulated"} # by the test
KUBE = ["--kube-version", "1.34.0", "--api-versions", "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"]
scratch = tempfile.TemporaryDirectory(prefix="weir-pages-")
CODE = "\n".join(open(path, encoding="utf-8").read() for path in
                 subprocess.run(["git", "ls-files", "agent/*.c", "Makefile", "*.mk"], capture_output=True, text=True,
                                check=True).stdout.split())


def fences(page):
    """(line, kind, text) of each; fences inside of lists are indented."""
    found, kind = [], None
    for number, line in enumerate(open(page, encoding="utf-8").read().splitlines(), 1):
        if line.lstrip().startswith("```"):
            if kind is None:
                kind, first, lines = line.strip()[3:].strip(), number, []
            else:
                found.append((first, kind, "\n".join(lines) + "\n"))
                kind = None
        elif kind is not None:
            lines.append(line)
    return found


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=300)
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"


def written(name, text, folder=None):
    path = os.path.join(folder or scratch.name, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def render(*arguments):
    return run(helm, "template", "weir", "charts/weir", *KUBE, *arguments)


def check_helm(words):
    """The same settings in `helm template`; `-f FILE` may name a fence with values, which is checked itself."""
    if words[1] not in ("install", "upgrade"):
        return None if words[1] in ("uninstall", "rollback", "status", "test", "history", "push") else "no such command"
    settings = []
    for at, word in enumerate(words):
        if word in ("--set", "--set-string", "--namespace"):
            settings += words[at:at + 2]
        elif word == "-f" and os.path.exists(words[at + 1]):
            settings += words[at:at + 2]
    return render(*settings)


def check_command(line):
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    if not words:
        return None
    if words[0] == "helm":
        return check_helm(words)
    if "weirctl" in words or words[:2] == ["kubectl", "weir"]:
        after = words[words.index("weirctl" if "weirctl" in words else "weir") + 1:]
        command = after[2 if after[0] == "--node" else 0]
        usage = subprocess.run([f"{B}/bin/weirctl", "--help"], capture_output=True, text=True, check=True).stdout
        return None if re.search(rf"\[OPTION...\] {command}\b", usage) else f"weirctl has no command {command}"
    if words[0] == "make":
        missing = [word for word in words[1:] if not re.match(r"-|\w+=|build/", word) and not re.search(rf"^{word}:", CODE, re.M)]
        return f"make has no target {missing[0]}" if missing else None
    return None


HERE = re.compile(r"<<END\n(.*?)^END\n", re.M | re.S)


def commands(text):
    """Lines, joined where they are continued, without what stands between <<END and END."""
    text = HERE.sub("\n", text)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def check_sh(text, kind):
    problem = run("bash", "-n", text=text)
    for line in [] if problem else commands(text):
        for part in re.split(r"&&|\|\|?|;", line):
            problem = problem or check_command(part)
    for manifest in [] if problem else HERE.findall(text):
        problem = problem or check_manifest(manifest, kind)
    return problem or (run("bash", "-eo", "pipefail", "-c", text) if kind == "sh run" else None)


def check_manifest(text, _):
    written("raw/Chart.yaml", "apiVersion: v2\nname: raw\nversion: 0.0.0\n")
    return run(helm, "template", "raw", os.path.dirname(written("raw/templates/raw.yaml", text + "\n").replace("/templates", "")))


def check_values(text, _):
    return render("-f", written("values.yaml", text))


def check_config(text, kind):
    program = {"yaml agent": "weir-agent", "yaml plugin": "weir-device-plugin"}[kind]
    os.environ.setdefault("NODE_NAME", "node")
    return run(f"{B}/bin/{program}", "--check-config", "--config", written("config.yaml", text))


def check_promql(text, _):
    for name in re.findall(r"\bweir_\w+", text):
        if f'"{name}"' not in CODE and f'"{re.sub("_(bucket|sum|count)$", "", name)}"' not in CODE:
            return f"the agent has no metric {name}"
    promtool = os.environ.get("PROMTOOL")
    rules = [{"record": f"page:{at}", "expr": line} for at, line in enumerate(commands(text))]
    return promtool and run(promtool, "check", "rules", "--lint=none",
                            written("rules.yaml", json.dumps({"groups": [{"name": "page", "rules": rules}]})))


CHECKS = {"sh": check_sh, "sh run": check_sh, "sh cluster": check_sh, "yaml manifest": check_manifest, "yaml values": check_values,
          "yaml agent": check_config, "yaml plugin": check_config, "promql": check_promql, "yaml part": lambda *_: None, "text": lambda *_: None,
          "text output": lambda *_: None}


def split(kind):
    """The kind without its tags, and these."""
    words = kind.split()
    return " ".join(word for word in words if word not in TAGS), {word for word in words if word in TAGS}


def write_steps(folder, page, *chosen):
    for number, kind, text in fences(page):
        kind, tags = split(kind)
        if tags <= set(chosen) and kind in ("sh", "text output"):
            written(f"{number:04}.{'sh' if kind == 'sh' else 'output'}", text, folder)


def write_cluster(folder, page, *values):
    for number, kind, text in fences(page):
        for name, value in (word.split("=", 1) for word in values):
            text = re.sub(rf"\b{name}\b", value, text)
        if kind == "sh cluster":
            written(f"{os.path.basename(page)}-{number:04}.sh", text, folder)


def compare(output, said):
    """Spaces may be more or fewer, and there may be other lines between."""
    lines = iter(open(said, encoding="utf-8").read().splitlines())
    for line in open(output, encoding="utf-8").read().splitlines():
        pattern = ".*".join(r"\s+".join(map(re.escape, part.split(" "))) for part in line.strip().split("…"))
        if not any(re.fullmatch(pattern, found.strip()) for found in lines):
            sys.exit(f"this line is not in what the commands print: {line}")


def is_run(page, kind, tags, text):
    """Whether a test executes these commands, here or in the quick start."""
    if kind != "sh":
        return True
    if page == QUICK_START:
        return tags <= QUICK_START_RUN
    there = {line for _, others, more in fences(QUICK_START) if is_run(QUICK_START, *split(others), more)
             for line in commands(more)}
    return set(commands(text)) <= there


def admits(page):
    with open(page, encoding="utf-8") as file:
        return "No test runs" in " ".join(file.read().split())


def manifests_of(kind, text):
    """Objects for the API server in a fence."""
    if kind == "yaml manifest":
        return re.split("^---\n", text, flags=re.M)
    return HERE.findall(text) if kind == "sh" else []


def unnamed_keys():
    """Keys of the agent at the top level, and annotations' names, of which the page does not say when a change counts."""
    with open("deploy/docs/agent.yaml", encoding="utf-8") as file:
        keys = re.findall(r"^(\w+):|^  (\w*[aA]nnotation):", file.read(), re.M)
    with open(CONFIGURATION, encoding="utf-8") as file:
        said = file.read().partition("## Changes while")[2].partition("\n## ")[0]
    return [key for key in map("".join, keys) if not re.search(rf"[`.]{key}[`.]", said)]


def main():
    failed = 0
    if CONFIGURATION in pages:
        unnamed = unnamed_keys()
        print("not ok" if unnamed else "ok", f"- {CONFIGURATION}: changes of all keys", *unnamed)
        failed = bool(unnamed)
    for page in pages:
        for number, kind, text in fences(page):
            what = f"{page}:{number}: {kind}"
            kind, tags = split(kind)
            problem = CHECKS[kind](text, kind) if kind in CHECKS else f"no such kind of fence: '{kind}'"
            if page.startswith("deploy/docs/") and not is_run(page, kind, tags, text) and not admits(page):
                problem = problem or "no test executes these commands, and the page does not say: No test runs ..."
            print(("not ok - " if problem else "ok - ") + what)
            for line in (problem or "").splitlines()[:10]:
                print("#", line)
            failed |= bool(problem)
            if manifests:
                for at, document in enumerate(manifests_of(kind, text)):
                    with open(f"{manifests}/{os.path.basename(page)}-{number}-{at}.yaml", "w", encoding="utf-8") as file:
                        file.write(document)
    sys.exit(failed)


arguments = sys.argv[1:]
others = {"--steps": write_steps, "--cluster": write_cluster, "--compare": compare}
if arguments[0] in others:
    others[arguments[0]](*arguments[1:])
    sys.exit()
manifests = arguments[1] if arguments[0] == "--manifests" else None
helm, *pages = arguments[2:] if manifests else arguments
main()
