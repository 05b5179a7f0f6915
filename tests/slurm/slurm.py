"""A Slurm of several virtual nodes on one machine, started by hand: a munge of its own, a controller and one daemon per
node. Needs root and the packages of tools/packages-slurm.txt."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

CONFIG = """ClusterName=renkei-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={path}/munge/sock
CryptoType=crypto/munge
StateSaveLocation={path}/state
SlurmdSpoolDir={path}/spool/%n
SlurmctldPidFile={path}/slurmctld.pid
SlurmdPidFile={path}/slurmd.%n.pid
SlurmctldLogFile={path}/log/slurmctld
SlurmdLogFile={path}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SlurmdParameters=config_overrides
MpiDefault=pmix
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout=60
InactiveLimit=0
KillWait=5
TmpFS={path}/tmp/%n
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-{last}] CPUs=2 RealMemory=4000
PartitionName=debug Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


class Slurm:
    """with Slurm(4) as slurm: slurm.run("sbatch", …)"""

    def __init__(self, nodes):
        self.nodes = nodes

    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="renkei-slurm-"))
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        host = socket.gethostname().split(".")[0]
        for name in ("state", "log", "munge"):
            (self.path / name).mkdir()
        self.path.chmod(0o755)
        (self.path / "munge").chmod(0o700)
        key = self.path / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.path / "slurm.conf").write_text(
            CONFIG.format(path=self.path, host=host, nodes=self.nodes, last=17000 + self.nodes))
        (self.path / "cgroup.conf").write_text("CgroupAutomount=no\n")
        self.environment = {**os.environ, "SLURM_CONF": str(self.path / "slurm.conf")}
        munge = self.path / "munge"
        self.run("munged", "--force", f"--key-file={munge}/key", f"--socket={munge}/sock",
                 f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.run("slurmctld", "-f", self.path / "slurm.conf")
        for i in range(1, self.nodes + 1):
            self.start_node(f"n{i}")
        self.wait_for(lambda: self.run("sinfo", "--noheader", "-o", "%T").strip() == "idle",
                      "nodes that are idle", 60)

    def start_node(self, name):
        for kind in ("spool", "tmp"):
            (self.path / kind / name).mkdir(parents=True, exist_ok=True)
        self.run("slurmd", "-f", self.path / "slurm.conf", "-N", name)

    def kill_node(self, name):
        """As when its power fails: the daemon and all that it started are gone."""
        daemon = int((self.path / f"slurmd.{name}.pid").read_text())
        os.kill(daemon, signal.SIGKILL)
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if (f"SLURMD_NODENAME={name}".encode() in words
                    and f"SLURM_CONF={self.path}/slurm.conf".encode() in words):
                os.kill(int(entry), signal.SIGKILL)
        self.run("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=killed")

    def run(self, *words, cwd=None):
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=cwd,
                              env=self.environment, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr}{done.stdout}")
        return done.stdout

    def state(self, job):
        return self.run("scontrol", "show", "job", job, "--oneliner").split("JobState=")[1].split()[0]

    def wait_for(self, condition, what, seconds):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"no {what} within {seconds} s")
            time.sleep(0.5)

    def __exit__(self, *_):
        pids = [*self.path.glob("slurmd.*.pid"), self.path / "slurmctld.pid", self.path / "munge/pid"]
        for file in pids:
            try:
                pid = int(file.read_text())
                os.kill(pid, signal.SIGTERM)
                for _ in range(20):
                    os.kill(pid, 0)
                    time.sleep(0.25)
                os.kill(pid, signal.SIGKILL)
            except (OSError, ValueError):
                continue
        shutil.rmtree(self.path, ignore_errors=True)
