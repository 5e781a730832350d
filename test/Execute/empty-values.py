"""Values of no elements on several plans: none of them changes anything, so every model trains as the one that has none
of them.

empty-values.py [--each] FOLDER       writes models and data there; --each: a model for each way to use one, not for all
"""

import math
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import Claims, Failed, read_safetensors, write_safetensors

HEAD = """
input x f32[4,4,8]
init w f32[8,8] = {w}
init b f32[8] = 1 2 3 4 5 6 7 8
node m MatMul x,w -> mm
node h Add mm,b -> h
"""
TAIL = """
node q Mul y,y -> q
node l ReduceMean q -> loss keepdims=0
output loss f32
"""
CUT = """
init at i64[1] = {at}
init dim i64[1] = {dim}
node s Slice h,at,at,dim -> e
node t Tanh e -> t
"""
# Each computes `y`, which equals `h`, from `h` and from `t`, a slice of it without elements along `dim`.
USES = {
    "before": "node c Concat t,h -> y axis={dim}",
    "after": "node c Concat h,t,e -> y axis={dim}",
    "alone": "node c Concat t,e -> c axis={dim}\nnode d Concat c,h -> y axis={dim}",
    "sum": "node r ReduceSum t,dim -> r keepdims=1\nnode c Add h,r -> y",
    "max": "node r ReduceMax t,dim -> r keepdims=1\nnode c Max h,r -> y",
    "min": "node r ReduceMin t,dim -> r keepdims=1\nnode c Min h,r -> y",
    "product": "node r ReduceProd t,dim -> r keepdims=1\nnode c Mul h,r -> y",
    "write": "init rows i64[0,1] =\ninit none f32[0,4,8] =\nnode n Slice h,zero,zero,zero -> n\n"
    "init zero i64[1] = 0\nnode c ScatterND h,rows,n -> c\nnode d Concat c,t -> y axis={dim}",
    "softmax": "node r Softmax t -> r axis={dim}\nnode c Concat r,h -> y axis={dim}",
    "product of none": "node u Transpose t -> u perm=[{order}]\n"
    "init flat i64[2] = 0 {rest}\nnode f Reshape u,flat -> f allowzero=1\n"
    "node g Transpose f -> g perm=[1,0]\n"
    "node k MatMul g,f -> k\nnode r ReduceSum k -> r keepdims=0\nnode c Add h,r -> y",
}
# A list whose part along the last dim is read of an input of no elements.
FED = "input z f32[4,4,0]\nnode z Neg z -> n\nnode c Concat n,h -> y axis=2"
PLANS = ["mesh.dp=1", "mesh.dp=2", "mesh.dp=4", "batch.microbatches=2"]
SIZES = [4, 4, 8]


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Trial:
    def __init__(self, folder):
        self.folder = folder
        self.weights = " ".join(str((i * 7 % 11 - 5) / 8) for i in range(64))
        write_safetensors(folder / "x.safetensors", {"x": (SIZES, [(i * 5 % 17 - 8) / 8 for i in range(128)])})
        write_safetensors(
            folder / "z.safetensors", {"x": (SIZES, [(i * 5 % 17 - 8) / 8 for i in range(128)]), "z": ([4, 4, 0], [])}
        )

    def trained(self, body, plan, data="x.safetensors"):
        model, bundle, after = (str(self.folder / name) for name in ["m.onnx", "m.par", "after.safetensors"])
        pathlib.Path(model).write_bytes(encode((HEAD + body + TAIL).format(w=self.weights).splitlines()))
        run(
            "par-compile",
            model,
            "-q",
            "-o",
            bundle,
            "--set",
            plan,
            "--set",
            "train={optimizer: {kind: sgd, lr: 0.01}}",
            "--check-phases",
        )
        run("par-verify", bundle)
        out = run("par-run", bundle, "--data", str(self.folder / data), "--steps", "3", "--export", after)
        losses = [line.split("loss")[1].split()[0] for line in out.splitlines() if line.startswith("step")]
        return losses, read_safetensors(after)


def difference(one, other):
    """The largest of exported weights; infinite if losses, as printed, or names differ."""
    if one[0] != other[0] or len(one[0]) != 3 or sorted(one[1]) != sorted(other[1]):
        return math.inf
    return max(abs(x - y) for name in one[1] for x, y in zip(one[1][name][1], other[1][name][1]))


def chain(uses, dim, size):
    """Nodes that make y of h by these uses, one of what the other gives."""
    rest = [d for d in range(3) if d != dim]
    lines = []
    for number, use in enumerate(uses):
        text = (CUT + use).format(at=[0, size // 2, size][number % 3], dim=dim, order=",".join(map(str, [dim] + rest)),
                                  rest=SIZES[rest[0]] * SIZES[rest[1]])
        names = {"h": f"y{number}", "y": f"y{number + 1}"}
        own = set(re.findall(r"-> (\w+)|init (\w+)|node (\w+)", text))
        for name in {n for group in own for n in group if n}:
            names.setdefault(name, f"{name}{number}")
        known = re.compile(r"\b(" + "|".join(names) + r")\b(?!=)")
        lines += [known.sub(lambda found: names[found[1]], line) for line in text.splitlines()]
    return "\n".join(["node first Identity h -> y0", *lines, f"node last Identity y{len(uses)} -> y"])


def main():
    claims, each = Claims(), "--each" in sys.argv
    folder = pathlib.Path(sys.argv[-1])
    folder.mkdir(parents=True, exist_ok=True)
    trial = Trial(folder)
    plain = trial.trained("node i Identity h -> y", "mesh.dp=1")
    models = {"fed": (FED, "z.safetensors")}
    for dim, size in enumerate(SIZES):
        for name, uses in [(name, [use]) for name, use in USES.items()] if each else [("all", list(USES.values()))]:
            models[f"dim {dim}: {name}"] = (chain(uses, dim, size), "x.safetensors")
    for name, (body, data) in models.items():
        for plan in PLANS:
            with claims.watch(f"{name}, {plan}"):
                claims.hold(f"{name}, {plan}", difference(plain, trial.trained(body, plan, data)), 1e-5)
    claims.finish()


main()
