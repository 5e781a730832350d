"""Jobs under faults: ranks of one host (par-run -n), or of two hosts that are network namespaces; and a small disk."""
import os
import pathlib
import subprocess
import time

from jobs import Starter
from network import Network

TIMEOUT = 2  # seconds of --timeout on two hosts: a link that is down for longer loses its host


def children(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def signal_to(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class OneHost:
    """par-run -n: one supervisor of all ranks."""
    title = "one host"

    def __init__(self, par_run, work):
        self.par_run, self.work, self.supervisors, self.count = par_run, work, [], 0

    def start(self, bundle, world, flags):
        self.count += 1
        self.log = self.work / f"alone{self.count}.log"
        with self.log.open("w") as output:
            self.supervisors = [subprocess.Popen([self.par_run, bundle, "-n", str(world), *map(str, flags)],
                                                 stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)]

    def ranks(self):
        return [rank for one in self.supervisors for rank in children(one.pid)]

    def runs(self):
        return any(one.poll() is None for one in self.supervisors)

    def codes(self):
        return [one.poll() for one in self.supervisors]

    def descriptors(self):
        return sum(len(list(pathlib.Path(f"/proc/{one.pid}/fd").iterdir())) for one in self.supervisors
                   if one.poll() is None)

    def text(self):
        """The output on rank 0's host."""
        return self.log.read_text(errors="replace")

    def said(self):
        """The output of all."""
        return self.text()

    def close(self):
        for one in self.supervisors:
            if one.poll() is None:
                one.kill()
            one.wait()


class TwoHosts(OneHost):
    """A supervisor a rank, half of them on each host, by tcp."""
    title = "two hosts"

    def __init__(self, par_run, work):
        super().__init__(par_run, work)
        self.network = Network("ab")
        self.starter = Starter(self.network, par_run, work)

    def start(self, bundle, world, flags):
        hosts = "a" * (world // 2) + "b" * (world - world // 2)
        self.job = self.starter.by_hand(hosts, bundle, [*flags, "--timeout", TIMEOUT])
        self.supervisors = self.job.processes

    def text(self):
        return self.job.files[0].read_text(errors="replace")

    def said(self):
        return self.job.text()

    def link(self, state):
        self.network.link("b", state)

    def close(self):
        super().close()
        self.network.close()


class Disk:
    """A file system of its own, in memory, that can be full. Needs root."""

    def __init__(self, folder, mebibytes):
        self.folder = folder
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "par-faults", str(folder)], check=True)

    def fill(self):
        zeros = bytes(1 << 16)
        with (self.folder / "full").open("wb", buffering=0) as file:
            try:
                while file.write(zeros) == len(zeros):
                    pass
            except OSError:
                pass  # it is full

    def free(self):
        (self.folder / "full").unlink(missing_ok=True)

    def close(self):
        for _ in range(50):
            if subprocess.run(["umount", str(self.folder)], check=False, capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
