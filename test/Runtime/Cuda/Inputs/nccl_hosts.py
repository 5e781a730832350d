"""A bundle for a GPU on stub libraries, its ranks on two hosts, which are network namespaces of this one joined by a
veth pair: numbers of one host, and what each host says of trouble. nccl_hosts.py MODEL FOLDER: a line a claim."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

MODEL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
LIBRARIES = pathlib.Path(os.environ["PAR_HOME"]) / "lib"
ADDRESS = {"a": "10.78.0.1", "b": "10.78.0.2"}
STUBS = {"PAR_CUDA_LIBRARY": "libcuda-stub.so", "PAR_CUBLASLT_LIBRARY": "libcublaslt-stub.so",
         "PAR_CUDNN_LIBRARY": "libcudnn-stub.so", "PAR_NCCL_LIBRARY": "libnccl-stub.so"}
PLANS = {
    "dp2 tp2": ["mesh.dp=2", "mesh.tp=2", "use=[megatron]", "batch.size=8"],
    "pp2 dp2": ["mesh.pp=2", "mesh.dp=2", "batch.size=8", "batch.microbatches=4", "pipeline.cuts={h.*: even}"],
    "zero3": ["mesh.dp=4", "zero={level: 3, min_size: 0}", "batch.size=8"],
}
STEPS = 3
PATIENCE = 300  # seconds for what has no time of its own: only ranks that hang take them


def sh(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Hosts:
    """Two namespaces, their link, and a second interface of b that leads nowhere; removed at the end."""

    def __init__(self):
        self.names = {host: f"par-nccl-{os.getpid()}-{host}" for host in ADDRESS}
        links = {"a": "veth1", "b": "veth2"}
        for name in self.names.values():
            sh("ip", "netns", "add", name)
        sh("ip", "-n", self.names["a"], "link", "add", links["a"], "type", "veth", "peer", "name", links["b"], "netns",
           self.names["b"])
        sh("ip", "-n", self.names["b"], "link", "add", "docker0", "type", "veth", "peer", "name", "docker1")
        sh("ip", "-n", self.names["b"], "addr", "add", "172.17.0.1/16", "dev", "docker0")
        for link in ("docker0", "docker1"):
            sh("ip", "-n", self.names["b"], "link", "set", link, "up")
        for host, name in self.names.items():
            sh("ip", "-n", name, "addr", "add", ADDRESS[host] + "/24", "dev", links[host])
            sh("ip", "-n", name, "link", "set", links[host], "up")
            sh("ip", "-n", name, "link", "set", "lo", "up")

    def inside(self, host):
        return ["ip", "netns", "exec", self.names[host]]

    def close(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)


class Trial:
    def __init__(self):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "text").write_text("".join(chr(97 + i * i % 23) for i in range(4000)))
        (FOLDER / "image").write_bytes(b"\x50\xed\x55\xba")
        self.hosts, self.port, self.started = Hosts(), 29700, []

    def compile(self, plan):
        for name, more in (("cuda", []), ("twin", ["--host-code"])):
            settings = [part for setting in PLANS[plan] for part in ("--set", setting)]
            subprocess.run(["par-compile", MODEL, "--set", "train={loss: cross_entropy}", "--set", "dims.seq=32",
                            *settings, "--target", "cuda", *more, "-q", "-o", FOLDER / f"{name}.par"], check=True,
                           env={**os.environ, "PAR_PTXAS": ""})

    def environment(self, host):
        found = {name: str(LIBRARIES / file) for name, file in STUBS.items()}
        return {**os.environ, **found, "PAR_CUDA_BUILTINS": str(FOLDER / "image"), "PAR_HOST": host,
                "PAR_STUB_BUNDLE": str(FOLDER / "twin.par"), "PAR_CUDA_GRAPHS": "0", "PAR_STUB_DEVICES": "2",
                "PAR_STUB_NCCL_TCP": "1", "PAR_TOKEN": "0123456789abcdef0123456789abcdef",
                "NCCL_CONF_FILE": "/dev/null"}

    def flags(self, metrics, steps):
        return ["par-run", FOLDER / "cuda.par", "--init", "--text", FOLDER / "text", "--order", "sequential", "--steps",
                str(steps), "--no-tuning", "--metrics", metrics]

    def start(self, metrics, steps, on="aabb", changed=None, more=()):
        """A process for each letter of `on`, which is its host; `changed`: environments by rank that differ; `more`:
        flags."""
        self.port += 1
        ranks = []
        for rank, host in enumerate(on):
            environment = {**self.environment(host), **(changed or {}).get(rank, {})}
            command = [*self.hosts.inside(host), *self.flags(metrics, steps), "--rank", str(rank), "--world",
                       str(len(on)), "--master", f"{ADDRESS['a']}:{self.port}", *more]
            ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          text=True))
        self.started += ranks
        return ranks

    def losses(self, metrics):
        return [json.loads(line)["loss"] for line in metrics.read_text().splitlines() if "loss" in line]

    def numbers(self, plan):
        self.compile(plan)
        one, two = FOLDER / "one.jsonl", FOLDER / "two.jsonl"
        for file in (one, two):
            file.unlink(missing_ok=True)
        subprocess.run([*self.flags(one, STEPS), "--comm", "inproc"], check=True, env=self.environment("one"),
                       capture_output=True)
        outputs = [rank.communicate(timeout=PATIENCE)[0] for rank in self.start(two, STEPS)]
        same = two.exists() and self.losses(one) == self.losses(two)
        if not same or len(self.losses(one)) != STEPS:
            print(self.losses(one), self.losses(two) if two.exists() else "", *outputs, sep="\n")
        print(f"{plan}: two hosts by NCCL have the losses of one, bit for bit:", same)

    def goes_on(self, plan, victims):
        """Ranks are lost, one after the other, once ten more steps are made."""
        self.compile(plan)
        straight, lost, steps = FOLDER / "straight.jsonl", FOLDER / "lost.jsonl", 100
        for rank in self.start(straight, steps):
            rank.communicate(timeout=PATIENCE)
        ranks = self.start(lost, steps, more=["--restart"])
        for number, victim in enumerate(victims):
            while ranks[0].poll() is None and (not lost.exists() or lost.read_bytes().count(b"\n") < 10 * (number + 1)):
                time.sleep(0.02)
            children = pathlib.Path(f"/proc/{ranks[victim].pid}/task/{ranks[victim].pid}/children")
            for pid in children.read_text().split() if ranks[victim].poll() is None else []:
                os.kill(int(pid), signal.SIGKILL)
        outputs = [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]
        went = len(re.findall(r"goes on after step \d+, [\d.]+ s after the loss", outputs[0]))
        same = lost.exists() and self.losses(straight) == self.losses(lost) and len(self.losses(lost)) == steps
        if not same or went != len(victims):
            print(self.losses(straight), self.losses(lost) if lost.exists() else "", *outputs, sep="\n")
        print(f"{plan}: {went} of {len(victims)} losses mended, and the losses of a run without, bit for bit:", same,
              flush=True)

    def trouble(self, name, words, harm=None, steps=100000, **how):
        """Runs until `harm` (or to its end) and prints the first line of each host with one of `words`."""
        metrics = FOLDER / "trouble.jsonl"
        metrics.unlink(missing_ok=True)
        ranks = self.start(metrics, steps, **how)
        if harm:
            while ranks[0].poll() is None and (not metrics.exists() or metrics.stat().st_size == 0):
                time.sleep(0.02)
            harm(ranks)
        began = time.monotonic()
        while all(rank.poll() is None for rank in ranks) and time.monotonic() - began < PATIENCE:
            time.sleep(0.02)
        began, outputs, late = time.monotonic(), {"a": "", "b": ""}, False
        for rank, host in zip(ranks, how.get("on", "aabb"), strict=True):
            try:
                outputs[host] += rank.communicate(timeout=max(0.1, 10 - (time.monotonic() - began)))[0]
            except subprocess.TimeoutExpired:
                late = True
                rank.kill()
                outputs[host] += rank.communicate()[0]
        for host in ADDRESS:
            lines = [line.replace(str(LIBRARIES), "LIB").replace(str(FOLDER), "DIR") for line in
                     outputs[host].splitlines() if any(word in line for word in words)]
            print(f"{name}, {host}:", *(sorted(set(lines)) or [outputs[host]]), sep="\n  ")
        print(f"{name}: all ended within 10 s of the first:", not late, flush=True)

    def troubles(self):
        error = ["error: "]
        self.trouble("init fails", error, changed={3: {"PAR_STUB_FAIL": "ncclCommInitRankConfig:1:2"}})
        self.trouble("killed", error, harm=lambda ranks: ranks[3].send_signal(signal.SIGKILL))
        self.trouble("async error", [*error, "waited for"], changed={2: {"PAR_STUB_FAIL": "nccl:60:3"}})
        self.trouble("interface", error, changed={2: {"NCCL_SOCKET_IFNAME": "eth9"}, 3: {"NCCL_SOCKET_IFNAME": "eth9"}})
        self.trouble("versions", error, changed={rank: {"PAR_STUB_NCCL_VERSION": "22907"} for rank in (2, 3)})
        self.trouble("settings", error, changed={rank: {"NCCL_PROTO": "LL"} for rank in (2, 3)})
        self.trouble("one GPU", error, changed={rank: {"CUDA_VISIBLE_DEVICES": "1"} for rank in (2, 3)})
        self.trouble("no library", [*error, "that is"], changed={2: {"PAR_NCCL_LIBRARY": "/nosuch/libnccl.so"}})
        self.trouble("unreachable", [*error, "listen", "NCCL_DEBUG"], on="bbaa"[::-1],
                     changed={rank: {"PAR_NCCL_START": "3", "PAR_NCCL_CHECK": "0", "NCCL_SOCKET_IFNAME": "lo"}
                              for rank in range(4)})
        self.trouble("uneven", ["warning: "], on="aaab", steps=2,
                     changed={rank: {"PAR_STUB_DEVICES": "3"} for rank in range(4)})
        self.trouble("doubtful", ["warning: "], steps=2,
                     changed={rank: {"NCCL_SOCKET_IFNAME": "docker"} for rank in (2, 3)})


def main():
    trial = Trial()
    try:
        for plan in PLANS:
            trial.numbers(plan)
        trial.goes_on("zero3", [3, 0])
        trial.troubles()
    finally:
        for rank in trial.started:
            rank.kill()
        trial.hosts.close()


main()
