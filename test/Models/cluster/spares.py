"""A host that is lost for good under --spares: processes of a third one take its place, bit for bit."""
import re
import subprocess
import time

from jobs import Starter
from network import Network

STEPS, SAVE_EVERY = 150, 10
# On hosts a and b, two ranks each. Under pp 2 the parts of b are nowhere else: all go back to the newest save.
REPLICA, SAVE = "has its state from rank", "no other rank holds its part"
CASES = {"dp4": REPLICA, "dp2tp2": REPLICA, "pp2dp2": SAVE}


class Spares:
    def __init__(self, trial):
        self.trial = trial
        self.network = Network("abc")
        self.starter = Starter(self.network, trial.bin / "par-run", trial.work)

    def flags(self, name):
        return ["--init", "--no-tuning", "--text", self.trial.text, "--steps", STEPS, "--metrics",
                name.with_suffix(".jsonl"), "--export", name.with_suffix(".safetensors"), "--save",
                name.with_suffix(".ckpt"), "--save-every", SAVE_EVERY]

    def alone(self, case):
        """The weights of a run on one host without faults."""
        name = self.trial.work / f"spares-{case}"
        command = [self.trial.bin / "par-run", self.trial.bundle(case), *self.flags(name), "-n", 4, "-q"]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        return name.with_suffix(".safetensors").read_bytes()

    def one(self, case, words):
        weights, name = self.alone(case), self.starter.next()
        job = self.starter.by_hand("aabbcc", self.trial.bundle(case), [*self.flags(name), "--restart", "--spares", 2])
        metrics = name.with_suffix(".jsonl")
        began = time.monotonic()
        while job.runs() and time.monotonic() - began < 120 and (
                not metrics.exists() or metrics.read_bytes().count(b"\n") <= 3 * SAVE_EVERY):
            time.sleep(0.01)
        self.network.kill("b")
        _, hung = job.wait(120)
        said = job.said("a")
        codes = [job.processes[rank].returncode for rank in (0, 1, 4, 5)]
        exported = name.with_suffix(".safetensors")
        self.trial.claim(f"spares, {case}: a host is killed, and the job ends well", not hung and codes == [0] * 4,
                         f"{hung} {codes} {job.text()}")
        for rank in (2, 3):
            self.trial.claim(f"spares, {case}: a spare takes the place of rank {rank}",
                             re.search(rf"spare {rank + 2} \(pid \d+ on c\) takes the place of rank {rank}\n", said),
                             said)
        went = re.search(r"goes on after step .*", said)
        self.trial.claim(f"spares, {case}: {went[0] if went else 'does not go on'}", went and words in said, said)
        self.trial.claim(f"spares, {case}: weights are those of one host without faults",
                         exported.exists() and exported.read_bytes() == weights)

    def play(self):
        try:
            for case, words in CASES.items():
                self.one(case, words)
        finally:
            self.network.close()
