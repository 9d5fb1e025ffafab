"""The machine as a cluster of one node: clients are pods. The same interface as node.Node's."""

import contextlib
import glob
import json
import os
import pathlib
import subprocess
import sys
import time

import experiment
import kube
import node

NAMESPACE, RELEASE_NAMESPACE = "default", "weir-system"
NODE, CGROUP = "weir-test", "/weir-cluster/"
PROGRAMS, HOST = "localhost/weir-test:1", "localhost/weir-host:1"
RESOURCE = "weir.dev/gpu-share"
SHARE, WORKER_SHARE = 30, 5  # of one pod; of one that takes commands, of which there are many
DRIVER = "/usr/local/nvidia"
# NVLink's multicast belongs to the whole host: no pod of ours uses it.
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


class PodProcess:
    """A pod with the interface of subprocess.Popen. @stdin: of its program; None: it has none."""

    def __init__(self, cluster, name, stdin=None):
        self.cluster, self.name, self.code, self.why, self.stdin = cluster, name, None, "", stdin

    def pod(self):
        return self.cluster.api.get("Pod", self.name, NAMESPACE)

    def container(self):
        statuses = (self.pod() or {}).get("status", {}).get("containerStatuses", [])
        return statuses[0] if statuses else {}

    def running(self):
        return (self.pod() or {}).get("status", {}).get("phase") == "Running"

    def poll(self):
        if self.code is not None:
            return self.code
        pod = self.pod()
        status = pod["status"] if pod else {"phase": "Failed", "message": "the pod is gone"}
        if status.get("phase") not in ("Succeeded", "Failed"):
            return None
        ended = [c["state"].get("terminated", {}) for c in status.get("containerStatuses", [])]
        self.code = ended[0].get("exitCode", -1) if ended else -1
        self.why = status.get("message", "")
        return self.code

    def wait(self, timeout=None):
        end = time.monotonic() + (timeout or 1e9)
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.name, timeout)
            time.sleep(0.05)
        return self.code

    def kill(self):
        self.poll()
        self.cluster.api.delete("Pod", self.name, NAMESPACE, grace=0)
        self.code = -1 if self.code is None else self.code

    def identity(self):
        """Changes if the container is started again."""
        container = self.container()
        return container.get("containerID"), container.get("restartCount")

    @property
    def pid(self):
        """Pid of the container's first process, on the host."""
        name = (self.container().get("containerID") or "").removeprefix("containerd://")
        for line in self.cluster.ctr("tasks", "ls").splitlines():
            fields = line.split()
            if fields and fields[0] == name:
                return int(fields[1])
        return None


class PodClient(node.Client):
    def last_words(self):
        self.process.poll()
        return super().last_words() + (f" ({self.process.why})" if self.process.why else "")


class Cluster(node.Node):
    """@work: the folder of the node that e2e/cluster/cluster.sh started. Agent and plugin are the release's."""

    def __init__(self, root, work, simulated):
        self.bundle, self.simulated, self.work = pathlib.Path(root), simulated, pathlib.Path(work)
        self.folder = self.work / "clients"
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o777)
        self.clients, self.started, self.idle = [], {}, []
        self.mps, self.scheduling, self.tenants = None, "", []
        self.settings = dict(line.split("=", 1) for line in (self.work / "settings").read_text().split("\n") if "=" in line)
        self.api = kube.Api(self.settings["port_api"], self.work / "pki/api/apiserver.crt")
        self.release = kube.Release(self.api, RELEASE_NAMESPACE)

    def close(self):
        for client in self.clients:
            with contextlib.suppress(Exception):
                client.process.kill()
        self.stop_mps()

    def remove(self):
        pass  # with the node

    # The node

    def shell(self, command, timeout=120):
        """Runs @command in a shell that has the functions of cluster.sh."""
        script = f". e2e/cluster/cluster.sh && cluster_join && {{ {command}; }}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.bundle, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode != 0:
            raise node.Failure(f"{command}: {(done.stdout + done.stderr).strip()[-300:]}")
        return done.stdout

    def ctr(self, *arguments):
        argv = ["ctr", "-a", str(self.work / "ctd/ctd.sock"), "-n", "k8s.io", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise node.Failure(f"ctr {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def manifests(self, name):
        kind = "simulated" if self.simulated else "gpu"
        return json.loads((self.bundle / f"build/cluster/{kind}-{name}.json").read_text())

    def allocatable(self):
        found = self.api.get("Node", NODE)
        return int(found["status"]["allocatable"].get(RESOURCE, 0))

    def gpus(self):
        return self.allocatable() // 100

    def processes(self, name):
        """Pids of @name in pods."""
        pids = []
        for path in glob.glob("/proc/[0-9]*/comm"):
            with contextlib.suppress(OSError):
                pid = path.split("/")[2]
                if pathlib.Path(path).read_text().strip() == name and CGROUP in pathlib.Path(f"/proc/{pid}/cgroup").read_text():
                    pids.append(int(pid))
        return pids

    def memory_used(self):
        """Bytes of the GPU in use; None on the simulated GPU."""
        if self.simulated:
            return None
        argv = [self.find_tool("nvidia-smi"), "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        return sum(int(line) for line in done.stdout.split()) << 20

    def take_other_gpus(self):
        """Idle pods take all GPUs but one, so that all clients share that one."""
        argv = ["sleep", "1000000"]
        self.idle = [self.start("idle", argv, "low", True, files=False, share=100) for _ in range(self.gpus() - 1)]
        kube.wait_for("the other GPUs to be taken", 30, lambda: all(client.process.running() for client in self.idle))

    def give_other_gpus(self):
        for client in self.idle:
            client.process.kill()
        kube.wait_for("the other GPUs", 30, lambda: not any(client.process.pod() for client in self.idle))
        self.idle = []

    # Clients

    def program(self, name):
        return name

    def bench(self, name):
        return name

    def simulate(self, config):
        pass  # the node's simulated GPU is as cluster.sh made it

    def start(self, name, argv, tenant, weir, files=True, env=None, mps=True, share=SHARE, memory="", by_hand=False, stdin=None):
        """A pod that runs @argv, in which @folder is its own folder, at the level that @tenant names (a slot's is the
        lowest); without @weir a privileged one that finds the GPU by itself. @by_hand: with libweir where the plugin gives
        none, which is in whole GPUs and in privileged pods. @stdin: the program reads commands."""
        self.started[name] = self.started.get(name, 0) + 1
        name = f"{name}-{self.started[name]}"
        folder = self.folder / name
        folder.mkdir()
        folder.chmod(0o777)
        for file in ("stdout", "stderr"):
            (folder / file).touch()
        if files:
            argv = [*argv, "--ready-file", str(folder / "ready"), "--stop-file", str(folder / "stop")]
        argv = [argument.replace("@folder", str(folder)) for argument in argv]
        pod = self.pod(name, argv, folder, weir, env or {}, mps, by_hand)
        commands = None
        if stdin is not None:
            share = WORKER_SHARE
            commands = self.give_commands(pod, folder)
        pod["metadata"]["annotations"] = {"weir.dev/priority": tenant if tenant in node.LEVELS else node.LEVELS[0]}
        if weir:
            if memory:
                pod["metadata"]["annotations"]["weir.dev/memory"] = memory
            pod["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE: str(share)}}
        else:
            pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        self.api.create(pod, NAMESPACE)
        client = PodClient(name, PodProcess(self, name, commands), folder)
        self.clients.append(client)
        return client

    def pod(self, name, argv, folder, weir, env, mps, by_hand):
        torch = argv[0] == "python3"
        # The client's own folder, and that of our programs, at the same places.
        mounts = {path: path for path in (str(folder), str(experiment.PROGRAMS))}
        env = {"HOME": "/tmp", "PYTHONUNBUFFERED": "1", **NO_MULTICAST, **env}
        if torch:
            mounts["/usr"] = str(self.work / ("usr-weir" if weir else "usr-plain") / "merged")
            mounts["/opt"] = "/opt"
            env["PATH"] = os.environ["PATH"]
            argv = [sys.executable, *argv[1:]]
        if not weir:
            self.give_gpu(mounts, env)
        if by_hand:
            self.give_libweir(mounts, env, weir)
        if mps and self.mps and not weir:
            mounts["/run/weir-mps"] = self.mps
            env["CUDA_MPS_PIPE_DIRECTORY"] = "/run/weir-mps"
            env["CUDA_VISIBLE_DEVICES"] = "0"  # PyTorch counts GPUs by NVML, which shows the others, too
        volumes = [{"name": f"v{i}", "hostPath": {"path": path}} for i, path in enumerate(mounts.values())]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "restartPolicy": "Never",
                "enableServiceLinks": False,
                "automountServiceAccountToken": False,
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 0,
                "volumes": [*volumes, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
                "containers": [{
                    "name": "main",
                    "image": HOST if torch else PROGRAMS,
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", f'exec "$@" > {folder}/stdout 2> {folder}/stderr', "sh", *argv],
                    "env": [{"name": key, "value": value} for key, value in env.items()],
                    "volumeMounts": [
                        *({"name": f"v{i}", "mountPath": path} for i, path in enumerate(mounts)),
                        {"name": "shm", "mountPath": "/dev/shm"},
                    ],
                }],
            },
        }

    @staticmethod
    def give_commands(pod, folder):
        """A pipe in the pod's folder from which its program reads. Returns our end, which is also a reader's: it must not
        wait for one."""
        os.mkfifo(folder / "commands")
        container = pod["spec"]["containers"][0]
        container["command"][2] += f" < {folder}/commands"
        return os.fdopen(os.open(folder / "commands", os.O_RDWR), "w")

    def give_gpu(self, mounts, env):
        """Mounts what the plugin would mount, but for libweir."""
        if self.simulated:
            mounts["/dev/weir-sim"] = str(self.work / "tmpfs/sim")
            mounts["/opt/driver"] = str(self.work / "host/driver")
            env.update(LD_LIBRARY_PATH="/opt/driver", WEIR_SIM_DIR="/dev/weir-sim")
        else:
            mounts[DRIVER] = DRIVER
            env["LD_LIBRARY_PATH"] = f"{DRIVER}/lib64"

    def give_libweir(self, mounts, env, weir):
        """Mounts libweir and the socket for all GPUs. The driver is where the plugin or give_gpu() has mounted it."""
        version = (self.bundle / "build/cluster/version").read_text().strip()
        folder = self.work / "node/lib/weir" / version
        mounts.update({str(folder): str(folder), "/run/weir": str(self.work / "tmpfs/run/weir")})
        driver = "/usr/lib/x86_64-linux-gnu" if weir else env["LD_LIBRARY_PATH"]
        env.update(LD_PRELOAD=f"{folder}/libweir.so", WEIR_DRIVER=f"{driver}/libcuda.so.1")

    # The agent

    def ensure_agent(self):
        kube.wait_for("the agent", 20, self.status_works)

    def weirctl(self, *arguments):
        argv = [str(self.bundle / "build/bin/weirctl"), "--socket", str(self.work / "tmpfs/run/weir-agent/control.sock"), *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        if done.returncode != 0:
            raise node.Failure(f"weirctl {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def client_of(self, client):
        """The pod's client in the agent's status, or None."""
        return next((c for c in self.status() if c.get("pod") == client.name), None)

    # MPS: the agent's daemons.

    def ensure_mps(self):
        """Waits for the daemons; pods without Weir then mount their pipes."""
        ready = kube.wait_for("the MPS daemons", 30, lambda: self.mps_ready() if len(self.mps_ready()) >= self.gpus() else None)
        self.mps = str(pathlib.Path(ready[0]).parent / "client")

    def mps_daemons(self):
        """Their pids."""
        files = sorted(glob.glob(f"{self.work}/tmpfs/run/weir-mps/*/daemon"))
        return [int(pathlib.Path(file).read_text().split()[0]) for file in files]

    def mps_ready(self):
        return sorted(glob.glob(f"{self.work}/tmpfs/run/weir-mps/*/ready"))

    def stop_mps(self):
        self.mps = None

    def identity(self, client):
        return client.name

    def identity_of(self, known):
        return known.get("pod")

    def stop_agent(self):
        pass


@contextlib.contextmanager
def mode_mps(bench):
    """The chart with mode: mps, which is a roll of the release, and back. Its clients end with it."""
    cluster = bench.node
    cluster.release.install(cluster.manifests("mps"))
    kube.wait_for("shares", 60, cluster.allocatable)
    cluster.ensure_agent()
    try:
        yield
    finally:
        for client in cluster.clients:
            if client not in cluster.idle:
                client.process.kill()
        cluster.clients, bench.pool = list(cluster.idle), None
        cluster.stop_mps()
        cluster.release.install(cluster.manifests("install"))
        kube.wait_for("shares", 60, cluster.allocatable)
        kube.wait_for("the new agent", 30, cluster.status_works)
        kube.wait_for("MPS to end", 30, lambda: not cluster.mps_ready())
