"""The machine as a node: an agent, an MPS daemon, and clients in a cgroup for each tenant. Processes are ended by their
ids."""

import contextlib
import dataclasses
import fcntl
import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

LEVELS = ("low", "normal", "high", "critical")
CGROUP = "weir-bench"
UID_BASE = 64000
MEMORY_FREE = 1 << 30
SET_FLAGS = 0x40086602  # FS_IOC_SETFLAGS of linux/fs.h


@dataclasses.dataclass(frozen=True)
class Tenant:
    """What the agent takes for one container: a rule of its configuration."""

    name: str
    level: str
    share: int = 0  # 0: the agent's default
    slo: str = ""
    limit: int = 0  # of compute, per cent; 0: none
    rate: float = 0  # minimum, of its speed alone; 0: none
    yields: str = ""  # what lower levels are to leave to it; empty: the default
    sms: int = 0  # under MPS, on how many per cent of the SMs its processes run; 0: all


class Failure(RuntimeError):
    """An experiment cannot go on; the message says why."""


def memory_folder():
    """A folder on a tmpfs with room for a simulated GPU's memory, or None."""
    path = pathlib.Path("/dev/shm")
    return path if path.is_mount() and shutil.disk_usage(path).free > MEMORY_FREE else None


def remove_state(folder):
    """On a tmpfs the agent's pages are immutable."""
    for path in filter(pathlib.Path.is_file, folder.rglob("*")):
        with contextlib.suppress(OSError), open(path) as page:
            fcntl.ioctl(page, SET_FLAGS, struct.pack("l", 0))
    shutil.rmtree(folder, ignore_errors=True)


class Cgroups:
    """Each tenant is a cgroup."""

    def __init__(self, names):
        root = pathlib.Path("/sys/fs/cgroup")
        if not (root / "cgroup.procs").exists():
            raise OSError(f"{root} is no cgroup2 file system")
        self.folders = {}
        for name in names:
            folder = root / f"{CGROUP}-{name}"
            folder.mkdir(exist_ok=True)
            self.folders[name] = folder

    def wrap(self, name, argv):
        script = f'echo $$ > {self.folders[name]}/cgroup.procs && exec "$@"'
        return ["sh", "-c", script, "sh", *argv]

    def rule(self, name):
        return f'cgroup: "/{self.folders[name].name}"'

    def close(self):
        for folder in self.folders.values():
            with contextlib.suppress(OSError):
                folder.rmdir()


class Users:
    """Each tenant is a user, on a machine where cgroups cannot be written. MPS then needs one server for all users."""

    def __init__(self, names):
        self.ids = {name: UID_BASE + i for i, name in enumerate(names)}

    def wrap(self, name, argv):
        uid = str(self.ids[name])
        return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *argv]

    def rule(self, name):
        return f"uid: {self.ids[name]}"

    def close(self):
        pass


def identities(names):
    try:
        return Cgroups(names)
    except OSError as error:
        print(f"no cgroups ({error}), tenants by user id instead")
        return Users(names)


class Client:
    """A running program with its output in files."""

    def __init__(self, name, process, folder):
        self.name, self.process, self.folder = name, process, folder
        self.heard = 0  # bytes of its output that answer() has read

    @property
    def ready_file(self):
        return self.folder / "ready"

    @property
    def stop_file(self):
        return self.folder / "stop"

    def wait_ready(self, timeout=180):
        end = time.monotonic() + timeout
        while not self.ready_file.exists():
            if self.process.poll() is not None:
                raise Failure(f"{self.name} ended early: {self.last_words()}")
            if time.monotonic() > end:
                raise Failure(f"{self.name} is not ready after {timeout} s")
            time.sleep(0.02)

    def last_words(self):
        lines = self.errors.strip().splitlines()
        return f"exit {self.process.poll()}: {lines[-1] if lines else 'no message'}"

    @property
    def output(self):
        return (self.folder / "stdout").read_text()

    @property
    def errors(self):
        return (self.folder / "stderr").read_text(errors="replace")

    def json_lines(self):
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]

    def tell(self, *command):
        """Sends a line to a program that was started with a pipe as its input."""
        self.process.stdin.write(" ".join(str(word) for word in command) + "\n")
        self.process.stdin.flush()

    def answer(self, timeout, every=0.002):
        """The next line of its output, as JSON. @every: seconds between two looks for it."""
        end = time.monotonic() + timeout
        with open(self.folder / "stdout") as file:
            file.seek(self.heard)
            line = ""
            while not line.endswith("\n"):
                line += file.readline()
                if time.monotonic() > end:
                    raise Failure(f"{self.name} says nothing")
                if not line.endswith("\n"):
                    if self.process.poll() is not None:
                        raise Failure(f"{self.name} ended: {self.last_words()}")
                    time.sleep(every)
            self.heard = file.tell()
        return json.loads(line)

    def wait_end(self, timeout):
        """Raises Failure if the program fails, or does not end in time."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end in {timeout} s") from None
        if code != 0:
            raise Failure(f"{self.name}: {self.last_words()}")

    def leave(self, timeout=60):
        """Closes its input, upon which it ends; raises Failure if it fails."""
        self.process.stdin.close()
        self.wait_end(timeout)

    def stop(self):
        self.stop_file.touch()

    def result(self, timeout=120):
        """Its last line of output, as JSON; raises Failure if the program fails."""
        self.wait_end(timeout)
        lines = self.output.strip().splitlines()
        try:
            return json.loads(lines[-1])
        except (IndexError, ValueError):
            return {"output": lines[-1] if lines else ""}

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Node:
    """@simulated: on the simulated GPU, which is always shared as MPS shares a real one. @tenants: besides one for each
    level with the level's name."""

    def __init__(self, bundle, name, simulated=False, tenants=()):
        self.bundle, self.simulated = pathlib.Path(bundle), simulated
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"weir-{name}-"))
        self.folder.chmod(0o755)
        # The agent wants a tmpfs: pages of a disk's file, which processes share, make them wait for the disk.
        self.memory = pathlib.Path(tempfile.mkdtemp(prefix=f"weir-{name}-", dir=memory_folder() or self.folder))
        self.memory.chmod(0o755)
        (self.memory / "simulation").mkdir(0o777)
        (self.memory / "simulation").chmod(0o777)  # clients may be other users
        self.tenants = [*(Tenant(level, level) for level in LEVELS), *tenants]
        self.identities = identities([tenant.name for tenant in self.tenants])
        self.clients, self.agent, self.mps = [], None, None
        self.agent_log_level = None  # None: the configuration's
        self.agent_under_mps = True  # its self-test of hardware preemption, if a daemon of ours runs
        self.tested = []  # gpus() as of the end of the last agent's self-test
        self.started = {}
        self.scheduling = ""  # a part of the agent's configuration
        self.slices = {}  # us of clients without libweir, by tenant; others have the driver's
        self.pipes = None  # CUDA_MPS_PIPE_DIRECTORY of clients; None: our own daemon's, if it runs

    def close(self):
        """Ends all processes. Files stay until remove()."""
        for client in self.clients:
            client.kill()
        self.stop_agent()
        self.stop_mps()
        self.identities.close()

    def remove(self):
        remove_state(self.memory)
        shutil.rmtree(self.folder, ignore_errors=True)

    # Clients

    def program(self, name):
        return str(self.bundle / "bin" / name)

    def bench(self, name):
        return str(self.bundle / "bench" / name)

    def cuda_program(self, name):
        """One of e2e/workloads/programs, for this kind of GPU. None: it needs a real one."""
        path = self.bundle / ("simprograms" if self.simulated else "programs") / name
        return str(path) if path.exists() or not self.simulated else None

    @property
    def sizes(self):
        """The option that selects our programs' defaults for a real GPU."""
        return [] if self.simulated else ["--gpu"]

    def environment(self, weir, mps=True, sms=0):
        env = dict(os.environ)
        own = str(self.folder / ("mps" if self.mps and mps else "no-mps"))
        env["CUDA_MPS_PIPE_DIRECTORY"] = own if self.pipes is None else self.pipes
        env["CUDA_MPS_LOG_DIRECTORY"] = str(self.folder / "mps-log")
        env["PYTHONUNBUFFERED"] = "1"
        if sms:
            env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(sms)
        if self.simulated:
            env["LD_LIBRARY_PATH"] = str(self.bundle / "simcuda")
            env["WEIR_SIM_DIR"] = str(self.memory / "simulation")
        if weir:
            env["LD_PRELOAD"] = str(self.bundle / "lib" / "libweir.so")
            env["WEIR_SOCKET"] = str(self.socket)
        return env

    def slice_of(self, tenant):
        """The environment of a client without libweir, if it has a slice of its own."""
        if tenant not in self.slices:
            return {}
        return {"LD_PRELOAD": str(self.bundle / "lib/plain-slice.so"), "PLAIN_SLICE_US": str(self.slices[tenant])}

    def start(self, name, argv, tenant, weir, files=True, env=None, mps=True, stdin=subprocess.DEVNULL):
        """Starts @argv as a client of @tenant. @files: the program has --ready-file and --stop-file.
        @mps: under the MPS daemon, if one runs."""
        self.started[name] = self.started.get(name, 0) + 1
        folder = self.folder / f"{name}-{self.started[name]}"
        sms = next((known.sms for known in self.tenants if known.name == tenant), 0)
        folder.mkdir()
        folder.chmod(0o777)
        if files:
            argv = [*argv, "--ready-file", str(folder / "ready"), "--stop-file", str(folder / "stop")]
        with open(folder / "stdout", "w") as out, open(folder / "stderr", "w") as err:
            process = subprocess.Popen(
                self.identities.wrap(tenant, argv),
                stdin=stdin,
                text=True,
                stdout=out,
                stderr=err,
                env={**self.environment(weir, mps, sms), **({} if weir else self.slice_of(tenant)), **(env or {})},
            )
        client = Client(name, process, folder)
        self.clients.append(client)
        return client

    @contextlib.contextmanager
    def running(self, name, argv, level, weir, **more):
        """Starts a client, yields it when it is ready, and stops it at the end."""
        client = self.start(name, argv, level, weir, **more)
        try:
            client.wait_ready()
            yield client
        finally:
            client.stop()
            try:
                client.process.wait(60)
            except subprocess.TimeoutExpired:
                client.kill()

    def identity(self, client):
        """The same key as identity_of() has for this client in the agent's status."""
        return client.process.pid

    def identity_of(self, known):
        return known["pid"]

    def simulate(self, config):
        """How the simulated GPU behaves. Takes effect when no process uses it any more."""
        (self.memory / "simulation" / "config").write_text(config)

    # The agent

    @property
    def socket(self):
        return self.folder / "agent.sock"

    @property
    def state(self):
        return self.memory / "state"

    def rule(self, tenant):
        more = f"      share: {tenant.share}\n" if tenant.share else ""
        more += f"      latencySlo: {tenant.slo}\n" if tenant.slo else ""
        more += f"      computeLimit: {tenant.limit}\n" if tenant.limit else ""
        more += f"      minRate: {tenant.rate}\n" if tenant.rate else ""
        more += f"      yield: {tenant.yields}\n" if tenant.yields else ""
        return f"    - {self.identities.rule(tenant.name)}\n      level: {tenant.level}\n{more}"

    @property
    def config(self):
        path = self.folder / "agent.yaml"
        rules = "".join(self.rule(tenant) for tenant in self.tenants)
        path.write_text(
            f"socket: {self.socket}\n"
            f"stateDir: {self.state}\n"
            f"compile:\n  cacheDir: {self.folder}/cache\n"
            f"control:\n  socket: {self.folder}/control.sock\n"
            'metrics:\n  address: ""\n'
            f"{self.scheduling}standalone:\n  rules:\n{rules}"
        )
        return path

    def start_agent(self):
        self.state.mkdir(exist_ok=True)
        env = self.environment(False, self.agent_under_mps)
        if self.agent_log_level:
            env["WEIR_LOG"] = self.agent_log_level
        with open(self.folder / "agent.log", "a") as log:
            self.agent = subprocess.Popen(
                [self.program("weir-agent"), "--config", str(self.config), "--standalone"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
            )

    def agent_says(self, words):
        """The lines of the agents' log with @words."""
        lines = (self.folder / "agent.log").read_text(errors="replace").splitlines()
        return [line for line in lines if words in line]

    def ensure_agent(self):
        if self.agent and self.agent.poll() is None:
            return
        self.start_agent()
        end = time.monotonic() + 10
        while not self.status_works():
            if self.agent.poll() is not None or time.monotonic() > end:
                log = self.agent_says("")
                raise Failure(f"weir-agent does not run: {log[-1] if log else 'no message'}")
            time.sleep(0.05)
        self.await_self_test(end)

    def gpus(self):
        """The GPUs in `weirctl status`: a list of dicts."""
        return json.loads(self.weirctl("status", "--json"))["gpus"]

    def await_self_test(self, end):
        """Until the agent knows whether hardware preemption works."""
        while any("runs" in gpu.get("hardwarePreemptionReason", "") for gpu in self.gpus()):
            if time.monotonic() > end + 30:
                raise Failure("the self-test does not end")
            time.sleep(0.05)
        self.tested = self.gpus()

    def change_tenants(self, changes):
        """Gives tenants other fields, by name. An agent that runs reads the configuration, which this returns, at once."""
        self.tenants = [dataclasses.replace(tenant, **changes.get(tenant.name, {})) for tenant in self.tenants]
        return self.config

    def change_until(self, name, key, value, taken):
        """Gives a tenant another field, and waits until @taken() says that the agent's clients have it."""
        self.change_tenants({name: {key: value}})
        end = time.monotonic() + 10
        while not taken():
            if time.monotonic() > end:
                raise Failure(f"the agent does not take {key} {value}")
            time.sleep(0.02)

    def share_gpu(self, mps):
        """From here on clients with Weir are under MPS, or outside it. Starts an agent that tests for that."""
        self.stop_agent()
        if mps:
            self.ensure_mps()
        else:
            self.stop_mps()
        if self.simulated:
            self.simulate("" if mps else "slices = 1\n")
        self.agent_under_mps = mps
        self.ensure_agent()

    def renew_agent(self):
        """Starts an agent with an empty cache of compiled kernels."""
        self.stop_agent()
        remove_state(self.state)
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        self.ensure_agent()

    def kill_agent(self):
        self.agent.send_signal(signal.SIGKILL)
        self.agent.wait()

    def stop_agent(self):
        if self.agent and self.agent.poll() is None:
            self.agent.terminate()
            try:
                self.agent.wait(10)
            except subprocess.TimeoutExpired:
                self.agent.kill()
                self.agent.wait()
        self.agent = None

    def weirctl(self, *arguments):
        argv = [self.program("weirctl"), "--socket", f"{self.folder}/control.sock", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
        if done.returncode != 0:
            ended = self.agent.poll() if self.agent else None
            more = "" if ended is None else f" (the agent has ended: {ended})"
            raise Failure(f"weirctl {arguments[0]}: {done.stderr.strip()}{more}")
        return done.stdout

    def ask(self, **request):
        """What the agent answers on its control socket, as a dict: without a program in between, whose start takes time."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(f"{self.folder}/control.sock")
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as file:
                answer = json.load(file)
        if "error" in answer:
            raise Failure(f"the agent refuses {request}: {answer['error']}")
        return answer

    def status(self):
        """The clients in `weirctl status`: a list of dicts."""
        return json.loads(self.weirctl("status", "--json"))["clients"]

    def timers_late(self):
        """us that the agent's timers were late, on average, since it started."""
        said = json.loads(self.weirctl("status", "--json"))
        return 1e6 * said["timersLateSeconds"] / max(1, said["timers"])

    def status_works(self):
        try:
            self.status()
            return True
        except (Failure, ValueError, KeyError):
            return False

    # MPS

    def mps_control(self):
        return self.program("sim-mps-control") if self.simulated else self.find_tool("nvidia-cuda-mps-control")

    def find_tool(self, name):
        found = shutil.which(name) or next(iter(glob.glob(f"/usr/local/nvidia/bin/{name}")), None)
        if not found:
            raise Failure(f"no {name} on this machine")
        return found

    def ensure_mps(self):
        if self.mps:
            return
        self.mps = self.mps_control()
        for name in ("mps", "mps-log"):
            (self.folder / name).mkdir(exist_ok=True)
            (self.folder / name).chmod(0o777)  # clients may be other users
        options = ["-multiuser-server"] if isinstance(self.identities, Users) else []
        done = subprocess.run(
            [self.mps, "-d", *options], env=self.environment(False), capture_output=True, text=True
        )
        if done.returncode != 0:
            self.mps = None
            raise Failure(f"MPS does not start: {(done.stdout + done.stderr).strip()}")

    def stop_mps(self):
        if not self.mps:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [self.mps], input="quit\n", text=True, env=self.environment(False), timeout=60,
                capture_output=True,
            )
        self.mps = None
