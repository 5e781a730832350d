"""Trains a batch norm for three steps and holds its moving statistics against PyTorch's rule; then one that is called
twice in each, whose second call moves what the first has moved: as par.export hands the statistics on, and where a file
names the same ones.

    moving-statistics.py FOLDER       writes the model, its plan and its data there, and compares the export
"""
import pathlib
import random
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import read_safetensors, write_safetensors

MODEL = """
input x f32[4,2,3]
init net.norm.weight f32[2] = 1 2
init net.norm.bias f32[2] = 0 1
init net.norm.running_mean f32[2] = 0.5 -1
init net.norm.running_var f32[2] = 2 3
init net.norm.last.scale f32[3] = 1 2 3
node n BatchNormalization x,net.norm.weight,net.norm.bias,net.norm.running_mean,net.norm.running_var -> y,m,v \
training_mode=1 momentum=0.75
node s Mul y,net.norm.last.scale -> z
node q Mul z,z -> p
node r ReduceMean p -> loss keepdims=0
output loss f32[]
"""
CALLS = {"once": MODEL, **{
    word: MODEL.replace("node s Mul y,", f"""node square Mul x,x -> xx
node again BatchNormalization xx,net.norm.weight,net.norm.bias,{statistics} -> yy,mm,vv training_mode=1 momentum=0.75
node both Add y,yy -> yyy
node s Mul yyy,""")
    for word, statistics in (("handed on", "m,v"), ("named again", "net.norm.running_mean,net.norm.running_var"))}}
# PyTorch's momentum=None: the mean of all steps, of which the file has seen two; a second call counts as a step of its
# own.
for word in ("once", "handed on"):
    CALLS["mean of steps, " + word] = CALLS[word] + f"""init net.norm.num_batches_tracked i64[] = 2
init calls i64[] = {1 if word == "once" else 2}
node count Add net.norm.num_batches_tracked,calls -> next
updates next i64[] net.norm.num_batches_tracked
training {{"version": 1, "cumulative": ["net.norm"]}}
"""
STEPS, SAMPLES = 3, 4


def expected(rows, calls, cumulative):
    """New = 0.75 of the old + 0.25 of the batch's, or that of step n 1 / n; the variance is that of a sample, divided
    by n - 1."""
    mean, variance = [0.5, -1.0], [2.0, 3.0]
    for step in range(STEPS):
        for channel in range(2):
            seen = [x for row in rows[step * SAMPLES:(step + 1) * SAMPLES] for x in row[channel * 3:channel * 3 + 3]]
            for call, values in enumerate((seen, [x * x for x in seen])[:calls]):
                share = 1 / (2 + step * calls + call + 1) if cumulative else 0.25
                mean[channel] += share * (statistics.fmean(values) - mean[channel])
                variance[channel] += share * (statistics.variance(values) - variance[channel])
    return {"net.norm.running_mean": mean, "net.norm.running_var": variance}


def trained(folder, model):
    (folder / "norm.onnx").write_bytes(encode(model.strip().splitlines()))
    subprocess.run(["par-compile", "norm.onnx", "norm.yaml", "-o", "norm.par", "-q"], cwd=folder, check=True)
    subprocess.run(["par-run", "norm.par", "--data", "x.safetensors", "--order", "sequential", "--steps", str(STEPS),
                    "--export", "trained.safetensors"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return read_safetensors(folder / "trained.safetensors")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "norm.yaml").write_text("train: {optimizer: {kind: sgd, lr: 0.1}}\n")
    numbers = random.Random(7)
    rows = [[numbers.gauss(1, 2) for _ in range(6)] for _ in range(STEPS * SAMPLES)]
    write_safetensors(folder / "x.safetensors", {"x": ([len(rows), 2, 3], [x for row in rows for x in row])})
    for calls, model in CALLS.items():
        found = trained(folder, model)
        print(calls, *sorted(found))
        for name, wanted in expected(rows, 1 if "once" in calls else 2, "steps" in calls).items():
            off = max(abs(a - b) / max(1, abs(b)) for a, b in zip(found[name][1], wanted))
            print(f"{name}: {'equal' if off < 1e-5 else f'{found[name][1]}, expected {wanted}'}")


main()
