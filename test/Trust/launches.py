#!/usr/bin/env python3
"""Launches with and without a fault, and with strangers at the port: the trials `launches` of trust.py.

    launches.py --bin build/bin [--count N] [--seed S] [--first N] [--keep] [--each]

Each trial starts the four ranks of a job as a launcher or a person would, mostly with something wrong, and states the
exit codes and the words that it expects of each rank. Counted are crashes (a signal that the trial did not send), hangs
(no end 10 s after the time that the trial itself takes), wrong ends, and messages without the culprit's name.
"""
import os
import pathlib
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import trials

MODEL = pathlib.Path(__file__).resolve().parent.parent / "Models/mlp"
WORLD = 4
LAUNCHERS = {
    "hand": lambda r, w, port: ({}, ["--rank", str(r), "--world", str(w), "--master", f"127.0.0.1:{port}"]),
    "torchrun": lambda r, w, port: ({"RANK": r, "WORLD_SIZE": w, "LOCAL_RANK": r, "MASTER_ADDR": "127.0.0.1",
                                     "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "trial"}, []),
    "mpi": lambda r, w, port: ({"OMPI_COMM_WORLD_RANK": r, "OMPI_COMM_WORLD_SIZE": w, "OMPI_COMM_WORLD_LOCAL_RANK": r,
                                "PMIX_NAMESPACE": "n7", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}, []),
    "slurm": lambda r, w, port: ({"SLURM_PROCID": r, "SLURM_NTASKS": w, "SLURM_LOCALID": r, "SLURM_JOB_ID": 77,
                                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}, []),
}
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "TORCHELASTIC", "OMPI_", "PMI", "SLURM_", "PAR_")
TOKEN = {"PAR_TOKEN": "a secret of this trial alone"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def handles_signals(pid):
    """Whether the process has begun to handle SIGTERM; before that it is not Par's yet."""
    try:
        caught = re.search(r"SigCgt:\s*([0-9a-f]+)", open(f"/proc/{pid}/status").read())
        return caught and int(caught.group(1), 16) >> (signal.SIGTERM - 1) & 1
    except OSError:
        return False


def frame(kind, body, more=0):
    """A message between ranks and host (runtime/src/comm/job/Serialization.cpp)."""
    return struct.pack("<IBB2s", len(body), kind, more, b"PR") + body


def text(value):
    """A text in the body of a message."""
    return struct.pack("<Q", len(value)) + value


class Rank:
    """One process of a job."""

    def __init__(self, trial, arguments, environment=None, limit=None, stack=None, out=subprocess.PIPE):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        clean.update({k: str(v) for k, v in (environment or {}).items()})
        limits = [(resource.RLIMIT_NOFILE, limit), (resource.RLIMIT_STACK, stack and stack << 10)]

        def before():
            for kind, most in limits:
                if most:
                    resource.setrlimit(kind, (most, most))
        self.arguments = arguments
        self.process = subprocess.Popen([trial.run, trial.bundle, *arguments], env=clean, preexec_fn=before,
                                        stdout=out, stderr=subprocess.PIPE, text=True, errors="replace",
                                        cwd=trial.folder)
        trial.ranks.append(self)
        self.sent = set()

    def send(self, number):
        """Sends a signal; an end by it is no crash."""
        self.sent.add(number)
        self.process.send_signal(number)

    def end(self, deadline):
        """The exit code; None where it had to be killed at the deadline."""
        try:
            self.out, self.said = self.process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.said = self.process.communicate()
            return None
        return self.process.returncode


class Trial:
    """The processes of one trial, the strangers beside them, and what went wrong."""

    def __init__(self, rng, setting):
        self.rng = rng
        self.run, self.bundle, self.folder = setting
        self.ranks, self.sockets, self.threads, self.faults = [], [], [], []
        self.port = free_port()
        self.ends = threading.Event()

    def rank(self, number, launcher="hand", world=WORLD, environment=None, more=(), limit=None, count="3"):
        """Starts a rank as the launcher would; `limit`: descriptors that it may have, `count`: steps."""
        variables, flags = LAUNCHERS[launcher](number, world, self.port)
        steps = ["--init", "--data", str(MODEL / "data.safetensors"), "--steps", count, "-q"]
        return Rank(self, [*flags, *steps, *more], {**variables, **(environment or {})}, limit)

    def dial(self, seconds=5.0):
        """A connection to the port, as soon as somebody listens there."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=2)
                self.sockets.append(connection)
                return connection
            except OSError:
                time.sleep(0.02)
        return None

    def pester(self):
        """Strangers at the port until the trial ends."""
        def loop(seed):
            rng = random.Random(seed)
            while not self.ends.is_set():
                connection = self.dial(0.5)
                if connection:
                    try:
                        connection.settimeout(0.2)
                        said = connection.recv(200)
                        connection.sendall(nonsense(rng, said))
                    except OSError:
                        pass
                    if rng.random() < 0.7:
                        connection.close()
                time.sleep(0.01)
        for _ in range(self.rng.randint(1, 3)):
            self.threads.append(threading.Thread(target=loop, args=(self.rng.random(),), daemon=True))
            self.threads[-1].start()

    def fault(self, kind, what):
        self.faults.append((kind, what))

    def expect(self, expectations, seconds=trials.LIMIT):
        """Checks each rank: its exit code is one of the codes, and its messages contain the words ("": it prints
        nothing; None: it may print anything)."""
        deadline = time.monotonic() + seconds
        for rank, codes, words in expectations:
            code = rank.end(deadline)
            who = f"{' '.join(rank.arguments[:6])}: exit {code}, says {rank.said.strip()!r}"
            if code is None:
                self.fault("hangs", who)
            elif code < 0 and -code not in rank.sent and -code != signal.SIGKILL:
                self.fault("crashes", who)
            elif code not in codes:
                self.fault("wrong", f"{who}; expected exit {codes}")
            elif words is not None and (rank.said != "" if words == "" else words not in rank.said):
                self.fault("unnamed", f"{who}; expected {words!r}")

    def close(self):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        for connection in self.sockets:
            connection.close()
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.kill()
                rank.process.communicate()


def nonsense(rng, said):
    """A message that a stranger might try after reading the protocol."""
    nonce = said[16:48]
    tries = [b"GET / HTTP/1.1\r\n\r\n", rng.randbytes(rng.randint(1, 3000)),
             frame(rng.randrange(10), rng.randbytes(rng.randint(0, 600))),
             frame(1, text(nonce) + text(rng.randbytes(32))), frame(1, text(rng.randbytes(32)) + text(nonce)),
             frame(3, text(b"host") + text(b"RANK") + text(b"W") + struct.pack("<QQQ", rng.randrange(5), WORLD, 1)),
             frame(5, struct.pack("<Q", 4) + text(b"go away")), frame(4, b"par-" + b"0" * 32), frame(4, b"A" * 300),
             struct.pack("<IBB2s", 0x7FFFFFFF, 1, 1, b"PR"), frame(1, b"", 1) * 50]
    return rng.choice(tries)


def whole(t):
    """No fault but strangers: ranks in any order, under any launcher."""
    launcher = t.rng.choice(list(LAUNCHERS))
    token = TOKEN if t.rng.random() < 0.5 else {}
    order = t.rng.sample(range(WORLD), WORLD)
    t.pester()
    ranks = []
    for number in order:
        ranks.append(t.rank(number, launcher, environment=token))
        time.sleep(t.rng.choice([0, 0, 0.1, 0.4]))
    t.expect([(rank, {0}, "") for rank in ranks], 30)


def other_world(t):
    """One rank says another number of ranks."""
    launcher, odd, world = t.rng.choice(list(LAUNCHERS)), t.rng.randrange(WORLD), t.rng.choice([3, 5, 8])
    odd = min(odd, world - 1)
    ranks = [t.rank(n, launcher, world if n == odd else WORLD) for n in t.rng.sample(range(WORLD), WORLD)]
    source = {"hand": "--world", "torchrun": "WORLD_SIZE", "mpi": "OMPI_COMM_WORLD_SIZE",
              "slurm": "SLURM_NTASKS"}[launcher]
    t.expect([(rank, {2}, source) for rank in ranks], 15)


def duplicate(t):
    """Two processes say that they are the same rank."""
    twin = t.rng.randrange(1, WORLD)
    t.rank(0)
    t.dial()
    absent = t.rng.choice([n for n in range(1, WORLD) if n != twin])
    numbers = [n for n in range(1, WORLD) if n != absent] + [twin]
    for number in numbers:
        t.rank(number)
    t.expect([(rank, {2}, f"two processes say that they are rank {twin}: pid ") for rank in t.ranks], 15)


def before_zero(t, environments):
    """Starts these ranks, and rank 0 when they seek it: the 3 s that it waits for others do not begin with the time
    that a busy machine takes to start these."""
    ranks = {n: t.rank(n, environment=environment, more=["--join-timeout", "8"])
             for n, environment in environments.items() if n}
    until = time.monotonic() + 60
    while not all(handles_signals(rank.process.pid) for rank in ranks.values()) and time.monotonic() < until:
        time.sleep(0.01)
    return {0: t.rank(0, environment=environments[0], more=["--join-timeout", "3"]), **ranks}


def missing(t):
    """One rank does not come."""
    lacks = t.rng.randrange(1, WORLD)
    ranks = before_zero(t, {n: {} for n in range(WORLD) if n != lacks})
    if t.rng.random() < 0.5:
        t.pester()
    t.expect([(rank, {4}, f"only 3 of 4 ranks came in time; missing: {lacks}") for rank in ranks.values()], 15)


def no_rank_zero(t):
    """Nobody listens."""
    ranks = [t.rank(n, more=["--join-timeout", "1"]) for n in range(1, WORLD)]
    t.expect([(rank, {4}, f"found no rank 0 of this job at 127.0.0.1:{t.port}") for rank in ranks], 15)


def squatter(t):
    """Somebody listens at the port before rank 0 comes."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", t.port))
    listener.listen(64)
    t.sockets.append(listener)
    says = t.rng.choice([frame(0, b"g" * 64) + frame(2, b"A" * 300), frame(0, text(b"n" * 32) + text(b"A" * 300)), b"",
                         frame(0, text(b"n" * 32) + text(b"par-" + b"0" * 32)), t.rng.randbytes(500),
                         frame(5, struct.pack("<Q", 139) + text(b"\x1b[2Jgo away")), frame(4, b"A" * 300)])

    def serve():
        listener.settimeout(0.2)
        while not t.ends.is_set():
            try:
                connection, _ = listener.accept()
                t.sockets.append(connection)
                connection.sendall(says)
            except OSError:
                pass

    t.threads.append(threading.Thread(target=serve, daemon=True))
    t.threads[-1].start()
    others = [t.rank(n, more=["--join-timeout", "1"]) for n in range(1, WORLD)]
    first = t.rank(0)
    t.expect([(first, {2}, f"port {t.port} on 127.0.0.1 is in use")] +
             [(rank, {4}, f"found no rank 0 of this job at 127.0.0.1:{t.port}: who listens there") for rank in others],
             20)


def other_token(t):
    """One rank has another secret."""
    odd = t.rng.randrange(1, WORLD)
    ranks = before_zero(t, {n: {"PAR_TOKEN": "another secret altogether"} if n == odd else TOKEN for n in range(WORLD)})
    t.expect([(rank, {4}, "another PAR_TOKEN" if n == odd else f"missing: {odd}") for n, rank in ranks.items()], 20)


def crowd(t):
    """Hundreds of idle connections, and few descriptors."""
    first = t.rank(0, limit=256)
    t.dial()
    for _ in range(300):
        t.dial(1)
    others = [t.rank(n) for n in range(1, WORLD)]
    t.expect([(rank, {0}, "") for rank in [first, *others]], 30)


def flood(t):
    """New connections without pause."""
    first = t.rank(0)
    t.dial()

    def loop():
        held = []
        while not t.ends.is_set():
            try:
                held.append(socket.create_connection(("127.0.0.1", t.port), timeout=1))
            except OSError:
                pass
            if len(held) > 300:
                held.pop(0).close()

    for _ in range(2):
        t.threads.append(threading.Thread(target=loop, daemon=True))
        t.threads[-1].start()
    others = [t.rank(n) for n in range(1, WORLD)]
    t.expect([(rank, {0}, "") for rank in [first, *others]], 60)


def fails_alone(t):
    """A rank lacks a file that the others have: it tells all of them before the rendezvous."""
    odd = t.rng.randrange(WORLD)
    ranks = [t.rank(n, more=["--data", "/no/such.safetensors"] if n == odd else []) for n in range(WORLD)]
    t.expect([(rank, {1} if n == odd else {4}, "/no/such.safetensors: error: cannot open" if n == odd
               else f"rank {odd} (pid ")
              for n, rank in enumerate(ranks)], 15)


def comes_again(t):
    """Ranks that leave before the start, and come again."""
    first = t.rank(0)
    t.dial()
    for _ in range(t.rng.randint(1, 3)):
        gone = t.rank(t.rng.randrange(1, WORLD))
        time.sleep(t.rng.random())
        gone.send(t.rng.choice([signal.SIGKILL, signal.SIGTERM]))
        gone.process.wait()
    others = [t.rank(n) for n in range(1, WORLD)]
    t.expect([(rank, {0}, "") for rank in [first, *others]], 30)


def killed(t):
    """A rank dies among steps: all others end, and one of them names it."""
    steps = pathlib.Path(t.folder) / f"steps-{t.port}"
    ranks = [t.rank(n, count="1000000", more=["--metrics", str(steps)]) for n in range(WORLD)]
    victim = t.rng.randrange(WORLD)
    until = time.monotonic() + 60
    while not (steps.exists() and steps.stat().st_size) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(t.rng.random())
    ranks[victim].send(signal.SIGKILL)
    t.expect([(rank, {-9} if n == victim else {4}, None) for n, rank in enumerate(ranks)])
    if not t.faults and not any(f"rank {victim} (dp {victim}) ended" in rank.said for rank in ranks):
        t.fault("unnamed", f"nobody names rank {victim}: " + "".join(rank.said for rank in ranks))


def huge_world(t):
    """A world of far more ranks than the bundle has: rank 0 takes no memory for each, and both it and a rank that
    joins are refused at once."""
    world = t.rng.choice([1000, 100_000, 1_048_576, 1_048_577, 4_294_967_295])
    ranks = [t.rank(n, world=world) for n in (0, 1)]
    words = "this bundle is for 4 ranks" if world <= 1_048_576 else "not a number from 1 to 1048576"
    most = 0
    while any(rank.process.poll() is None for rank in ranks):
        most = max([most, *(resident(rank.process.pid) for rank in ranks)])
        time.sleep(0.05)
    t.expect([(rank, {2}, words) for rank in ranks], 15)
    if most > 200 << 10:
        t.fault("wrong", f"a rank takes {most} KiB")


def resident(pid):
    """KiB that a process has in memory."""
    try:
        return int(next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")).split()[1])
    except (OSError, StopIteration):
        return 0


def other_flags(t):
    """One rank was started with other flags: the error of each rank names it."""
    odd = t.rng.randrange(1, WORLD)
    more, said = t.rng.choice([(["--set", "lr=0.5"], "--set lr=0.5"), (["--check-arena"], "--check-arena"),
                               (["--export", "w.safetensors"], "--export"),
                               (["--order", "sequential"], "--order sequential")])
    ranks = [t.rank(n, more=more if n == odd else []) for n in range(WORLD)]
    t.expect([(rank, {2}, f"rank {odd} was started with {said}") for rank in ranks], 20)


def bad_flags(t):
    """Wrong launch flags are reported before any file is opened."""
    cases = [(["--rank", "7", "--world", "4", "--master", "127.0.0.1:29500"], "--rank is 7 and --world is 4"),
             (["--rank", "1", "--world", "4", "--master", "127.0.0.1:0"], "the port of --master is \"0\""),
             (["--rank", "1", "--world", "4"], "--rank and --world need --master HOST:PORT"),
             (["--rank", "1"], "--rank needs --world"),
             (["--threads", "100000"], "--threads 100000 is more than the"),
             (["-n", "3", "--init"], "this bundle is for 4 ranks")]
    flags, words = t.rng.choice(cases)
    data = str(MODEL / "data.safetensors") if flags[0] == "-n" else "/no/such/file.safetensors"
    t.expect([(Rank(t, [*flags, "--data", data, "--steps", "1"]), {2}, words)])


def short_token(t):
    """A secret that could be guessed."""
    ranks = [t.rank(n, environment={"PAR_TOKEN": "short"}) for n in range(WORLD)]
    t.expect([(rank, {2}, "PAR_TOKEN has 5 characters") for rank in ranks])


def local(t):
    """par-run -n listens nowhere."""
    job = Rank(t, ["-n", "4", "--init", "--data", str(MODEL / "data.safetensors"), "--steps", "300", "-q"])
    time.sleep(t.rng.random() * 2)
    pids = {job.process.pid}
    try:
        pids |= {int(p) for p in open(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read().split()}
    except OSError:
        pass
    if listeners(pids):
        t.fault("wrong", "par-run -n listens on a port")
    t.expect([(job, {0}, "")], 60)


def scarce(t):
    """A small stack, or a full disk as standard output: a little is enough, and too little is a plain error."""
    stack, full = t.rng.choice([(64, False), (128, False), (256, False), (1024, True), (None, True)])
    flags = ["-n", "4", "--init", "--data", str(MODEL / "data.safetensors"), "--steps", "3"]
    with open("/dev/full" if full else os.devnull, "w") as out:
        job = Rank(t, flags, stack=stack, out=out)
    if stack and stack < 256:
        t.expect([(job, {1}, f"the stack is limited to {stack} KiB")])
    elif full:
        t.expect([(job, {1}, "standard output: error: cannot write: No space left on device")], 60)
    else:
        t.expect([(job, {0}, "")], 60)


def listeners(pids):
    """Rows of /proc/net/tcp at which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            inodes |= {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        except OSError:
            pass
    rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    return [row for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


KINDS = [whole, whole, whole, other_world, duplicate, missing, no_rank_zero, squatter, other_token, crowd, comes_again,
         killed,
         bad_flags, bad_flags, short_token, local, scarce, flood, fails_alone, huge_world, other_flags]
EACH = list(dict.fromkeys(KINDS))


def make_setting(bin_folder, folder):
    """par-run, a bundle of four ranks, and the folder to run in."""
    bundle = os.path.join(folder, "mlp.par")
    subprocess.run([os.path.join(bin_folder, "par-compile"), str(MODEL / "model.onnx"), "--set", "train={}", "--set",
                    "mesh.dp=4",
                    "-o", bundle], check=True, stdout=subprocess.DEVNULL)
    return os.path.abspath(os.path.join(bin_folder, "par-run")), bundle, folder


def begin(folder, arguments, counts):
    setting = make_setting(arguments.bin, folder)

    def trial(number):
        kind = EACH[number] if arguments.each and number < len(EACH) else KINDS[number % len(KINDS)]
        launch = Trial(random.Random(f"{arguments.seed} {number}"), setting)
        try:
            kind(launch)
        finally:
            launch.close()
        for fault, what in launch.faults:
            counts.fault(fault, number, kind.__name__, what)

    return trial


if __name__ == "__main__":
    sys.exit(trials.main("launches", 100, __doc__.splitlines()[0], begin, kinds=len(EACH)))
