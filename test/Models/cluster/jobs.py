"""Jobs of par-run on the hosts of a Network: ranks started by hand, or by mpirun."""
import os
import signal
import subprocess
import time

TOKEN = "0123456789abcdef0123456789abcdef"


class Job:
    """Processes that have been started. Output goes to a file a process, so that no end depends on a reader."""

    def __init__(self, network, hosts, work):
        self.network, self.hosts, self.work = network, hosts, work  # hosts: of each rank
        self.processes, self.files, self.ended = [], [], {}
        self.began = time.monotonic()

    def start(self, command, environment, file, output=None):
        with open(file, "wb") as to:
            self.processes.append(subprocess.Popen(list(map(str, command)), env={**os.environ, **environment},
                                                   stdin=subprocess.DEVNULL, stdout=output or to,
                                                   stderr=subprocess.STDOUT))
        self.files.append(file)

    def await_but(self, process, seconds):
        """Until all others have ended, or the time is up. The seconds that it took."""
        began = time.monotonic()
        while time.monotonic() - began < seconds and any(other.poll() is None for other in self.processes
                                                         if other != process):
            time.sleep(0.02)
        return time.monotonic() - began

    def wait(self, seconds):
        """Until all have ended; those that have not are killed. The seconds that it took, and who did not end."""
        began, running = time.monotonic(), list(self.processes)
        while running and time.monotonic() - began < seconds:
            running = [process for process in running if process.poll() is None]
            time.sleep(0.02)
        took, hung = time.monotonic() - began, [self.processes.index(process) for process in running]
        for process in running:
            process.kill()
            process.wait()
        return took, hung

    def runs(self):
        return all(process.poll() is None for process in self.processes)

    def text(self):
        return "\n".join(file.read_text(errors="replace") for file in self.files)


class ByHand(Job):
    """A process a rank."""

    def pid(self, rank):
        return self.processes[rank].pid

    def said(self, host):
        return "".join(file.read_text(errors="replace") for file, on in zip(self.files, self.hosts) if on == host)


class ByMpirun(Job):
    """One mpirun on the first host. Its daemons write each rank's words to `outputs`, too: in those that it prints
    itself, lines of ranks run into each other."""

    def __init__(self, network, hosts, work, outputs):
        super().__init__(network, hosts, work)
        self.outputs = outputs

    def pid(self, rank):
        """Once it runs."""
        for pid in self.network.processes(self.hosts[rank]):
            try:
                with open(f"/proc/{pid}/environ", errors="replace") as environ, open(f"/proc/{pid}/comm") as name:
                    if f"OMPI_COMM_WORLD_RANK={rank}\0" in environ.read() and name.read().startswith("par-run"):
                        return pid
            except OSError:
                pass  # it ended between listing and reading
        return None

    def said(self, host):
        files = [file for file in self.outputs.rglob("std*")
                 if self.hosts[int(file.parent.name.split(".")[-1])] == host]
        return "\n".join(file.read_text(errors="replace") for file in sorted(files))


class Starter:
    """Starts jobs at ports of their own. A bundle, further flags and environment may differ by rank: each is a value,
    or a function of the rank."""

    def __init__(self, network, par_run, work):
        self.network, self.par_run, self.work, self.port, self.count = network, par_run, work, 29600, 0

    @staticmethod
    def of(value, rank):
        return value(rank) if callable(value) else value

    def next(self):
        self.count += 1
        return self.work / f"job{self.count}"

    def by_hand(self, hosts, bundle, flags, token=TOKEN, environment=None, master=None, port=None, absent=(),
                outputs=None):
        """`hosts`: of each rank. `absent`: ranks that are not started; `outputs`: where a rank writes to, if not to a
        file."""
        self.port += port is None
        job, name = ByHand(self.network, hosts, self.work), self.next()
        address = f"{master or self.network.address[hosts[0]]}:{port or self.port}"
        for rank, host in enumerate(hosts):
            if rank in absent:
                continue
            command = [*self.network.inside(host), self.par_run, self.of(bundle, rank), *self.of(flags, rank),
                       "--rank", rank, "--world", len(hosts), "--master", address]
            job.start(command, {"PAR_HOST": host, "PAR_TOKEN": token, **(self.of(environment, rank) or {})},
                      name.with_suffix(f".rank{rank}"), (outputs or {}).get(rank))
        return job

    def by_mpirun(self, hosts, bundle, flags, token=TOKEN, environment=None, port=None, more=(), address=True):
        """Ranks of a host must follow each other. Without `address` ranks do not know where rank 0 is. The agent of
        mpirun enters the namespace whose address it is given, as ssh would enter a host."""
        self.port += port is None
        name = self.next()
        outputs = name.with_suffix(".outputs")
        job = ByMpirun(self.network, hosts, self.work, outputs)
        command = [*self.network.inside(hosts[0]), "mpirun", "--allow-run-as-root", "--bind-to", "none",
                   "--output-filename", outputs, "--mca", "plm_rsh_agent", self.agent(), "--host",
                   ",".join(f"{self.network.address[host]}:{hosts.count(host)}" for host in dict.fromkeys(hosts)),
                   *more, "-x", "PAR_TOKEN", "-x", "MASTER_ADDR", "-x", "MASTER_PORT",
                   *self.ranks_script(hosts, bundle, flags, environment)]
        variables = {"PAR_TOKEN": token}
        if address:
            variables |= {"MASTER_ADDR": self.network.address[hosts[0]], "MASTER_PORT": str(port or self.port)}
        job.start(command, variables, name.with_suffix(".mpirun"))
        return job

    def ranks_script(self, hosts, bundle, flags, environment):
        """A shell that becomes the rank's par-run."""
        cases = []
        for rank, host in enumerate(hosts):
            words = [f"PAR_HOST={host}", *(f"{key}='{value}'" for key, value in
                                           (self.of(environment, rank) or {}).items())]
            command = [self.par_run, self.of(bundle, rank), *self.of(flags, rank)]
            cases.append(f"{rank}) export {' '.join(words)}; exec {' '.join(map(str, command))};;")
        script = self.next().with_suffix(".sh")
        script.write_text(f"#!/bin/sh\ncase $OMPI_COMM_WORLD_RANK in {' '.join(cases)} esac\n")
        script.chmod(0o755)
        return [script]

    def agent(self):
        path = self.work / "agent"
        cases = " ".join(f"{self.network.address[host]}) namespace={name};;"
                         for host, name in self.network.names.items())
        # Daemons of one machine would share files in one folder.
        path.write_text(f"#!/bin/sh\ncase $1 in {cases} esac\nshift\n"
                        f"export TMPDIR={self.work}/$namespace\nmkdir -p $TMPDIR\n"
                        "exec ip netns exec $namespace /bin/sh -c \"$*\"\n")
        path.chmod(0o755)
        return path


def send(pid, name):
    os.kill(pid, getattr(signal, name))
