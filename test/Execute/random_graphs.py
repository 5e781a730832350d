"""Random small models, as random-programs.py plays them: lines for test/Phases/Import/Inputs/encode.py."""


class Graph:
    """Lines for encode.py, and what a plan can say of them. Every hidden value is f32[batch, length, width]."""

    def __init__(self, choose, carries=False):
        self.choose, self.count, self.carries = choose, 0, carries
        self.lines, self.module = ["opset 20"], ""
        self.parameters, self.modules, self.inputs, self.outputs = [], [], {}, []
        self.batch = choose.choice([4, 4, 8])
        self.symbolic = choose.random() < 0.5
        self.length = choose.choice([1, 3, 4, 6, 6, 34])
        self.heads = choose.choice([1, 2, 2, 3])
        self.width = self.heads * choose.choice([2, 4, 4, 8])
        self.classes = choose.choice([5, 8, 8, 12, 90])

    # -- Pieces.

    def emit(self, op, *inputs, attributes="", outputs=1):
        self.count += 1
        names = [f"v{self.count}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.lines.append(f"node n{self.count} {op} {','.join(inputs)} -> {','.join(names)} {attributes}".rstrip())
        return names[0] if outputs == 1 else names

    def enter(self, name):
        self.module = name
        self.modules.append(name)
        self.lines.append(f"module {name}")

    def parameter(self, name, *shape, spread=0.3, base=0.0):
        name = f"{self.module}.{name}" if self.module else name
        numbers = self.numbers(shape, lambda: base + self.choose.gauss(0, spread))
        self.lines.append(f"init {name} f32[{','.join(map(str, shape))}] = {numbers}")
        self.lines.append(f"signature p_{name.replace('.', '_')} PARAMETER {name}")
        self.parameters.append((name, list(shape)))
        return name

    @staticmethod
    def numbers(shape, draw):
        size = 1
        for n in shape:
            size *= n
        return " ".join(f"{draw():.5g}" for _ in range(size))

    def constant(self, kind, shape, values):
        self.count += 1
        self.lines.append(f"init c{self.count} {kind}[{','.join(map(str, shape))}] = {' '.join(map(str, values))}")
        return f"c{self.count}"

    def ints(self, *values):
        return self.constant("i64", [len(values)], values)

    def input(self, name, kind, *shape, least=0, most=1.0, batched=True):
        lead = [("batch" if self.symbolic else str(self.batch))] if batched else []
        self.lines.append(f"input {name} {kind}[{','.join(lead + list(map(str, shape)))}]")
        self.inputs[name] = (kind, list(shape), least, most, batched)
        return name

    def linear(self, x, name, inside, outside, bias=None):
        y = self.emit("MatMul", x, self.parameter(f"{name}.weight", inside, outside))
        if self.choose.random() < 0.5 if bias is None else bias:
            y = self.emit("Add", y, self.parameter(f"{name}.bias", outside))
        return y

    # -- Layers.

    def norm(self, x):
        return self.emit("LayerNormalization", x, self.parameter("ln.weight", self.width, spread=0.1, base=1.0),
                         self.parameter("ln.bias", self.width), attributes="axis=-1")

    def feed_forward(self, x, *_):
        wide = self.choose.choice([4, 6, 8, 16, 40])
        y = self.emit(self.choose.choice(["Gelu", "Tanh", "Relu", "Sigmoid"]), self.linear(x, "up", self.width, wide))
        return self.emit("Add", x, self.linear(y, "down", wide, self.width))

    def split_heads(self, x, length, order):
        x = self.emit("Reshape", x, self.ints(0, length, self.heads, self.width // self.heads))
        return self.emit("Transpose", x, attributes=f"perm={order}")

    def scores_of(self, q, k, lengths, mask):
        """Queries times keys, with what such models add: a causal mask, a mask that is fed, a table of relative
        places."""
        scores = self.emit("MatMul", q, k)
        scores = self.emit("Mul", scores, self.constant("f32", [], [(self.width // self.heads) ** -0.5]))
        rows, columns = lengths
        if rows == columns and self.choose.random() < 0.4:  # causal
            seen = self.emit("Trilu", self.constant("f32", [rows, columns], [1] * rows * columns), attributes="upper=0")
            seen = self.emit("Cast", seen, attributes="to=9")
            scores = self.emit("Where", seen, scores, self.constant("f32", [], [-1e9]))
        if rows == columns and self.choose.random() < 0.3:  # buckets of a distance that is no line
            buckets = 5
            places = [min(abs(i - j) * abs(i - j), buckets - 1) for i in range(rows) for j in range(columns)]
            bias = self.emit("Gather", self.parameter(f"relative{self.count}.weight", buckets, self.heads),
                             self.constant("i64", [rows, columns], places))
            scores = self.emit("Add", scores, self.emit("Transpose", bias, attributes="perm=[2,0,1]"))
        if mask:
            hidden = self.emit("Unsqueeze", mask, self.ints(1, 2))
            hidden = self.emit("Mul", self.emit("Sub", self.constant("f32", [], [1.0]), hidden),
                               self.constant("f32", [], [-1e4]))
            scores = self.emit("Add", scores, hidden)
        return self.emit("Softmax", scores, attributes="axis=-1")

    def rotate(self, x, length):
        """Rotary positions from a table that is a constant of the graph, or computed in it."""
        half = self.width // self.heads // 2
        if self.choose.random() < 0.5:
            angles = [round(p / (3.0 ** i), 5) for p in range(length) for i in range(half)]
            angle = self.constant("f32", [length, half], angles)
        else:
            places = self.emit("Range", self.constant("i64", [], [0]), self.constant("i64", [], [length]),
                               self.constant("i64", [], [1]))
            places = self.emit("Unsqueeze", self.emit("Cast", places, attributes="to=1"), self.ints(1))
            angle = self.emit("Mul", places, self.constant("f32", [half], [3.0 ** -i for i in range(half)]))
        cos, sin = self.emit("Cos", angle), self.emit("Sin", angle)
        a, b = self.emit("Split", x, attributes="axis=-1 num_outputs=2", outputs=2)
        left = self.emit("Sub", self.emit("Mul", a, cos), self.emit("Mul", b, sin))
        right = self.emit("Add", self.emit("Mul", b, cos), self.emit("Mul", a, sin))
        return self.emit("Concat", left, right, attributes="axis=-1")

    def attention(self, x, memory=None, mask=None, lengths=None):
        part = "cross_" if memory else ""
        rows, columns = lengths or (self.length, self.length)
        own = memory or x
        q = self.split_heads(self.linear(x, part + "q", self.width, self.width), rows, "[0,2,1,3]")
        k = self.split_heads(self.linear(own, part + "k", self.width, self.width), columns, "[0,2,1,3]")
        v = self.split_heads(self.linear(own, part + "v", self.width, self.width), columns, "[0,2,1,3]")
        if not memory and self.width // self.heads % 2 == 0 and self.choose.random() < 0.3:
            q, k = self.rotate(q, rows), self.rotate(k, columns)
        k = self.emit("Transpose", k, attributes="perm=[0,1,3,2]")
        y = self.emit("MatMul", self.scores_of(q, k, (rows, columns), mask), v)
        y = self.emit("Reshape", self.emit("Transpose", y, attributes="perm=[0,2,1,3]"), self.ints(0, rows, self.width))
        return self.emit("Add", x, self.linear(y, part + "o", self.width, self.width))

    def experts(self, x, *_):
        """A few of several feed-forwards a token, weighted: gates are scattered to where the router's TopK says."""
        count, used, wide = self.choose.choice([(3, 1, 4), (4, 2, 6)])
        gates = self.emit("Softmax", self.linear(x, "router", self.width, count, bias=False), attributes="axis=-1")
        best, which = self.emit("TopK", gates, self.ints(used), attributes="axis=-1", outputs=2)
        zeros = self.emit("Mul", gates, self.constant("f32", [], [0.0]))
        gates = self.emit("ScatterElements", zeros, which, best, attributes="axis=-1")
        lead = self.emit("Unsqueeze", x, self.ints(1))
        y = self.emit("Relu", self.emit("MatMul", lead, self.parameter("experts.up", count, self.width, wide)))
        y = self.emit("MatMul", y, self.parameter("experts.down", count, wide, self.width))
        weight = self.emit("Unsqueeze", self.emit("Transpose", gates, attributes="perm=[0,2,1]"), self.ints(3))
        y = self.emit("ReduceSum", self.emit("Mul", y, weight), self.ints(1), attributes="keepdims=0")
        return self.emit("Add", x, y)

    def table(self, x, length, *_):
        """A buffer of the model's: floats that follow no rule, of any size."""
        values = [round(self.choose.gauss(0, 0.3), 4) for _ in range(length * self.width)]
        return self.emit("Add", x, self.constant("f32", [length, self.width], values))

    def turn(self, x, length, *_):
        """Rows by way of constants: flipped along the length by a gather, halves of the width exchanged."""
        x = self.emit("Gather", x, self.constant("i64", [length], range(length - 1, -1, -1)), attributes="axis=1")
        if self.width % 2 == 0:
            a, b = self.emit("Split", x, attributes="axis=-1 num_outputs=2", outputs=2)
            x = self.emit("Concat", b, a, attributes="axis=-1")
        return x

    # -- Models.

    def embed(self, name, length, number=""):
        self.enter(f"embed{number}")
        if self.choose.random() < 0.25:
            return self.linear(self.input(name, "f32", length, 3), "in", 3, self.width), None
        table = self.parameter("weight", self.classes, self.width)
        x = self.emit("Gather", table, self.input(name, "i64", length, most=self.classes))
        if self.choose.random() < 0.5:
            x = self.emit("Add", x, self.parameter("position", length, self.width))
        return x, table

    def layers(self, x, prefix, count, length, mask=None, memory=None, source=None):
        for i in range(count):
            self.enter(f"{prefix}.{i}")
            if self.choose.random() < 0.5:
                x = self.norm(x)
            kind = self.choose.choice(["feed_forward", "attention", "attention", "experts", "table", "turn"])
            x = self.attention(x, mask=mask,
                               lengths=(length, length)) if kind == "attention" else getattr(self, kind)(x, length)
            if memory and (i == 0 or self.choose.random() < 0.7):
                x = self.attention(x, memory, source[1], (length, source[0]))
        return x

    def build(self):
        """Returns the loss or the logits of the model, and the width of these."""
        mask, memory, source = None, None, None
        if self.choose.random() < 0.4:  # an encoder, of its own inputs
            length = self.choose.choice([2, 3, 5, 33])
            y, _ = self.embed("source", length, ".source")
            if self.choose.random() < 0.6:
                mask = self.input("source_mask", "f32", length, least=1, most=1.0)
            memory = self.layers(y, "encoder", self.choose.randint(0, 2), length, mask)
            source = (length, mask if self.choose.random() < 0.7 else None)
        x, table = self.embed("tokens", self.length)
        mask = self.input("mask", "f32", self.length, least=1, most=1.0) if self.choose.random() < 0.3 else None
        if self.choose.random() < 0.15:
            x = self.emit("Mul", x, self.input("scale", "f32", least=0.5, most=1.0, batched=False))
        if self.choose.random() < 0.15:
            x = self.emit("Add", x, self.input("shared", "f32", self.width, least=-1, most=1.0, batched=False))
        if self.carries:
            x = self.emit("Add", x, self.input("state", "f32", self.length, self.width, least=-1))
            turn = self.emit("Cos", self.input("place", "f32", least=0, batched=False))
            x = self.emit("Mul", x, turn)
        x = self.layers(x, "h", self.choose.randint(1, 3), self.length, mask, memory, source)
        if self.carries:
            # On another stage than before, maybe, where it is computed once more or sent.
            x = self.emit("Mul", x, turn if self.choose.random() < 0.5 else self.emit("Cos", "place"))
        self.hidden, self.memory = x, memory
        self.enter("head")
        if table and self.choose.random() < 0.5:
            return self.emit("MatMul", x, self.emit("Transpose", table, attributes="perm=[1,0]"))
        return self.linear(x, "out", self.width, self.classes)

    def more_outputs(self, logits):
        """Name, type and shape of what a model may give beside its result. Shapes of values with the batch begin with
        it."""
        batch = "batch" if self.symbolic else str(self.batch)
        first = next(iter(self.inputs))
        kind, shape, _, _, batched = self.inputs[first]
        table, at = self.choose.choice(self.parameters)
        known = self.constant("f32", [2, 3], range(6))
        return [
            (logits, f"f32[{batch},{self.length},{self.classes}]"),
            (self.hidden, f"f32[{batch},{self.length},{self.width}]"),
            (first, f"{kind}[{','.join([batch] * batched + list(map(str, shape)))}]"),
            (table, f"f32[{','.join(map(str, at))}]"),
            (known, "f32[2,3]"),
            (self.emit("Shape", self.hidden), "i64[3]"),
            (self.emit("Size", self.hidden), "i64[]"),
            (self.emit("EyeLike", self.constant("f32", [3, 3], [0] * 9)), "f32[3,3]"),
            (self.emit("ReduceMean", self.hidden, attributes="keepdims=0"), "f32[]"),
            (self.emit("Transpose", self.hidden, attributes="perm=[1,0,2]"),
             f"f32[{self.length},{batch},{self.width}]"),
            (self.emit("Identity", self.hidden), f"f32[{batch},{self.length},{self.width}]"),
            (self.emit("ArgMax", logits, attributes="axis=-1 keepdims=0"), f"i64[{batch},{self.length}]"),
            (self.emit("ReduceSum", self.parameters[0][0], attributes="keepdims=0"), "f32[]"),
            (self.emit("Exp", table), f"f32[{','.join(map(str, at))}]"),
        ]

    def carried_outputs(self):
        """Values that a call passes to the next, and the names of its inputs for them."""
        one = self.constant("f32", [], [1])
        return {self.emit("Tanh", self.hidden): "state", self.emit("Add", "place", one): "place"}

    def add_outputs(self, wanted):
        for value, text in wanted:
            if value not in self.outputs:
                self.outputs.append(value)
                self.lines.append(f"output {value} {text}")
