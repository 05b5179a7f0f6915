"""Several hosts on one machine: each is a network namespace (with a host name, IPC and process
namespace of its own, or MPI libraries would find each other's shared memory), linked by veth pairs
to a bridge in a namespace of its own, every link limited to a rate. Needs root and iproute2."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

NETWORK = "10.77.0"
PREFIX = "rknet"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def inside(host, *command):
    return subprocess.run(["ip", "netns", "exec", host, *command], check=True, capture_output=True,
                          text=True).stdout


class Hosts:
    """with Hosts(3, "1gbit") as hosts: hosts.mpirun(...)"""

    def __init__(self, count, rate):
        self.names = [f"{PREFIX}{i}" for i in range(count)]
        self.switch = f"{PREFIX}sw"
        self.rate = rate

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="renkei-hosts-"))
        try:
            self.make()
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise RuntimeError(f"{' '.join(error.cmd)}: {error.stderr}") from error
        return self

    def make(self):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "br0", "up")
        names = "127.0.0.1 localhost\n"
        for i, host in enumerate(self.names):
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", self.switch, "link", "add", f"p{i}", "type", "veth", "peer", "name", "eth0",
               "netns", host)
            ip("-n", self.switch, "link", "set", f"p{i}", "master", "br0")
            ip("-n", self.switch, "link", "set", f"p{i}", "up")
            ip("-n", host, "addr", "add", f"{NETWORK}.{i + 1}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
            names += f"{NETWORK}.{i + 1} {host}\n"
            for namespace, device in ((host, "eth0"), (self.switch, f"p{i}")):
                inside(namespace, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate",
                       self.rate, "burst", "256kb", "latency", "20ms")
        for host in self.names:  # `ip netns exec` mounts these over /etc
            Path(f"/etc/netns/{host}").mkdir(parents=True, exist_ok=True)
            Path(f"/etc/netns/{host}/hosts").write_text(names)
        # Stands in for ssh: AGENT [options] HOST COMMAND…
        self.agent = self.directory / "agent"
        self.agent.write_text(f"""#!/bin/bash
while [ "${{1#-}}" != "$1" ]; do case $1 in -l|-o|-p|-i) shift 2;; *) shift;; esac; done
host=$1; shift
mkdir -p {self.directory}/$host
exec ip netns exec "$host" unshare --uts --ipc --pid --fork --mount-proc \\
  bash -c "hostname $host; export TMPDIR={self.directory}/$host; cd $PWD; $*"
""")
        self.agent.chmod(stat.S_IRWXU)

    def __exit__(self, *_):
        for name in [*self.names, self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def sent_bytes(self):
        """What has left each host over the network so far."""
        return [int(inside(host, "cat", "/sys/class/net/eth0/statistics/tx_bytes"))
                for host in self.names]

    def mpirun(self, ranks_per_host, *command, by_node=False, timeout=120, environment=None):
        """Open MPI over the hosts; by_node deals the ranks out in turn, so that neighbours in rank
        order sit on different hosts."""
        hostfile = self.directory / "hostfile"
        hostfile.write_text("".join(f"{host} slots={ranks_per_host}\n" for host in self.names))
        mapping = "node" if by_node else f"ppr:{ranks_per_host}:node"
        launch = [os.environ.get("RENKEI_MPI_LAUNCHER", "mpirun.openmpi"), "--allow-run-as-root",
                  "--leave-session-attached", "--hostfile", hostfile, "-np",
                  len(self.names) * ranks_per_host, "--map-by", mapping, "--bind-to", "none",
                  "--mca", "plm_rsh_agent", self.agent, "--mca", "plm_rsh_no_tree_spawn", 1,
                  "--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0",
                  "--mca", "btl", "self,vader,tcp", "--mca", "pml", "ob1",
                  "--mca", "mpi_yield_when_idle", 1]
        words = [str(self.agent), self.names[0], *map(str, launch), *map(str, command)]
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **(environment or {})})


if __name__ == "__main__":  # hosts.py COUNT RATE RANKS_PER_HOST COMMAND…: for trying things out
    with Hosts(int(sys.argv[1]), sys.argv[2]) as hosts:
        done = hosts.mpirun(int(sys.argv[3]), *sys.argv[4:])
        print(done.stdout, done.stderr, "sent:", hosts.sent_bytes())
