# SPDX-License-Identifier: BSD-3-Clause
"""Test hosts on this machine: several nodes, or several containers of one, in namespaces.

Each has a network, a name, /dev/shm and /tmp of its own, and unless it is told otherwise processes
and a boot id too. All of them are in one PID namespace, whose first process dies with the test
(setpriv --pdeathsig, unshare --kill-child): nothing is left, however the test ends. Nothing of them
is visible from outside, so two sets can run side by side.

Commands get there through host.py, in place of ssh. The hosts share all folders but /dev/shm and
/tmp, as on a cluster with one file system.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from mpi_harness import Mpi, execute, marked_processes, wait_until_gone
from running_clock import now

PROGRAMS = ("unshare", "setpriv", "ip", "mount")
START_SECONDS = 30
SET = ("OMPI_", "PRTE_", "PMIX_", "MPIR_", "HWLOC_", "XCCL_")
MARK = "XCCL_TEST_HOSTS"
# One that every user may run, as the tests' own may not be.
PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable

# In the namespaces of the switch, which the hosts see as their network: $1 is the folder.
SWITCH = """
mkdir "$1/proc"
mount --rbind /proc "$1/proc"
ip link set lo up
ip link add xbridge type bridge
ip link set xbridge up
here=$(readlink /proc/self/ns/net)
"""

# For each host there.
CABLE = """
unshare {spaces} sh -e "$1/{name}.sh" &
host=$!
while [ "$(readlink /proc/$host/ns/net)" = "$here" ]; do sleep 0.01; done
ip link add x{name} type veth peer name eth0 netns $host
ip link set x{name} master xbridge up
"""

# In the namespaces of a host.
BOOT = """
hostname {hostname}
mount -t tmpfs tmpfs /tmp
mount --bind {folder}/etc-hosts /etc/hosts
{mounts}
ip link set lo up
until ip link set eth0 up 2>/dev/null; do sleep 0.01; done
ip addr add {address}/24 dev eth0
cd /
exec env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp {mark} \\
    {python} {folder}/host.py serve {folder}/{name}.socket {user}
"""


class NoHosts(Exception):
    """What is missing here."""


@dataclass(frozen=True)
class Host:
    """What a host has of its own."""

    hostname: str = ""  # by default the name under which the others know it
    boot: str = "own"  # or "shared": that of all hosts that say so; or "none": it cannot be read
    processes: bool = True  # a PID namespace; else that of all hosts without one
    shm: str = "size=4g"  # how /dev/shm is mounted; or "shared": one for all hosts that say so
    user: int = 0


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def check_possible(build):
    if build.emulator:
        raise NoHosts("the launchers there are not emulated")
    if build.folder.resolve().is_relative_to("/tmp"):
        raise NoHosts("the build is in /tmp, of which each host has its own")
    if os.geteuid() != 0:
        raise NoHosts("they need root, for namespaces")
    missing = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    if missing:
        raise NoHosts(f"not installed: {', '.join(missing)} (Debian: iproute2, util-linux)")
    needed = "ip link add xbridge type bridge && mount -t tmpfs tmpfs /tmp"
    spaces = ["--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "--mount-proc"]
    tried = subprocess.run(
        ["unshare", *spaces, "sh", "-c", needed],
        env=dict(os.environ, PATH=search_path()),
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        raise NoHosts(f"this machine allows no namespaces with a bridge: {tried.stderr.strip()}")


class Hosts:
    """Hosts h0, h1, ...; a folder that all of them see."""

    def __init__(self, parent, hosts):
        self.hosts = {f"h{i}": host for i, host in enumerate(hosts)}
        self.parent = parent
        self.mark = f"{MARK}={uuid.uuid4().hex}"
        self.switch = None

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hosts-", dir=self.parent))
        try:
            self.write_files()
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def write_files(self):
        self.folder.chmod(0o755)
        shutil.copy(Path(__file__).with_name("host.py"), self.folder)
        agent = self.folder / "agent"
        agent.write_text(f'#!/bin/sh\nexec {PYTHON} {self.folder}/host.py run "$@"\n')
        agent.chmod(0o755)
        names = [f"{self.address(name)} {name}\n" for name in self.hosts]
        (self.folder / "etc-hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
        (self.folder / "shared-shm").mkdir()
        (self.folder / "boot.shared").write_text(f"{uuid.uuid4()}\n")
        (self.folder / "boot.none").mkdir()
        for name, host in self.hosts.items():
            (self.folder / f"boot.{name}").write_text(f"{uuid.uuid4()}\n")
            (self.folder / f"{name}.sh").write_text(self.boot_script(name, host))

    def address(self, name):
        return f"10.78.0.{list(self.hosts).index(name) + 1}"

    def boot_script(self, name, host):
        shm = f"-t tmpfs -o {host.shm} tmpfs"
        if host.shm == "shared":
            shm = f"--bind {self.folder}/shared-shm"
        mounts = [f"mount {shm} /dev/shm"]
        boot_id = "/proc/sys/kernel/random/boot_id"
        if host.boot == "none":  # what is there cannot be read
            mounts.append(f"mount -t tmpfs -o ro tmpfs {os.path.dirname(boot_id)}")
        else:
            file = name if host.boot == "own" else host.boot
            mounts.append(f"mount --bind {self.folder}/boot.{file} {boot_id}")
        return BOOT.format(
            hostname=host.hostname or name,
            folder=self.folder,
            mounts="\n".join(mounts),
            address=self.address(name),
            mark=self.mark,
            user=host.user,
            python=PYTHON,
            name=name,
        )

    def start(self):
        script = SWITCH
        for name, host in self.hosts.items():
            spaces = "--net --uts --ipc --mount"
            if host.processes:
                spaces += " --pid --fork --kill-child --mount-proc"
            script += CABLE.format(name=name, spaces=spaces)
        spaces = ["--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces]
        command += ["sh", "-e", "-c", script + "wait\n", "sh", self.folder]
        with (self.folder / "log").open("w") as log:
            self.switch = subprocess.Popen(
                command,
                env=dict(os.environ, PATH=search_path()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        end = now() + START_SECONDS
        while not all((self.folder / f"{name}.socket").exists() for name in self.hosts):
            if now() > end or self.switch.poll() is not None:
                raise RuntimeError(f"the hosts did not start\n{(self.folder / 'log').read_text()}")
            time.sleep(0.02)
        self.servers = set(self.processes())

    def stop(self):
        """The first process of a PID namespace takes all others with it."""
        if self.switch is not None:
            self.switch.kill()
            self.switch.wait(timeout=10)
            wait_until_gone(self.processes)
        shutil.rmtree(self.folder)

    def processes(self):
        return marked_processes(self.mark)

    def shared_memory(self):
        """What each host has in /dev/shm, seen through its first process."""
        found = set()
        for server in self.servers:
            with contextlib.suppress(OSError):
                names = os.listdir(Path("/proc") / str(server) / "root" / "dev/shm")
                found |= {f"{server}:{name}" for name in names if "xccl" in name}
        return found

    def on(self, name, *words):
        """What to execute here so that words are run on a host, without this environment."""
        return [self.folder / "agent", name, shlex.join(map(str, words))]

    def run(self, name, *words, timeout=60, env=None):
        """Run on a host. Nothing may be left of it on any."""
        variables = [f"{key}={value}" for key, value in (env or {}).items()]
        words = ["env", *variables, *words] if variables else words
        before = self.shared_memory()
        result = execute(self.on(name, *words), dict(os.environ), timeout)
        left = wait_until_gone(lambda: set(self.processes()) - self.servers)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert result.timed_out or not left, f"processes {left} outlived the run:\n{result.out}"
        forgotten = self.shared_memory() - before
        assert result.timed_out or not forgotten, f"left in /dev/shm: {forgotten}\n{result.out}"
        return result


class HostsMpi(Mpi):
    """An MPI whose launcher runs on the first host, and starts ranks on all.

    `ranks` of run() is a layout: "2+1" is two ranks on the first host and one on the second.
    """

    def __init__(self, mpi, hosts):
        super().__init__(mpi.build, mpi.name, mpi.family, mpi.mpiexec, mpi.library_path)
        self.hosts = hosts

    def front(self, ranks):
        counts = [int(count) for count in ranks.split("+")]
        command, settings = super().front(sum(counts))
        command += self.placed([f"{name}:{n}" for name, n in zip(self.hosts.hosts, counts) if n])
        settings = {**settings, "XCCL_SIM_PROC": self.hosts.folder / "proc"}
        if self.name == "openmpi5":
            # Its collectives for several nodes put parts of derived types in wrong places (5.0.11).
            settings["OMPI_MCA_coll"] = "^han"
        return command, settings

    def placed(self, places):
        agent = self.hosts.folder / "agent"
        if self.is_mpich:
            # Intel MPI's Hydra takes the numbers of ranks from a file only.
            file = self.hosts.folder / "places"
            file.write_text("\n".join(places) + "\n")
            return ["-launcher", "rsh", "-launcher-exec", agent, "-machinefile", file]
        option = (
            ["--prtemca", "plm_ssh_agent"]
            if self.name == "openmpi5"
            else ["--mca", "plm_rsh_agent"]
        )
        return [*option, agent, "-host", ",".join(places)]

    def execute(self, front, command, env, timeout, while_running):
        """What differs from the environment of the tests, which no host has, is given to all ranks.

        Launchers forward some variables and not others, so it is in the command.
        """
        assert while_running is None, "it would see the client's process only"
        # What the tests set may be set in their environment, too: root often has Open MPI's consent.
        settings = [
            f"{k}={v}" for k, v in env.items() if os.environ.get(k) != str(v) or k.startswith(SET)
        ]
        at = len(self.build.fixed_addresses()) + 1
        command = [*command[:at], *settings, *command[at:]]
        return self.hosts.run("h0", "env", *settings, *front, *command, timeout=timeout)
