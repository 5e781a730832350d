"""Writes an ONNX file from lines of text, in protobuf's wire format, so that tests need no ONNX package.

    input x f32[8,seq]            output y f32[8]           init w i64[2] = 3 4
    input x f32 (of no rank)      input x sequence (no tensor)
    loose w f32[2] = 3 4 (an init of f32 or f16 whose elements stand one by one in the fields of their type)
    absent w f32[2,2] file.bin (external data)   module blocks.0.mlp       source nets.py:91
    node NAME DOMAIN::OP x,,w -> y,z axis=1 pads=[0,1] alpha=0.5 mode="constant" value=f32[2]{1,2}
    node NAME OP x -> - (no output) axis=@name (of an attribute of the function)
    ir 10                         opset 20                  function local::f
    signature p_w PARAMETER w     (a line of torch.export's graph signature)
    training {"version": 1}       (what par.export notes in the model's metadata)
    updates y f32[4] mean          (an output that is the next value of a buffer)
    tied {"a": "b"}                (further names of initializers that par.export notes there)
    value x f32[8]                 (a shape of a value within)
    devices tp2 2 cpu:0 cpu:1      (a configuration of devices, named or not; "devices" by itself: without its fields)
    node ... || [{"configuration": "tp2", "stage": 0, "shardings": [...]}]   (annotations of a node; see `sharding`)
"""
import json
import re
import struct
import sys

TYPES = {"f32": (1, "f"), "f16": (10, "e"), "u8": (2, "B"), "u16": (4, "H"), "u32": (12, "I"), "u64": (13, "Q"),
         "i32": (6, "i"),
         "i64": (7, "q"), "i8": (3, "b"), "i16": (5, "h"), "i1": (9, "?"), "f64": (11, "d"), "string": (8, ""),
         "bf16": (16, "bf16")}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def parse_type(text):
    name, dims = re.fullmatch(r"(\w+)\[(.*)\]", text).groups()
    return TYPES[name], [d for d in dims.split(",") if d]


def pack(code, value):
    if code == "bf16":  # of what bf16 holds
        return struct.pack("<f", float(value))[2:]
    return struct.pack("<" + code, float(value) if code in "efd" else int(value))


def tensor(name, text, values):
    (kind, code), dims = parse_type(text)
    data = b"".join(pack(code, v) for v in values)
    return b"".join(number(1, int(d)) for d in dims) + number(2, kind) + block(8, name) + block(9, data)


def loose(name, text, values):
    (kind, code), dims = parse_type(text)
    each = [varint(4 << 3 | 5) + struct.pack("<f", float(v)) if code == "f" else
            number(5, struct.unpack("<H", struct.pack("<e", float(v)))[0]) for v in values]
    return b"".join(number(1, int(d)) for d in dims) + number(2, kind) + block(8, name) + b"".join(each)


def external(name, text, file):
    """A tensor whose bytes are those that another file begins with."""
    return tensor(name, text, []).replace(block(9, b""), b"") + metadata(13, "location", file) + number(14, 1)


def value_info(name, text):
    if text == "sequence":
        return block(1, name) + block(2, block(4, block(1, block(1, number(1, 1)))))
    if "[" not in text:
        return block(1, name) + block(2, block(1, number(1, TYPES[text][0])))
    (kind, _), dims = parse_type(text)
    shape = b"".join(block(1, number(1, int(d)) if d.lstrip("-").isdigit() else block(2, d) if d != "?" else b"")
                     for d in dims)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, shape)))


BODIES = {}


def attribute(text):
    name, value = text.split("=", 1)
    if value.startswith("&"):
        return block(1, name) + block(6, BODIES[value[1:]]) + number(20, 5)
    if value.startswith("@"):
        return block(1, name) + block(21, value[1:]) + number(20, 2)
    if value.startswith('"'):
        return block(1, name) + block(4, value.strip('"')) + number(20, 3)
    if value.startswith("["):
        return block(1, name) + b"".join(number(8, int(v)) for v in value[1:-1].split(",") if v) + number(20, 7)
    if "]@" in value: # external data: value=f32[2]@w.bin
        kind, file = value.split("@")
        return block(1, name) + block(5, external("", kind, file)) + number(20, 4)
    if "{" in value:
        kind, values = value[:-1].split("{")
        return block(1, name) + block(5, tensor("", kind, values.split(","))) + number(20, 4)
    if "." in value:
        return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", float(value)) + number(20, 1)
    return block(1, name) + number(3, int(value)) + number(20, 2)


def metadata(field, key, value):
    return block(field, block(1, key) + block(2, value))


def each(field, values):
    return b"".join(number(field, v) for v in values)


def sharding(said):
    """{"tensor": "x", "devices": [-1, 2], "groups": [[-1, [0, 1]]], "axes": [{"axis": 0, "parts": [{"size": 8,
    "symbol": "n", "shards": 2}]}]}; what is left out is left out of the file."""
    out = block(1, said["tensor"]) if "tensor" in said else b""
    out += each(2, said.get("devices", []))
    out += b"".join(block(3, number(1, key) + each(2, devices)) for key, devices in said.get("groups", []))
    for axis in said.get("axes", []):
        dim = number(1, axis["axis"]) if "axis" in axis else b""
        for part in axis.get("parts", []):
            one = number(1, part["size"]) if "size" in part else b""
            one += block(2, part["symbol"]) if "symbol" in part else b""
            one += number(3, part["shards"]) if "shards" in part else b""
            dim += block(2, one)
        out += block(4, dim)
    return out


def placement(said):
    out = block(1, said["configuration"]) if "configuration" in said else b""
    out += b"".join(block(2, sharding(one)) for one in said.get("shardings", []))
    return out + (number(3, said["stage"]) if "stage" in said else b"")


def configuration(said):
    out = block(1, said["name"]) if "name" in said else b""
    out += number(2, said["devices"]) if "devices" in said else b""
    return out + b"".join(block(3, name) for name in said.get("names", []))


def node(text, module, source):
    text, _, placed = text.partition(" || ")
    head, attributes = re.fullmatch(r"(\S+ \S+ \S* -> \S+)(.*)", text).groups()
    name, op, inputs, _, outputs = head.split(" ")
    domain, _, op = op.rpartition("::")
    out = b"".join(block(1, i) for i in inputs.split(",")) if inputs else b""
    out += b"".join(block(2, o) for o in outputs.split(",")
                    if o != "-") + block(3, name) + block(4, op) + block(7, domain)
    out += b"".join(block(5, attribute(a)) for a in attributes.split())
    if module:
        out += metadata(9, "namespace",
                        f": Net/{module}: Module/{name}: aten.{name if name.isidentifier() else 'op'}.default")
    if source:
        file, line = source.split(":")
        out += metadata(9, "pkg.torch.onnx.stack_trace", f'File "zoo/{file}", line {line}, in forward\n    x')
    return out + b"".join(block(10, placement(said)) for said in json.loads(placed or "[]"))


def encode(lines):
    graph, ir, opset, functions, module, source, signature, model = b"", 10, 20, b"", "", "", "", b""
    outer, function, nodes = [], None, 1
    for line in lines:
        key, _, rest = line.strip().partition(" ")
        if key in ("input", "output", "value"):
            graph += block({"input": 11, "output": 12, "value": 13}[key], value_info(*rest.split()))
        elif key == "devices":
            name, count, *names = rest.split() or ("", "")
            model += block(26, configuration({"name": name, "devices": int(count), "names": names} if rest else {}))
        elif key == "updates":
            name, kind, buffer = rest.split()
            graph += block(12, value_info(name, kind) + metadata(4, "par.updates", buffer))
        elif key == "init":
            name, kind, _, *values = rest.split()
            graph += block(5, tensor(name, kind, values))
        elif key == "loose":
            name, kind, _, *values = rest.split()
            graph += block(5, loose(name, kind, values))
        elif key == "absent":
            name, kind, file = rest.split()
            graph += block(5, external(name, kind, file))
        elif key == "node":
            graph += block(nodes, node(rest, module, source))
        elif key == "module":
            module = rest
        elif key == "source":
            source = rest
        elif key == "ir":
            ir = int(rest)
        elif key == "opset":
            opset = int(rest)
        elif key == "range":
            graph += metadata(16, "pkg.torch.export.ExportedProgram.range_constraints", rest)
        elif key == "signature":
            name, kind, target = rest.split()
            signature += f"{name}: {kind} target='{target}'\n"
        elif key in ("training", "tied"):
            model += metadata(14, f"par.{key}", rest)
        elif key == "body":
            outer.append((graph, rest))
            graph = b""
        elif key == "function":
            name, *formals = rest.split()
            domain, name = name.split("::")
            function, nodes = graph, 7
            graph = block(1, name) + block(10, domain) + block(9, number(2, opset))
            if formals:
                graph += b"".join(block(4, i)
                                  for i in formals[0].split(",")) + b"".join(block(5, o) for o in formals[2].split(","))
        elif key == "end" and outer:
            body = graph
            graph, name = outer.pop()
            BODIES[name] = body
        elif key == "end":
            functions += block(25, graph)
            graph, function, nodes = function, None, 1
    if signature:
        graph += metadata(16, "pkg.torch.export.ExportedProgram.graph_signature", "# inputs\n" + signature)
    return number(1, ir) + block(8, number(2, opset)) + functions + block(7, graph) + model


if __name__ == "__main__":
    open(sys.argv[2], "wb").write(encode(open(sys.argv[1])))
