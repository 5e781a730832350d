"""Troubles of a job on several hosts: the harm, and the words that each host then has to say."""
import contextlib
import fcntl
import json
import os
import re
import subprocess
import threading
import time

from jobs import send

GROUPS = ["ranks", "links", "flap", "slow", "starts", "rendezvous", "two-jobs", "full-pipe", "no-address"]
ENDS_WITHIN, GIVE_UP = 10, 25  # seconds
ENOUGH = 600  # for the steps of a job that goes on, however busy the machine is
NOTICED = r"; noticed by rank \d+ in \w+, \S+, after \d+\.\d s; nothing was saved"
# mpirun waits for a host that has gone for as long as TCP does, unless it is told to look. It must see it before it
# wants to tell that host anything.
LOOKS = [word for key, value in (("time", 2), ("intvl", 1), ("probes", 2))
         for word in ("--mca", f"oob_tcp_keepalive_{key}", str(value))]


def lost(rank, host, how):
    return rf"error: rank {rank} \(dp {rank}\) on {host} {how} in step \d+{NOTICED}"


def gone(host, ranks):
    """As a warning, too: mpirun that loses a host ends without what its ranks say last."""
    listed = ", ".join(map(str, ranks))
    named = rf"host {host} \(ranks? {listed}\)"
    return (rf"(error: {named} stopped answering in step \d+: its network is down, or rank {ranks[0]} there is stopped"
            rf"{NOTICED}|warning: {named} has been silent for \d\.\d s in step \d+; noticed by rank \d+ in \w+, \S+; )")


class Troubles:
    """`bundles`: name -> path of a bundle; `trial` judges and prints claims."""

    def __init__(self, trial, network, starter, bundles):
        self.trial, self.network, self.starter, self.bundles = trial, network, starter, bundles
        self.shared = set(os.listdir("/dev/shm"))
        self.others = ""  # how names of memory begin that is not this job's

    def flags(self, metrics, steps=1000000, more=()):
        return ["--init", "--text", self.trial.text, "--steps", steps, "--metrics", metrics, "-q", *more]

    def metrics(self):
        return self.starter.next().with_suffix(".jsonl")

    @staticmethod
    def losses(metrics):
        text = metrics.read_text() if metrics.exists() else ""
        return [json.loads(line)["loss"] for line in text.splitlines() if "loss" in line]

    def runs(self, metrics, steps=3, seconds=30):
        """Whether the job has made some steps."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if len(self.losses(metrics)) >= steps:
                return True
            time.sleep(0.05)
        return False

    def start(self, comm, hosts, bundle="dp4", metrics=None, steps=1000000, more=(), **how):
        """By hand for tcp, by mpirun for mpi."""
        flags = self.flags(metrics or self.metrics(), steps, ["--comm", comm, *more])
        bundle = self.bundles[bundle] if isinstance(bundle, str) else bundle
        begin = self.starter.by_mpirun if comm == "mpi" and not how.pop("by_hand", False) else self.starter.by_hand
        if begin == self.starter.by_mpirun:
            how.setdefault("more", LOOKS)
        return begin(hosts, bundle, flags, **how)

    def end(self, name, job, expected, left=True):
        """The job has to end, and each host to say what is expected of it."""
        took, hung = job.wait(GIVE_UP)
        for host, words in expected.items():
            said = job.said(host)
            self.trial.claim(f"{name}: host {host} says so", re.search(words, said), f"{words}\nit says: {said}")
        self.trial.claim(f"{name}: all had ended after {took:.1f} s", not hung and took < ENDS_WITHIN, job.text())
        if left:
            self.nothing_left(name)

    def memory_left(self):
        """Memory with a name."""
        found = sorted(set(os.listdir("/dev/shm")) - self.shared)
        return [name for name in found if not self.others or not name.startswith(self.others)]

    def nothing_left(self, name, seconds=2, look=None):
        for _ in range(10 * seconds):  # the kernel takes a moment
            left = (look or self.network.left)() + self.memory_left()
            if not left:
                break
            time.sleep(0.1)
        self.trial.claim(f"{name}: nothing is left over", not left, left)

    def harmed(self, name, comm, hosts, harm, expected, left=True, **how):
        """A job that runs until `harm(job)`."""
        metrics = self.metrics()
        job = self.start(comm, hosts, metrics=metrics, **how)
        name = f"{name}, {comm}"
        if not self.trial.claim(f"{name}: runs before", self.runs(metrics), job.text()):
            job.wait(0)
            return
        harm(job)
        self.end(name, job, expected, left)

    # Faults while the job runs.

    def ranks(self, comm):
        """Ranks 0 and 1 on host a, 2 and 3 on host b; 2 leads b."""
        for rank in (0, 1, 2, 3):
            host = "aabb"[rank]
            ended = dict.fromkeys("ab", lost(rank, host, "ended"))
            self.harmed(f"rank {rank} killed", comm, "aabb", lambda job: send(job.pid(rank), "SIGKILL"), ended)
            # Its host kills a rank that does not answer; a leader's end may be seen, or its whole host be missed first.
            alike = lost(rank, host, "(stopped answering|ended)")
            if rank in (0, 2):
                alike = f"({alike}|{gone(host, [rank, rank + 1])})"
            self.harmed(f"rank {rank} stopped", comm, "aabb", lambda job: send(job.pid(rank), "SIGSTOP"),
                        dict.fromkeys("ab", alike))

    def links(self, comm):
        def harm(job):
            self.network.link("b", "down")

        ends = {"a": gone("b", [2, 3]), "b": gone("a", [0, 1])}
        self.harmed("link down", comm, "aabb", harm, ends, left=comm == "tcp")
        if comm == "mpi":
            self.nothing_left("link down, mpi, ranks", ENDS_WITHIN, self.network.ranks_left)
        self.network.link("b", "up")
        if comm == "mpi":  # its daemon on b tries to send until a answers that mpirun is gone
            self.nothing_left("link up again, mpi", 20)
        if comm == "tcp":
            told = gone("c", [2])
            self.harmed("link of one of four down", comm, "abcd", lambda job: self.network.link("c", "down"),
                        {"a": told, "b": told, "c": gone("a", [0]), "d": told})
            self.network.link("c", "up")
        self.harmed("host killed whole", comm, "aabb", lambda job: self.network.kill("b"),
                    {"a": f"({lost(2, 'b', 'ended')}|{lost(3, 'b', 'ended')}|{gone('b', [2, 3])})"})

    def flap(self, comm):
        """Two seconds without a link are survived."""
        metrics = self.metrics()
        job = self.start(comm, "aabb", metrics=metrics, steps=150)
        running = self.runs(metrics)
        self.network.link("b", "down")
        time.sleep(2)
        during = len(self.losses(metrics))
        self.network.link("b", "up")
        took, hung = job.wait(ENOUGH)
        self.trial.claim(f"link away for 2 s, {comm}: survived, with the losses of one host, bit for bit",
                         running and not hung and during < 150 and self.losses(metrics) == self.trial.alone("dp4", 150),
                         job.text())
        self.nothing_left(f"link away for 2 s, {comm}")

    def slow(self, comm):
        """At 1 Mb/s an exchange of gradients takes longer than --timeout: no false alarm."""
        metrics = self.metrics()
        self.network.limit("1mbit")
        job = self.start(comm, "ab", bundle="dp2", metrics=metrics, steps=1)
        took, hung = job.wait(ENOUGH)
        self.network.limit("10gbit")
        self.trial.claim(f"link of 1 Mb/s, {comm}: the step of {took:.0f} s ends right",
                         not hung and took > 10 and self.losses(metrics) == self.trial.alone("dp2", 1), job.text())
        self.nothing_left(f"link of 1 Mb/s, {comm}")

    def full_pipe(self):
        """Nobody reads what rank 0 says: the job waits for its reader as any program does, and ends when a rank is
        lost."""
        for killed in (False, True):
            name, metrics = f"full pipe{', rank 3 killed' if killed else ''}, tcp", self.metrics()
            read, write = os.pipe()
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
            flags = self.flags(metrics, 150, ["--comm", "tcp", "--log-every", "1"])
            flags.remove("-q")
            job = self.starter.by_hand("aabb", self.bundles["dp4"], flags, outputs={0: write})
            os.close(write)
            self.runs(metrics)
            stood = self.stands(metrics)
            self.trial.claim(f"{name}: stands still", stood and job.runs(), job.text())
            if killed:
                send(job.pid(3), "SIGKILL")
                self.end(name, job, {"b": lost(3, "b", "ended")})
                os.close(read)
                continue
            time.sleep(7)
            self.trial.claim(f"{name}: no alarm in 7 s", job.runs(), job.text())
            reader = threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(read, 65536), b"")])
            reader.start()
            took, hung = job.wait(ENOUGH)
            reader.join()
            os.close(read)
            self.trial.claim(f"{name}: goes on when it is read, and ends",
                             not hung and len(self.losses(metrics)) == 150, job.text())

    def stands(self, metrics, seconds=40):
        """Whether a running job makes no more steps."""
        began, last, since = time.monotonic(), -1, time.monotonic()
        while time.monotonic() - began < seconds:
            count = len(self.losses(metrics))
            if count != last:
                last, since = count, time.monotonic()
            elif time.monotonic() - since > 2:
                return 0 < count < 150
            time.sleep(0.1)
        return False

    # Jobs that were started wrong.

    def starts(self, comm):
        stale = r"error: rank 2 on b holds (plan|bundle) \w+, the 2 others \w+: its copy of the bundle is stale"
        of_hosts = lambda rank: self.bundles["dp4" if rank < 2 else "other"]
        self.started(f"wrong bundle on one host, {comm}", comm, dict.fromkeys("ab", stale), bundle=of_hosts)
        stub = {"PAR_MPI_LIBRARY": self.trial.stub_mpi}
        mixed = r"error: rank 3 on b has Open MPI 4\.0\.3, rank 0 on a has Open MPI 4\.\d\.\d; --comm mpi needs one"
        self.started(f"another MPI version, {comm}", "mpi", dict.fromkeys("ab", mixed), by_hand=comm == "tcp",
                     environment=lambda rank: {**(stub if comm == "tcp" or rank == 3 else {}),
                                               **({"PAR_STUB_MPI_VERSION": "Open MPI v4.0.3, x"} if rank == 3 else {})})

    def started(self, name, comm, expected, left=True, **how):
        self.end(name, self.start(comm, "aabb", more=["--join-timeout", "6"], **how), expected, left)

    def rendezvous(self):
        wait = "; it tries for 6 s"
        unknown = r"host \"nosuch\.invalid\" of the rendezvous is unknown here"
        self.started("name of no host, tcp", "tcp", dict.fromkeys("ab", unknown), master="nosuch.invalid")
        other = f"who listens there has another secret: another job, or another PAR_TOKEN{wait}"
        missing = r"error: only 3 of 4 ranks came in time; missing: 3; \d+ connections did not show the job's secret"
        self.started("another secret, tcp", "tcp", {"a": missing, "b": other},
                     environment=lambda rank: {"PAR_TOKEN": "another-secret-of-a-job"} if rank == 3 else {})
        self.started("host that never comes, tcp", "tcp", {"a": "error: only 2 of 4 ranks came in time; missing: 2, 3"},
                     absent=(2, 3))
        with self.stranger(29599):
            self.started("port that is taken, tcp", "tcp",
                         {"a": "error: port 29599 on 10.77.0.1 is in use; give --master 10.77.0.1:PORT",
                          "b": f"rank [23] waits for rank 0 at 10.77.0.1:29599: who listens there is no rank 0 of Par"},
                         port=29599, left=False)
        self.nothing_left("port that is taken, tcp")

    @contextlib.contextmanager
    def stranger(self, port):
        """A listener on host a that is no rank 0."""
        code = f"import socket, time; s = socket.create_server(('', {port})); print(1, flush=True); time.sleep(99)"
        process = subprocess.Popen([*self.network.inside("a"), "python3", "-c", code], stdout=subprocess.PIPE)
        process.stdout.readline()
        yield
        process.kill()
        process.wait()
        process.stdout.close()

    def no_address(self):
        missing = r"error: OMPI_COMM_WORLD_LOCAL_SIZE says that 2 of 4 ranks run on this host, and MASTER_ADDR is not"
        self.started("mpirun without MASTER_ADDR, mpi", "mpi", dict.fromkeys("ab", missing), address=False)

    def two_jobs(self):
        """Another secret at one port: the second job says so and the first goes on. One secret at two ports: both."""
        metrics = [self.metrics(), self.metrics()]
        first = self.start("tcp", "aabb", metrics=metrics[0], steps=400)
        self.runs(metrics[0])
        busy = rf"error: port {self.starter.port} on 10\.77\.0\.1 is in use"
        second = self.start("tcp", "aabb", more=["--join-timeout", "6"], token="another-secret-of-a-job",
                            port=self.starter.port)
        self.end("second job at the port of the first, tcp", second,
                 {"a": busy, "b": "who listens there has another secret: another job, or another PAR_TOKEN"}, False)
        third = self.start("tcp", "aabb", metrics=metrics[1], steps=20)
        hung = first.wait(ENOUGH)[1] + third.wait(ENOUGH)[1]
        self.trial.claim("two jobs of one secret and the one beside them end right, tcp",
                         not hung and self.losses(metrics[0]) == self.trial.alone("dp4", 400) and
                         self.losses(metrics[1]) == self.trial.alone("dp4", 400)[:20], first.text() + third.text())
        self.nothing_left("two jobs, tcp")

    def play(self, comm, groups):
        mine = {"ranks": self.ranks, "links": self.links, "flap": self.flap, "slow": self.slow, "starts": self.starts}
        more = {"rendezvous": self.rendezvous, "two-jobs": self.two_jobs, "full-pipe": self.full_pipe}
        for name in groups or GROUPS:
            if name in mine:
                mine[name](comm)
            elif comm == "tcp" and name in more:
                more[name]()
            elif comm == "mpi" and name == "no-address":
                self.no_address()
