"""A real SLURM of one node, as plain processes of this user: no systemd, no cgroups, no root.

Everything lies in one folder. GPUs are empty files that stand for device files, which is all that
SLURM looks at. Memory limits are kept by polling, since there are no cgroups.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from getpass import getuser
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
HOW = "Debian: apt-get install --no-install-recommends slurm-wlm munge"
CONFIG = """\
ClusterName=manybody
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=1
SlurmctldTimeout=300
SlurmdTimeout=300
MessageTimeout=60
EnforcePartLimits=ALL
KillWait=5
MinJobAge=3600
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=512
GresTypes=gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:toy:{gpus}
PartitionName=cpu Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes={host} MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """The programs of SLURM that this machine lacks."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


class Slurm:
    """A cluster in `folder`, up between `with` and its end. `env` is for who uses it."""

    def __init__(self, folder: Path, gpus: int = 2):
        self.folder, self.host = folder, socket.gethostname().partition(".")[0]
        self.env = {
            **{name: text for name, text in os.environ.items() if not name.startswith("SLURM_")},
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        for name in ("bin", "log", "munge", "spool", "state"):
            (folder / name).mkdir()
        # What munged wants: nobody else writes here, and its key is for this user alone.
        for path in (folder, folder / "munge"):
            path.chmod(0o711)
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        controller, daemon = _free_ports(2)
        text = CONFIG.format(
            folder=folder,
            host=self.host,
            user=getuser(),
            controller=controller,
            daemon=daemon,
            cpus=8,  # a rule may ask for several, however many there are
            memory=memory - 512,
            gpus=gpus,
        )
        (folder / "slurm.conf").write_text(text)
        for number in range(gpus):
            (folder / f"gpu{number}").touch()
        (folder / "gres.conf").write_text(
            f"NodeName={self.host} Name=gpu Type=toy File={folder}/gpu[0-{gpus - 1}] "
            "Flags=nvidia_gpu_env AutoDetect=off\n"
        )
        (folder / "cgroup.conf").touch()
        # The plugin's inner srun is called without SLURM_CONF; clusters have it in /etc.
        wrapper = folder / "bin" / "srun"
        real = shutil.which("srun")
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {real} "$@"\n')
        wrapper.chmod(0o755)

    def __enter__(self):
        munge = self.folder / "munge"
        try:
            self.call(
                "munged",
                "--force",
                f"--key-file={munge / 'key'}",
                f"--socket={munge / 'socket'}",
                f"--pid-file={self.folder / 'munged.pid'}",
                f"--log-file={self.folder / 'log' / 'munged.log'}",
                f"--seed-file={munge / 'seed'}",
            )
            self.call("slurmctld", "-i")
            self.call("slurmd", "-N", self.host)
            self.wait(lambda: self.call("sinfo", "-h", "-o", "%T").strip() == "idle", 300)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        pids = [self.folder / f"{name}.pid" for name in ("slurmctld", "slurmd", "munged")]
        try:
            if self.jobs("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
                self.call("scancel", "--user", getuser())
                self.wait(lambda: not self.jobs("RUNNING", "COMPLETING"), 300)
        finally:
            for path in pids:
                if path.exists():
                    _end(int(path.read_text()))

    def call(self, *command: str) -> str:
        """Standard output of one of SLURM's programs; an error shows what it said."""
        # Daemons keep the standard streams of who starts them: files, not pipes to wait for.
        said = self.folder / "log" / f"{command[0]}.said"
        with said.open("w") as out:
            done = subprocess.run(
                command, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            )
        text = said.read_text()
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {text}{self.log()}")
        return text

    def jobs(self, *states: str) -> list[dict[str, str]]:
        """What SLURM knows of its jobs, the oldest first; of those in `states` only, if given."""
        lines = self.call("scontrol", "--oneliner", "show", "jobs").splitlines()
        found = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in lines]
        found = [job for job in found if "JobId" in job]
        found.sort(key=lambda job: int(job["JobId"]))
        return [job for job in found if not states or job["JobState"] in states]

    def log(self) -> str:
        path = self.folder / "log" / "slurmctld.log"
        return f"\n{path.read_text()[-4000:]}" if path.exists() else ""

    def wait(self, condition, seconds: float):
        """Waits until `condition()` holds and returns what it said."""
        deadline = time.monotonic() + seconds
        while not (answer := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not so after {seconds:.0f} s{self.log()}")
            time.sleep(0.2)
        return answer


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _end(pid: int) -> None:
    """Ends a daemon and waits until it is gone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
            for _ in range(50):
                time.sleep(0.1)
                os.kill(pid, 0)
        except ProcessLookupError:
            return
