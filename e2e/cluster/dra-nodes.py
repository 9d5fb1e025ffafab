#!/usr/bin/env python3
"""Claims of random size on several nodes, with churn and restarts.

    dra-nodes.py --api PORT --ca FILE --token TOKEN --plugin PROGRAM --call PROGRAM FOLDER...

API server, scheduler and claim controller are real. Each FOLDER is a node: its plugin.yaml, and what its device plugin
writes. There is no kubelet: this program makes a kubelet's calls to the plugin, through dra-call, in a kubelet's order:
prepare before a pod runs, unprepare before it has ended. It kills plugins, and does what a restarted kubelet does: it
deletes the node's slices, registers the driver, and prepares running claims again.

It exits with 1 and says why if a GPU is oversold, a claim that fits is not placed, or something stays behind.
"""

import argparse
import http.client
import json
import os
import random
import ssl
import subprocess
import sys
import time

DRIVER = "gpu.weir.dev"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"
GPU_MIB = 1024
AT_ONCE = 80  # pods that wait or run
PATIENCE = 60  # seconds for anything that must happen


class Wrong(Exception):
    pass


class Api:
    def __init__(self, port, ca, token):
        context = ssl.create_default_context(cafile=ca)
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
        self.token = token

    def __call__(self, method, path, body=None, kind="application/json", may=()):
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": kind}
        self.connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 and answer.status not in may:
            raise Wrong(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text)

    def items(self, path):
        return self("GET", path)["items"]


class Node:
    """A node: its plugin, and the calls of its kubelet."""

    def __init__(self, folder, programs):
        self.folder, self.name = folder, os.path.basename(folder)
        self.programs = programs
        self.socket = f"{folder}/registry/{DRIVER}-reg.sock"
        self.plugin = self.caller = None
        self.starts = 0

    def start(self):
        self.starts += 1
        with open(f"{self.folder}/plugin.log", "a") as log:
            self.plugin = subprocess.Popen(
                [self.programs.plugin, "--config", f"{self.folder}/plugin.yaml"],
                env=dict(os.environ, WEIR_SIM_DIR=f"{self.folder}/sim"),
                stdout=log,
                stderr=log,
            )
        if not self.caller:
            self.caller = subprocess.Popen(
                [self.programs.call, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )

    def kill(self):
        self.plugin.kill()
        self.plugin.wait()

    def stop(self):
        for process in self.plugin, self.caller:
            if process:
                process.kill()
                process.wait()

    def call(self, *words):
        """Microseconds, whether it succeeded, and the text."""
        self.caller.stdin.write(" ".join(words) + "\n")
        self.caller.stdin.flush()
        micros, outcome, *text = self.caller.stdout.readline().rstrip("\n").split(" ", 2)
        return int(micros), outcome == "ok", text[0] if text else ""

    def until_ok(self, *words):
        """As a kubelet: again and again, because the plugin may just start."""
        end = time.monotonic() + PATIENCE
        while True:
            micros, good, text = self.call(*words)
            if good:
                return micros, text
            if time.monotonic() > end:
                raise Wrong(f"{self.name}: {' '.join(words)}: {text}")
            time.sleep(0.05)

    def held(self):
        """(device, shares, MiB) of the claims in the driver's file."""
        with open(f"{self.folder}/state/claims.json") as file:
            claims = json.load(file)["claims"]
        return [(d["device"], int(d["shares"]), int(d["memory"]) >> 20) for c in claims for d in c["devices"]]


def mib(quantity):
    units = {"Mi": 1, "Gi": 1024}
    return int(quantity[:-2]) * units[quantity[-2:]]


def results(claim):
    return claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])


def check_sums(parts, what):
    """No GPU has more than it is: `parts` are (GPU, shares, MiB)."""
    sums = {}
    for gpu, shares, memory in parts:
        have = sums.setdefault(gpu, [0, 0])
        have[0] += shares
        have[1] += memory
    for gpu, (shares, memory) in sums.items():
        if shares > 100 or memory > GPU_MIB:
            raise Wrong(f"{what}: {gpu} is oversold: {shares} shares, {memory} MiB")
    return sums


class World:
    def __init__(self, api, nodes, claims, seed):
        self.api, self.nodes, self.left = api, {n.name: n for n in nodes}, claims
        self.random = random.Random(seed)
        self.sizes = {}  # template -> (shares, MiB)
        self.pods = {}  # our pods that are not deleted: name -> size
        self.running = {}  # name -> [node, claim, rounds left]
        self.ended = {}  # name -> claim
        self.took = []  # microseconds of prepare,
        self.read = []  # and of reading the same claim from the API server just before
        self.created = self.finished = self.restarts = 0

    def set_up(self):
        for i in range(30):
            self.add_template(f"size-{i}", self.random.randint(5, 60), 2 * self.random.randint(16, 350))
        self.add_template("greedy", 101, 64)
        for node in self.nodes.values():
            self.api("POST", "/api/v1/nodes", {"metadata": {"name": node.name}})
            status = {
                "capacity": {"cpu": "64", "memory": "256Gi", "pods": "500"},
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            status["allocatable"] = status["capacity"]
            self.api(
                "PATCH",
                f"/api/v1/nodes/{node.name}/status",
                {"status": status},
                "application/strategic-merge-patch+json",
            )
            node.start()
            node.until_ok("register")
        self.wait_for_slices()

    def add_template(self, name, shares, memory):
        self.sizes[name] = (shares, memory)
        requests = {"shares": str(shares), "memory": f"{memory}Mi"}
        exactly = {"deviceClassName": DRIVER, "capacity": {"requests": requests}}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        self.api("POST", TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})

    def devices(self):
        return [d for s in self.api.items(SLICES) for d in s["spec"].get("devices") or []]

    def wait_for_slices(self):
        self.wait("all GPUs to be published", lambda: len(self.devices()) == 4 * len(self.nodes))

    def wait(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise Wrong(f"waited {PATIENCE} s for {what}")
            time.sleep(0.1)

    def add_pod(self, template):
        name = f"pod-{self.created}"
        container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
        spec = {
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
        }
        self.api("POST", PODS, {"metadata": {"name": name}, "spec": spec})
        self.pods[name] = template
        self.created += 1

    def look(self):
        """Pods and claims by name; checks that no GPU is oversold."""
        pods = {p["metadata"]["name"]: p for p in self.api.items(PODS)}
        claims = {c["metadata"]["name"]: c for c in self.api.items(CLAIMS)}
        parts = []
        for claim in claims.values():
            for result in results(claim):
                consumed = result["consumedCapacity"]
                gpu = (result["pool"], result["device"])
                parts.append((gpu, int(consumed["shares"]), mib(consumed["memory"])))
        sums = check_sums(parts, "the scheduler")
        for node in self.nodes.values():
            check_sums(node.held(), f"the driver of {node.name}")
        return pods, claims, sums

    def run_pods(self, pods, claims):
        """What the nodes' kubelets do with pods that have a node."""
        for name, pod in pods.items():
            node = pod["spec"].get("nodeName")
            if not node or name in self.running or name in self.ended:
                continue
            if self.pods[name] == "greedy":
                raise Wrong(f"{name} was placed, though no GPU has what it asks for")
            claim = claims[pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]]["metadata"]
            words = ("default", claim["name"], claim["uid"])
            begin = time.monotonic()
            self.api("GET", f"{CLAIMS}/{claim['name']}")
            self.read.append((time.monotonic() - begin) * 1e6)
            micros, _ = self.nodes[node].until_ok("prepare", *words)
            self.took.append(micros)
            self.running[name] = [self.nodes[node], words, self.random.randint(1, 4)]

    def end_pods(self, claims):
        for name, pod in list(self.running.items()):
            node, words, rounds = pod
            pod[2] = rounds - 1
            if rounds > 0:
                continue
            node.until_ok("unprepare", *words)
            status = {"status": {"phase": "Succeeded"}}
            self.api("PATCH", f"{PODS}/{name}/status", status, "application/merge-patch+json")
            del self.running[name]
            self.ended[name] = words[1]
        for name, claim in list(self.ended.items()):
            if claim not in claims:
                self.api("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0", may=(404,))
                del self.ended[name], self.pods[name]
                self.finished += 1

    def restart_something(self):
        node = self.random.choice(list(self.nodes.values()))
        self.restarts += 1
        if self.random.random() < 0.5:
            before = sorted(node.held())
            node.kill()
            node.start()
            node.until_ok("register")
            if sorted(node.held()) != before:
                raise Wrong(f"{node.name}: the driver forgot claims: {before}, {node.held()}")
            return
        for i in range(4):
            self.api("DELETE", f"{SLICES}/{node.name}-{DRIVER}-{i}", may=(404,))
        node.until_ok("register")
        for other, words, _ in self.running.values():
            if other is node:
                node.until_ok("prepare", *words)

    def settle(self):
        """Nobody ends: after a while no pod waits that would fit on a GPU."""
        self.wait_for_slices()
        gpus = [(n, f"{d['name']}") for n in self.nodes for d in self.devices_of(n)]

        def placed():
            pods, claims, sums = self.look()
            self.run_pods(pods, claims)
            for name, pod in pods.items():
                if pod["spec"].get("nodeName"):
                    continue
                shares, memory = self.sizes[self.pods[name]]
                for gpu in gpus:
                    have = sums.get(gpu, (0, 0))
                    if have[0] + shares <= 100 and have[1] + memory <= GPU_MIB:
                        return False
            return True

        self.wait("every claim that fits to be placed", placed)

    def devices_of(self, node):
        slices = (s["spec"] for s in self.api.items(SLICES))
        return [d for s in slices if s["nodeName"] == node for d in s.get("devices") or []]

    def play(self):
        for _ in range(3):
            self.add_pod("greedy")
        rounds = 0
        while self.finished < self.left:
            rounds += 1
            while self.created < self.left + 3 and len(self.pods) < AT_ONCE:
                self.add_pod(f"size-{self.random.randrange(30)}")
            pods, claims, _ = self.look()
            self.run_pods(pods, claims)
            if rounds % 3 == 0:
                self.restart_something()
            if rounds in (4, 10):
                self.settle()
            self.end_pods(claims)
            if rounds > 2000:
                raise Wrong(f"only {self.finished} claims have ended")
            time.sleep(0.3)

    def measure(self):
        """The same call again and again, while nothing else happens: microseconds."""
        self.add_pod("size-0")
        self.wait("a pod to be placed", lambda: any(results(c) for c in self.api.items(CLAIMS)))
        claim = next(c for c in self.api.items(CLAIMS) if results(c))
        node = self.nodes[results(claim)[0]["pool"]]
        words = ("default", claim["metadata"]["name"], claim["metadata"]["uid"])
        took = []
        for _ in range(200):
            took.append(node.until_ok("prepare", *words)[0])
            node.until_ok("unprepare", *words)
        return took

    def check_end(self):
        for name in list(self.pods):
            self.api("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        for node in self.nodes.values():
            if node.held():
                raise Wrong(f"{node.name}: still prepared: {node.held()}")
        self.wait("no claim to be allocated", lambda: not any(results(c) for c in self.api.items(CLAIMS)))


def main():
    parser = argparse.ArgumentParser()
    for name in "api", "ca", "token", "plugin", "call":
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--claims", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    nodes = [Node(folder, options) for folder in options.folders]
    world = World(Api(int(options.api), options.ca, options.token), nodes, options.claims, options.seed)
    try:
        world.set_up()
        world.play()
        quiet = world.measure()
        world.check_end()
    except Wrong as wrong:
        print(f"# {wrong}")
        return 1
    finally:
        for node in nodes:
            node.stop()
    print(f"# {world.finished} claims over {len(nodes)} nodes, {world.restarts} restarts")
    figures = {"claims": world.finished, "nodes": len(nodes), "restarts": world.restarts}
    for name, what, took in (
        ("prepare", "prepare, while all that goes on", sorted(world.took)),
        ("read", "reading a claim from the API server, meanwhile", sorted(world.read)),
        ("quiet", "prepare, one claim again and again", sorted(quiet)),
    ):
        ms = {f"p{p}": round(took[len(took) * p // 100] / 1000, 2) for p in (50, 90, 99)}
        ms["longest"] = round(took[-1] / 1000, 2)
        figures[name] = dict(ms, n=len(took))
        print(f"# {what}: " + ", ".join(f"{part} {value:.1f} ms" for part, value in ms.items()))
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
