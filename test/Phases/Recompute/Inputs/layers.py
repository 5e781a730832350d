"""Writes a step of equal layers on one rank, one microbatch: layers.py LAYERS TOKENS.

Each layer of x (TOKENS x 16) is (x k) v with k 16 x 512 and v 512 x 16, whose gradients are 64 KiB together; h = x k
is the residual that is large and soon computed again.
"""
import sys

layers, tokens = map(int, sys.argv[1:])
X, H = f"tensor<{tokens}x16xf32>", f"tensor<{tokens}x512xf32>"
K, V = "tensor<16x512xf32>", "tensor<512x16xf32>"


def dot(name, left, right, dims, types):
    print(f"  %{name} = par.dot %{left}, %{right} contracting [{dims[0]}] x [{dims[1]}] : "
          f"({types[0]}, {types[1]}) -> {types[2]}")


def dist(tensor):
    return f"!par.dist<{tensor}, @s0, [{{}}, {{}}]>"


def names(pattern, join=", "):
    return join.join(pattern.replace("{0}", str(i)) for i in range(layers))


kinds = "attributes {{stage = @s0, kind = #par.fragment_kind<{}>, local}} {{"
print("par.stage @s0 <\"dp\"=1> ranks [0]")
for i in range(layers):
    print(f"par.variable @k{i} parameter : {K}\npar.variable @v{i} parameter : {V}")
weights = names(f"%k{{0}}: {K}, %v{{0}}: {V}")
print(f"par.fragment @train.s0.forward(%x0: {X}, {weights}) -> ({names(H)}, {names(X)})")
print(f"    {kinds.format('forward')}")
for i in range(layers):
    dot(f"h{i}", f"x{i}", f"k{i}", (1, 0), (X, K, H))
    dot(f"x{i + 1}", f"h{i}", f"v{i}", (1, 0), (H, V, X))
outputs = ", ".join(f"%x{i + 1}" for i in range(layers))
print(f"  par.return {names('%h{0}')}, {outputs} : {names(H)}, {names(X)}\n}}")
taken = ", ".join(f"%x{i}: {X}" for i in range(layers + 1))
print(f"par.fragment @train.s0.backward({names('%h{0}: ' + H)}, {taken}, {weights}) -> ({names(K)}, {names(V)})\n"
      f"    {kinds.format('backward')}")
gradient = f"x{layers}"
for i in reversed(range(layers)):
    dot(f"dv{i}", f"h{i}", gradient, (0, 0), (H, X, V))
    dot(f"dh{i}", gradient, f"v{i}", (1, 1), (X, V, H))
    dot(f"dk{i}", f"x{i}", f"dh{i}", (0, 0), (X, H, K))
    dot(f"dx{i}", f"dh{i}", f"k{i}", (1, 1), (H, K, X))
    gradient = f"dx{i}"
print(f"  par.return {names('%dk{0}')}, {names('%dv{0}')} : {names(K)}, {names(V)}\n}}")

x, h, k, v = map(dist, (X, H, K, V))
print(f"par.step @train(%x: !par.dist<tensor<1x{tokens}x16xf32>, @s0, [{{}}, {{}}, {{}}]>) "
      'attributes {inputs = ["x"], outputs = []} {')
for i in range(layers):
    print(f"  %k{i} = par.read @k{i} : {k}\n  %v{i} = par.read @v{i} : {v}")
labels = ", ".join(['"w"'] * 2 * layers)
print(f"  {names('%gk{0}')}, {names('%gv{0}')} = par.loop 1 (%x) {{labels = [{labels}]}} : "
      f"(!par.dist<tensor<1x{tokens}x16xf32>, @s0, [{{}}, {{}}, {{}}]>) -> ({names(k)}, {names(v)}) {{")
print(f"  ^bb0(%i: tensor<i64>, %x0: {x}):")
given, types = names("%k{0}, %v{0}"), names(f"{k}, {v}")
print(f"    {names('%h{0}')}, {outputs} = par.run @train.s0.forward(%x0, {given}) : ({x}, {types}) -> "
      f"({names(h)}, {names(x)})")
made = names("%dk{0}") + ", " + names("%dv{0}")
print(f"    {made} = par.run @train.s0.backward({names('%h{0}')}, %x0, {outputs}, {given}) : "
      f"({names(h)}, {x}, {names(x)}, {types}) -> ({names(k)}, {names(v)})")
print(f"    par.yield [{', '.join(['sum'] * 2 * layers)}] {made} : {names(k)}, {names(v)}\n  }}")
for i in range(layers):
    print(f"  par.write %gk{i} to @k{i} : {k}\n  par.write %gv{i} to @v{i} : {v}")
print("  par.return\n}")
