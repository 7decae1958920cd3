# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of two nodes on this machine, in namespaces of its own.

All of it is in one PID namespace, whose first process dies with the test (setpriv --pdeathsig,
unshare --kill-child): nothing is left, however the test ends. Each node has a network and a name
of its own. They share processes and /dev/shm, through which the simulated accelerators talk.
Nothing is visible from outside, so two of these can run side by side.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from running_clock import communicate, now

NODES = ("xccl-n0", "xccl-n1")
PROGRAMS = (
    "slurmctld",
    "slurmd",
    "srun",
    "sbatch",
    "unshare",
    "nsenter",
    "setpriv",
    "ip",
    "mknod",
)
START_SECONDS = 30

SLURM_CONF = """
ClusterName={cluster}
SlurmctldHost={n0}(10.77.0.1)
AuthType=auth/none
CredType=cred/none
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin={task_plugin}
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/slurmd.%n.log
TmpFS={folder}/tmp.%n
SlurmdTimeout=30
InactiveLimit=0
KillWait=2
LaunchParameters=enable_nss_slurm
NodeName={n0} NodeAddr=10.77.0.1 CPUs={cpus} Gres=gpu:{gpus} State=UNKNOWN
NodeName={n1} NodeAddr=10.77.0.2 CPUs={cpus} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=all Nodes={n0},{n1} Default=YES MaxTime=5 OverSubscribe=FORCE:8 State=UP
"""

# In the namespaces of the first node, where the controller lives, too.
INIT = """
export SLURM_CONF={folder}/slurm.conf
mount -t tmpfs tmpfs /dev/shm
hostname {n0}
ip link set lo up
here=$(readlink /proc/self/ns/net)
unshare --net --uts sh -c '
    hostname {n1}
    ip link set lo up
    while ! ip link set xn up 2>/dev/null; do sleep 0.02; done
    ip addr add 10.77.0.2/24 dev xn
    exec slurmd -D -N {n1}' &
other=$!
while [ "$(readlink /proc/$other/ns/net)" = "$here" ]; do sleep 0.02; done
ip link add xn type veth peer name xn netns $other
ip addr add 10.77.0.1/24 dev xn
ip link set xn up
slurmctld -D &
slurmd -D -N {n0} &
wait
"""

SPACES = ("--net", "--pid", "--mount", "--ipc", "--uts")


class NoSlurm(Exception):
    """What is missing here."""


def check_possible():
    if os.geteuid() != 0:
        raise NoSlurm("needs root, for namespaces and slurmd")
    missing = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    if missing:
        raise NoSlurm(f"not installed: {', '.join(missing)} (Debian: slurm-wlm, iproute2)")
    probe = ["unshare", *SPACES, "--fork", "--mount-proc", "true"]
    refused = subprocess.run(probe, capture_output=True, text=True, check=False)
    if refused.returncode:
        raise NoSlurm(f"this container allows no namespaces: {refused.stderr.strip()}")


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Cluster:
    """Nodes as they are, with task/affinity; or, with cpus, wider than they are and unbound."""

    def __init__(self, folder, cpus=None, gpus=4):
        self.folder = Path(folder)
        self.gpus = gpus
        self.cpus = cpus or os.cpu_count()
        self.task_plugin = "task/none" if cpus else "task/affinity"
        self.init = None
        self.env = dict(os.environ, PATH=search_path())

    def __enter__(self):
        check_possible()
        try:
            self.write_files()
            self.start()
            self.wait_idle()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def write_files(self):
        facts = {
            "folder": self.folder,
            "n0": NODES[0],
            "n1": NODES[1],
            "cluster": "xccltest",
            "cpus": self.cpus,
            "gpus": self.gpus,
            "task_plugin": self.task_plugin,
        }
        for name in NODES:
            (self.folder / f"tmp.{name}").mkdir(parents=True)
            (self.folder / f"spool.{name}").mkdir()
        (self.folder / "state").mkdir()
        (self.folder / "dev").mkdir()
        (self.folder / "slurm.conf").write_text(SLURM_CONF.format(**facts))
        gres = ["AutoDetect=off"]
        for gpu in range(self.gpus):
            device = self.folder / "dev" / f"nvidia{gpu}"
            subprocess.run(["mknod", device, "c", "1", "3"], check=True)  # Slurm wants a device
            gres += [f"NodeName={name} Name=gpu File={device}" for name in NODES]
        (self.folder / "gres.conf").write_text("\n".join(gres) + "\n")

    def start(self):
        script = INIT.format(folder=self.folder, n0=NODES[0], n1=NODES[1])
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", *SPACES]
        command += ["--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
        with (self.folder / "init.log").open("w") as log:
            self.init = subprocess.Popen(
                command,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.inside = self.first_process()

    def first_process(self):
        """PID of the first process in the namespaces, as seen from outside."""
        children = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children")
        end = now() + START_SECONDS
        while now() < end:
            pids = children.read_text().split()
            if pids:
                return pids[0]
            time.sleep(0.02)
        raise NoSlurm(f"the namespaces did not start\n{self.logs()}")

    def wait_idle(self):
        end = now() + START_SECONDS
        state = ""
        while now() < end:
            asked = self.run("sinfo", "-h", "-o", "%T %D", timeout=15)
            state = (asked.stdout + asked.stderr).strip()
            if state == f"idle {len(NODES)}":
                return
            time.sleep(0.1)
        raise NoSlurm(f"the nodes did not come up: {state}\n{self.logs()}")

    def logs(self):
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {file.name}\n{file.read_text()[-2000:]}" for file in files)

    def run(self, *command, env=None, timeout=60):
        """Run a client on the first node; after the time limit it is killed."""
        enter = ["nsenter", f"--wd={self.folder}", "-t", self.inside, "-n", "-p", "-m", "-i", "-u"]
        variables = dict(env or self.env, PATH=search_path())
        variables["SLURM_CONF"] = str(self.folder / "slurm.conf")
        process = subprocess.Popen(
            [*enter, "timeout", "-k", "2", str(timeout), *map(str, command)],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = communicate(process, timeout + 10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def stop(self):
        """The first process of a PID namespace takes all others with it."""
        if self.init is not None:
            self.init.kill()
            self.init.wait(timeout=10)
            self.init = None
