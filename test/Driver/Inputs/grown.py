"""Writes models and plans that grow without bounds, as text for encode.py or YAML: `grown.py KIND N`."""
import sys

kind, n = sys.argv[1], int(sys.argv[2])


def chain(op, inputs=1, attributes=""):
    """n nodes, each of which reads the one before."""
    lines = [f"node n{i} {op} {','.join([f'v{i}'] * inputs)} -> v{i + 1} {attributes}".rstrip() for i in range(n)]
    return "\n".join(["input v0 f32[batch,4]", f"output v{n} f32", *lines])


def sums():
    """v0 times 2 to n + 1, stacked like the sums of an unrolled Scan."""
    lines = [f"node n{i} Add v{i},v0 -> v{i + 1}" for i in range(n)]
    joined = f"node c Concat {','.join(f'v{i + 1}' for i in range(n))} -> y axis=1"
    return "\n".join(["input v0 f32[batch,4]", "output y f32", *lines, joined])


def concat():
    return f"input x f32[batch,4]\noutput y f32\nnode c Concat {','.join(['x'] * n)} -> y axis=1"


def names():
    """A parameter with a name of n characters, read by a matmul."""
    name = "m." * ((n - 6) // 2) + "weight"
    return (f"input x f32[batch,4]\noutput y f32\ninit {name} f32[4,4] = {' '.join(['1'] * 16)}\n"
            f"node m MatMul x,{name} -> y")


def keys():
    return "".join(f"k{i}: 1\n" for i in range(n))


def rules():
    return "train: {}\nshard:\n" + "".join(f'  "p{i}?": {{0: dp}}\n' for i in range(n))


def elements():
    return f"inputs: {{x: {{value: [{', '.join(['1'] * n)}]}}}}\n"


def axes():
    return "mesh: {" + ", ".join(f"a{i}: 1" for i in range(n)) + "}\n"


def word():
    return f'train: {{loss: "{"a" * n}"}}\n'


def digits():
    return "batch: " + "9" * n + "\n"


kinds = {"relus": lambda: chain("Relu"), "doubles": lambda: chain("Concat", 2, "axis=1"), "concat": concat,
         "sums": sums, "names": names,
         "keys": keys, "rules": rules, "elements": elements, "axes": axes, "word": word, "digits": digits}
print(kinds[kind]())
