"""Results on two hosts beside those on one: losses and final weights, bit for bit."""
import json
import shutil
import subprocess

# Plans of tiny-gpt on four ranks.
BASE = ["train.loss=cross_entropy", "train.optimizer=adamw", "dims.seq=32"]
CASES = {
    "dp2": ["mesh.dp=2", "batch.size=8"],
    "dp4": ["mesh.dp=4", "batch.size=8"],
    "dp2tp2": ["mesh.dp=2", "mesh.tp=2", "use=[megatron]", "batch.size=8"],
    "pp2dp2": ["mesh.pp=2", "mesh.dp=2", "batch.size=8", "batch.microbatches=4", "pipeline.cuts={h.*: even}"],
    "zero3": ["mesh.dp=4", "zero={level: 3, min_size: 0}", "batch.size=8"],
    "interleaved": ["mesh.pp=2", "mesh.dp=2", "batch.size=8", "batch.microbatches=4", "pipeline.stages=4",
                    "pipeline.schedule=interleaved", "pipeline.cuts={h.*: even}"],
    # Weights of two versions, which outlive a step.
    "pipedream": ["mesh.pp=2", "mesh.dp=2", "batch.size=8", "batch.microbatches=4", "pipeline.schedule=pipedream-2bw",
                  "pipeline.flush_every=3", "pipeline.cuts={h.*: even}"],
}
# Plans of any model, in the words of distributed.py.
PLANS = {
    "pp2dp2": dict(mesh={"pp": 2, "dp": 2}, microbatches=4, pipeline="{cuts: auto}"),
    "dp2tp2": dict(mesh={"dp": 2, "tp": 2}),
    "zero3": dict(mesh={"dp": 4}, microbatches=2, zero="{level: 3, min_size: 0}"),
    "interleaved": dict(mesh={"pp": 2, "dp": 2}, microbatches=4,
                        pipeline="{cuts: auto, stages: 4, schedule: interleaved}"),
    "pipedream": dict(mesh={"pp": 2, "dp": 2}, microbatches=4,
                      pipeline="{cuts: auto, schedule: pipedream-2bw, flush_every: 3}"),
}
STEPS = 6


class Numbers:
    def __init__(self, trial, starter):
        self.trial, self.starter, self.turn = trial, starter, 0

    def run(self, how, bundle, data, hosts="aabb"):
        """Losses and the bytes of the weights, or what the job said instead."""
        name = self.starter.next()
        metrics, weights = name.with_suffix(".jsonl"), name.with_suffix(".safetensors")
        flags = [*data, "--steps", STEPS, "--metrics", metrics, "--export", weights, "-q"]
        if how == "shm":
            command = [self.starter.par_run, bundle, *flags, "-n", len(hosts)]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=300)
            said = done.stdout + done.stderr
        else:
            begin = self.starter.by_mpirun if how == "mpi" else self.starter.by_hand
            job = begin(hosts, bundle, [*flags, "--comm", how])
            job.wait(300)
            said = job.text()
        if not metrics.exists() or not weights.exists():
            return said
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        return [line["loss"] for line in lines if "loss" in line], weights.read_bytes()

    def compare(self, title, bundle, data, comms):
        """Ranks of a host follow each other, or take turns, as mpirun does not let them."""
        alone = self.run("shm", bundle, data)
        self.turn += 1
        for comm in comms:
            hosts = ("aabb", "abba")[self.turn % 2] if comm == "tcp" else "aabb"
            got = self.run(comm, bundle, data, hosts)
            self.trial.claim(f"{title}: losses and weights of two hosts ({hosts}) by {comm} are those of one",
                             not isinstance(alone, str) and len(alone[0]) == STEPS and got == alone,
                             alone if isinstance(alone, str) else got if isinstance(got, str) else (alone[0], got[0]))

    def comms(self):
        if shutil.which("mpirun"):
            return ["tcp", "mpi"]
        print("by mpi: skipped, no mpirun")
        return ["tcp"]

    def tiny(self, case):
        self.compare(case, self.trial.bundle(case), ["--init", "--text", self.trial.text], self.comms())

    def carried(self):
        """A decoder whose caches stay on the devices from call to call (see decoding.py): its tokens are PyTorch's."""
        from decoding import CARRY, PLANS as DECODERS
        from runs import HERE, Runs, read_safetensors
        runs, folder = Runs(self.trial.bin, self.trial.work), HERE / "decoder"
        wanted = [token for call in json.loads((folder / "tokens.json").read_text()) for token in call]
        for name in ("tp4", "pp2tp2", "dp2tp2"):
            bundle = runs.compile(folder / "model.onnx", f"{CARRY}batch: {{size: 4}}\n{DECODERS[name]}")
            output = self.starter.next().with_suffix(".safetensors")
            job = self.starter.by_hand("aabb", bundle, ["--data", folder / "data.safetensors", "--output", output,
                                                        "--comm", "tcp"])
            job.wait(120)
            found = list(read_safetensors(output, ("I64",))["token"][1]) if output.exists() else job.text()
            self.trial.claim(f"carry {name}: tokens of two hosts by tcp are PyTorch's", found == wanted, found)

    def models(self, folder, only):
        """Every model of a folder (see models.py) under every plan."""
        from distributed import Pair, Plan, refusal
        from models import find
        from runs import Failed, Runs
        runs, refused = Runs(self.trial.bin, self.trial.work), 0
        for model in find(folder, only, ["plain"]):
            for name, plan in PLANS.items():
                title = f"{model.title} {name}"
                try:
                    bundle = runs.compile(model.file, Pair(runs, model, Plan(**plan), "adamw", STEPS).plan)
                except Failed as failure:
                    sentence = refusal(str(failure))
                    refused += bool(sentence)
                    if sentence:
                        print(f"{title}: refused: {sentence}", flush=True)
                    else:
                        self.trial.claim(f"{title}: is compiled", False, str(failure))
                    continue
                data = ["--data", model.folder / "data.safetensors", "--order", "sequential"]
                self.compare(title, bundle, data, ["tcp"])
        print(f"{refused} plans refused")
