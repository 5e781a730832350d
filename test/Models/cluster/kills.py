"""Ranks killed or stopped at random times: every job ends within 10 s, and every host names the rank."""
import pathlib
import random
import re
import time

from jobs import Job, Starter, send
from network import Network
from troubles import ENDS_WITHIN, GIVE_UP, LOOKS, Troubles

# Plans of tiny-gpt by name, with their ranks.
PLANS = {
    "dp2": (2, ["mesh.dp=2"]),
    "tp2": (2, ["mesh.tp=2", "use=[megatron]"]),
    "pp2": (2, ["mesh.pp=2", "batch.microbatches=4", "pipeline.cuts={h.*: even}"]),
    "dp4": (4, ["mesh.dp=4"]),
    "tp4": (4, ["mesh.tp=4", "use=[megatron]"]),
    "pp4": (4, ["mesh.pp=4", "batch.microbatches=4", "pipeline.cuts={h.*: even}"]),
    "interleaved": (4, ["mesh.pp=2", "mesh.dp=2", "batch.microbatches=4", "pipeline.stages=4",
                        "pipeline.schedule=interleaved", "pipeline.cuts={h.*: even}"]),
    "zero1": (4, ["mesh.dp=4", "zero={level: 1, min_size: 0}"]),
    "zero2": (4, ["mesh.dp=2", "mesh.tp=2", "use=[megatron]", "zero={level: 2, min_size: 0}"]),
    "zero3": (4, ["mesh.dp=4", "zero={level: 3, min_size: 0}"]),
    "dp2tp2pp2": (8, ["mesh.pp=2", "mesh.dp=2", "mesh.tp=2", "use=[megatron]", "batch.microbatches=2",
                      "pipeline.cuts={h.*: even}"]),
    "zero3-8": (8, ["mesh.dp=8", "zero={level: 3, min_size: 0}"]),
    "dp16": (16, ["mesh.dp=16"]),
    "pp4dp2tp2": (16, ["mesh.pp=4", "mesh.dp=2", "mesh.tp=2", "use=[megatron]", "batch.microbatches=2",
                       "pipeline.cuts={h.*: even}"]),
}
COMMS = ["shm", "launched", "tcp", "tcp", "mpi"]  # launched: by hand, all on one host
JOIN = 6  # seconds


class Alone(Job):
    """par-run -n, whose ranks are its children in order."""

    def pid(self, rank):
        parent = self.processes[0].pid
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return int(children[rank]) if rank < len(children) else None

    def said(self, host):
        return self.text()


class Kills:
    def __init__(self, trial, seed, comms=None):
        self.trial, self.choose = trial, random.Random(seed)
        self.comms = [comm for comm in COMMS if not comms or (comm if comm == "mpi" else "tcp") in comms]
        self.slowest, self.hung, self.unnamed, self.counts = 0.0, 0, 0, {}
        print(f"kills: seed {seed}", flush=True)

    def play(self, count):
        network = Network("abcd")
        try:
            troubles = Troubles(self.trial, network, Starter(network, self.trial.bin / "par-run", self.trial.work), {})
            troubles.others = "" if self.comms == ["mpi"] else "vader"  # Open MPI's, of another campaign
            for number in range(count):
                self.one(number, troubles)
        finally:
            network.close()
        kinds = ", ".join(f"{kind} {times}" for kind, times in sorted(self.counts.items()))
        self.trial.claim(f"{count} kills: {self.hung} hangs above {ENDS_WITHIN} s, {self.unnamed} unnamed, the slowest "
                         f"end after {self.slowest:.1f} s; {kinds}", not self.hung and not self.unnamed)

    def draw(self):
        """Plan, communicator and the host of each rank: as many as possible have equally many."""
        plan, comm = self.choose.choice(list(PLANS)), self.choose.choice(self.comms)
        ranks = PLANS[plan][0]
        several = self.choose.choice([count for count in (2, 3, 4) if count <= ranks]) if comm in ("tcp", "mpi") else 1
        return plan, comm, "".join("abcd"[rank * several // ranks] for rank in range(ranks))

    def start(self, troubles, plan, comm, hosts, metrics):
        bundle = self.trial.bundle(f"kill-{plan}", ["batch.size=16", *PLANS[plan][1]])
        more = ["--join-timeout", JOIN, "--comm", "shm" if comm in ("shm", "launched") else comm]
        flags, starter = troubles.flags(metrics, more=more), troubles.starter
        if comm != "shm":
            return starter.by_mpirun(hosts, bundle, flags, more=LOOKS) if comm == "mpi" else starter.by_hand(
                hosts, bundle, flags)
        job = Alone(troubles.network, hosts, self.trial.work)
        job.start([*troubles.network.inside("a"), starter.par_run, bundle, *flags[:-4], *flags[-2:], "-n", len(hosts)],
                  {}, starter.next().with_suffix(".alone"))
        return job

    def one(self, number, troubles):
        plan, comm, hosts = self.draw()
        victim, signal = self.choose.randrange(len(hosts)), self.choose.choice(["SIGKILL", "SIGKILL", "SIGSTOP"])
        early, pause = self.choose.random() < 0.2, self.choose.random()
        title = f"kill {number}: {plan} {comm} {hosts}, {signal} to rank {victim}"
        title += f", {pause:.2f} s after the {'start' if early else 'first steps'}"
        metrics = troubles.metrics()
        job = self.start(troubles, plan, comm, hosts, metrics)
        if not early and not troubles.runs(metrics, 2, 60):
            job.wait(0)
            self.trial.claim(f"{title}: runs before", False, job.text())
            return
        time.sleep(pause)
        while job.pid(victim) is None and job.processes[0].poll() is None:
            time.sleep(0.02)
        send(job.pid(victim), signal)
        took = 0.0
        lonely = early or hosts.count(hosts[victim]) == 1
        if lonely and signal == "SIGSTOP" and comm in ("launched", "tcp"):
            # No rank can end one that has not joined yet, or is the only one of its host. It goes on when the others
            # have ended, and ends then.
            took = job.await_but(job.processes[victim], GIVE_UP)
            if job.processes[victim].poll() is None:
                send(job.pid(victim), "SIGCONT")
        rest, hung = job.wait(GIVE_UP)
        took = max(took, rest)
        late = bool(hung) or took > ENDS_WITHIN
        unnamed = [host for host in dict.fromkeys(hosts)
                   if set(ranks_on(hosts, host)) != {victim} and not self.names(job, comm, hosts, victim, host)]
        self.slowest, self.hung, self.unnamed = max(self.slowest, took), self.hung + late, self.unnamed + bool(unnamed)
        for kind in (comm, signal, f"{len(hosts)} ranks"):
            self.counts[kind] = self.counts.get(kind, 0) + 1
        said = "\n".join(f"{host}: {job.said(host)}" for host in dict.fromkeys(hosts))
        self.trial.claim(f"{title}: named, ended after {took:.1f} s", not late and not unnamed,
                         f"unnamed by {unnamed}, hung {hung}; {said}")
        troubles.nothing_left(title)

    @staticmethod
    def names(job, comm, hosts, victim, host):
        """The rank, or its host as a whole. Before the ranks of mpirun know each other, mpirun names it."""
        ranks = ", ".join(map(str, ranks_on(hosts, hosts[victim])))
        words = (rf"\brank {victim}\b|host {hosts[victim]} \(ranks? {ranks}\)|missing: ([\d, ]*\D)?{victim}\b")
        mpirun = rf"process rank {victim} with PID \d+ on node \S+ exited on signal 9" if comm == "mpi" else None
        return re.search(words, job.said(host)) or (mpirun and re.search(mpirun, job.text()))


def ranks_on(hosts, host):
    return [rank for rank, on in enumerate(hosts) if on == host]
