"""Mutates the multi-device annotations of a model, one rule at a time, and asks par-compile --check-onnx-devices for a
sentence about each at its place.

    mutate_devices.py MODEL.onnx [--count 100] [--seed 7] [--onnx]

MODEL has annotations that keep every rule, over several stages. Each mutation draws a node, a tensor and a value, so a
count above the number of kinds breaks the same rule elsewhere. --onnx says what onnx's own checker takes of the files.
Besides, bytes within annotations are overwritten at random: any answer but a crash is right.
"""
import argparse
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Phases", "Import", "Inputs"))
from encode import block, configuration, number, placement, varint


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    """(field, wire type, value): numbers are signed, other values are bytes."""
    at, found = 0, []
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
            value = signed(value)
        else:
            size = {1: 8, 5: 4}.get(tag & 7)
            if size is None:
                size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        found.append((tag >> 3, tag & 7, value))
    return found


def join(found):
    out = b""
    for field, wire, value in found:
        if wire == 0:
            out += number(field, value)
        else:
            out += varint(field << 3 | wire) + (varint(len(value)) if wire == 2 else b"") + value
    return out


def numbers(found, field):
    """Repeated numbers, one by one or packed."""
    out = []
    for each, wire, value in found:
        if each == field and wire == 0:
            out.append(value)
        elif each == field:
            at = 0
            while at < len(value):
                one, at = read_varint(value, at)
                out.append(signed(one))
    return out


def read_sharding(data):
    found = fields(data)
    said = {"devices": numbers(found, 2), "groups": [], "axes": []}
    for field, _, value in found:
        if field == 1:
            said["tensor"] = value.decode()
        elif field == 3:
            inner = fields(value)
            said["groups"].append([dict((f, v) for f, w, v in inner if w == 0 and f == 1).get(1, 0), numbers(inner, 2)])
        elif field == 4:
            axis = {"parts": []}
            for f, _, v in fields(value):
                if f == 1:
                    axis["axis"] = v
                else:
                    names = {1: "size", 2: "symbol", 3: "shards"}
                    axis["parts"].append({names[g]: x.decode() if g == 2 else x for g, _, x in fields(v)})
            said["axes"].append(axis)
    return said


def read_placement(data):
    said = {"shardings": []}
    for field, _, value in fields(data):
        if field == 1:
            said["configuration"] = value.decode()
        elif field == 2:
            said["shardings"].append(read_sharding(value))
        else:
            said["stage"] = value
    return said


class Node:
    def __init__(self, data):
        found = fields(data)
        self.inputs = [v.decode() for f, _, v in found if f == 1]
        self.outputs = [v.decode() for f, _, v in found if f == 2]
        self.name = next((v.decode() for f, _, v in found if f == 3), "")
        self.rest = [each for each in found if each[0] != 10]
        self.placed = [read_placement(v) for f, _, v in found if f == 10]

    def data(self):
        return join(self.rest) + b"".join(block(10, placement(said)) for said in self.placed)


class Model:
    def __init__(self, data):
        found = fields(data)
        graph = fields(next(v for f, _, v in found if f == 7))
        self.rest = [each for each in found if each[0] not in (1, 7, 26)]
        self.ir = next(v for f, _, v in found if f == 1)
        self.nodes = [Node(v) for f, _, v in graph if f == 1]
        self.graph = [each for each in graph if each[0] != 1]
        self.shapes = {}
        for f, _, v in graph:
            if f == 5:
                inner = fields(v)
                name = next(x.decode() for g, _, x in inner if g == 8)
                self.shapes[name] = numbers(inner, 1)
        self.configurations = []
        for f, _, v in found:
            if f == 26:
                inner = fields(v)
                said = {"names": [x.decode() for g, _, x in inner if g == 3]}
                said.update({{1: "name", 2: "devices"}[g]: x.decode() if g == 1 else x for g, _, x in inner if g < 3})
                self.configurations.append(said)

    def data(self):
        graph = b"".join(block(1, node.data()) for node in self.nodes) + join(self.graph)
        return (number(1, self.ir) + join(self.rest) + block(7, graph) +
                b"".join(block(26, configuration(said)) for said in self.configurations))


class Mutator:
    """Each method breaks one rule and returns the sentence that is expected, as a regular expression."""

    def __init__(self, model, draw):
        self.model, self.draw = model, draw

    def node(self, accepts=lambda node: True):
        return self.draw.choice([n for n in self.model.nodes if n.placed and n.placed[0]["shardings"] and accepts(n)])

    def sharding(self, accepts=lambda said: True):
        node = self.node(lambda n: any(accepts(s) for s in n.placed[0]["shardings"]))
        return node, self.draw.choice([s for s in node.placed[0]["shardings"] if accepts(s)])

    def weight(self, sharded=True):
        """A sharding of a tensor whose shape is in the file."""
        return self.sharding(lambda s: len(self.model.shapes.get(s["tensor"], [])) > 1 and bool(s["axes"]) == sharded)

    def grouped(self):
        return self.sharding(lambda s: s["groups"])

    @staticmethod
    def at(node, said, sentence):
        return f'node "{re.escape(node.name)}": in "par": sharding of "{re.escape(said["tensor"])}": {sentence}'

    def configuration_without_name(self):
        del self.model.configurations[0]["name"]
        return "configuration number 0: it has no name"

    def configuration_twice(self):
        self.model.configurations.append(dict(self.model.configurations[0]))
        return 'configuration "par": another one before it has this name'

    def no_num_devices(self):
        del self.model.configurations[0]["devices"]
        return 'configuration "par": num_devices is missing'

    def few_num_devices(self):
        value = self.model.configurations[0]["devices"] = self.draw.choice([0, -1, -5])
        return f'configuration "par": num_devices is {value}, at least 1'

    def names_of_devices(self):
        names = self.model.configurations[0]["names"]
        names.pop() if self.draw.random() < .5 else names.append("more")
        return f'configuration "par": it names {len(names)} devices?, num_devices is'

    def no_configuration_id(self):
        node = self.node()
        del node.placed[0]["configuration"]
        return f'node "{re.escape(node.name)}": its annotation has no configuration_id'

    def unknown_configuration(self):
        node = self.node()
        node.placed[0]["configuration"] = "other"
        return f'node "{re.escape(node.name)}": configuration_id "other" is no configuration'

    def two_annotations(self):
        node = self.node()
        node.placed.append(node.placed[0])
        return f'node "{re.escape(node.name)}": it has two annotations for configuration "par"'

    def negative_stage(self):
        node = self.node()
        value = node.placed[0]["stage"] = -self.draw.randint(1, 9)
        return f'node "{re.escape(node.name)}": in "par": pipeline_stage is {value}, at least 0'

    def stage_goes_down(self):
        late = {o for n in self.model.nodes if n.placed and n.placed[0].get("stage", 0) > 0 for o in n.outputs}
        node = self.node(lambda n: n.placed[0].get("stage", 0) > 0 and late.intersection(n.inputs))
        node.placed[0]["stage"] = 0
        return f'node "{re.escape(node.name)}": in "par": pipeline_stage is 0, and ".*", which it reads, comes from stage'

    def no_tensor_name(self):
        node, said = self.sharding()
        del said["tensor"]
        return f'node "{re.escape(node.name)}": in "par": a sharding_spec has no tensor_name'

    def other_tensor(self):
        node, said = self.sharding()
        said["tensor"] = self.draw.choice([t for t in self.model.shapes if t not in node.inputs + node.outputs])
        return self.at(node, said, "it is neither an input nor an output")

    def tensor_twice(self):
        node, said = self.sharding()
        node.placed[0]["shardings"].append(said)
        return f'node "{re.escape(node.name)}": in "par": it has two shardings of "{re.escape(said["tensor"])}"'

    def axis_beyond(self):
        node, said = self.weight()
        rank = len(self.model.shapes[said["tensor"]])
        value = said["axes"][0]["axis"] = self.draw.choice([rank, rank + 3, -rank - 1, 1 << 40])
        return self.at(node, said, f"axis {value} of a tensor of rank {rank}")

    def no_axis(self):
        node, said = self.weight()
        del said["axes"][0]["axis"]
        return self.at(node, said, "a sharded_dim has no axis")

    def axis_twice(self):
        node, said = self.weight()
        first = said["axes"][0]
        again = first["axis"] - len(self.model.shapes[said["tensor"]])
        said["axes"].append({"axis": again, "parts": [{"shards": 1}]})
        return self.at(node, said, f"axis {again} is sharded twice")

    def no_parts(self):
        node, said = self.weight()
        said["axes"][0]["parts"] = []
        return self.at(node, said, "axis .*: it says no simple_sharding")

    def no_num_shards(self):
        node, said = self.weight()
        del said["axes"][0]["parts"][-1]["shards"]
        return self.at(node, said, "axis .*: num_shards is missing")

    def few_num_shards(self):
        node, said = self.weight()
        value = said["axes"][0]["parts"][-1]["shards"] = self.draw.choice([0, -1])
        return self.at(node, said, f"axis .*: num_shards is {value}, at least 1")

    def few_dim_value(self):
        node, said = self.weight()
        value = said["axes"][0]["parts"][-1]["size"] = self.draw.choice([0, -4])
        return self.at(node, said, f"axis .*: dim_value is {value}, at least 1")

    def only(self):
        """A weight whose axis is of one part."""
        return self.sharding(lambda s: s["tensor"] in self.model.shapes and s["axes"] and len(s["axes"][0]["parts"]) == 1)

    def other_dim_value(self):
        node, said = self.only()
        part = said["axes"][0]["parts"][0]
        part["size"] += self.draw.choice([1, 2, -1])
        return self.at(node, said, f'axis .*: dim_value is {part["size"]}, the tensor has')

    def symbol_of_number(self):
        node, said = self.only()
        part = said["axes"][0]["parts"][0]
        part.pop("size", None)
        part["symbol"] = "n"
        return self.at(node, said, 'axis .*: dim_param is "n", the tensor has')

    def empty_symbol(self):
        node, said = self.only()
        part = said["axes"][0]["parts"][0]
        part.pop("size", None)
        part["symbol"] = ""
        return self.at(node, said, "axis .*: dim_param is empty")

    def many_shards(self):
        node, said = self.only()
        part = said["axes"][0]["parts"][0]
        part["shards"] = part["size"] + self.draw.randint(1, 9)
        return self.at(node, said, f'axis .*: {part["shards"]} shards of a dim of')

    def parts_of_other_dim(self):
        node, said = self.only()
        said["axes"][0]["parts"].insert(0, {"size": 7, "shards": 1})
        return self.at(node, said, "axis .*: its parts make a dim of")

    def entry_gone(self):
        node, said = self.sharding(lambda s: s["axes"] and len(s["devices"]) > 1)
        said["devices"].pop()
        return self.at(node, said, "its axes make .* shards, the list of devices has")

    def no_devices(self):
        node, said = self.sharding()
        said["devices"], said["groups"] = [], []
        return self.at(node, said, "it names no device")

    def device_beyond(self):
        node, said = self.sharding()
        value = self.model.configurations[0]["devices"] + self.draw.choice([0, 1, 1 << 33])
        said["devices"][self.draw.randrange(len(said["devices"]))] = value
        return self.at(node, said, f"device {value} is none of the")

    def group_gone(self):
        node, said = self.grouped()
        key, _ = said["groups"].pop()
        return self.at(node, said, f"device {key} is a group that index_to_device_group_map does not have")

    def member_beyond(self):
        node, said = self.grouped()
        value = self.draw.choice([-3, self.model.configurations[0]["devices"]])
        said["groups"][0][1][0] = value
        return self.at(node, said, f"device {value} of group .* is none of the")

    def empty_group(self):
        node, said = self.grouped()
        said["groups"][0][1] = []
        return self.at(node, said, "group .* has no devices")

    def key_twice(self):
        node, said = self.grouped()
        said["groups"].append(said["groups"][0])
        return self.at(node, said, "group .* stands twice")

    def unused_group(self):
        node, said = self.sharding()
        said["groups"].append([-99, [0]])
        return self.at(node, said, "group -99 holds nothing")

    def member_twice(self):
        node, said = self.grouped()
        said["groups"][0][1].append(said["groups"][0][1][0])
        return self.at(node, said, "group .* has device .* twice")

    def groups_overlap(self):
        node, said = self.sharding(lambda s: len(s["groups"]) > 1)
        said["groups"][1][1][0] = said["groups"][0][1][0]
        return self.at(node, said, "device .* of group .* holds shard .* already")

    def old_version(self):
        self.model.ir = self.draw.randint(3, 10)
        return f"has multi-device annotations, which are of IR version 11; the file says {self.model.ir}"


def check(file):
    return subprocess.run(["par-compile", file, "--check-onnx-devices"], capture_output=True, text=True)


def overwrite(data, draw, count):
    """Files with some bytes of annotations overwritten."""
    begin = data.index(b"par", data.index(b"\x52"))
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            at = data.find(b"\x0a\x03par", draw.randrange(begin, len(data)))
            if at >= 0:
                changed[min(len(data) - 1, at + draw.randint(-6, 40))] = draw.randrange(256)
        yield bytes(changed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--bytes", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--onnx", action="store_true")
    options = parser.parse_args()
    data = open(options.model, "rb").read()
    assert check(options.model).returncode == 0, "the model itself breaks a rule"
    draw = random.Random(options.seed)
    kinds = [name for name in vars(Mutator) if name not in ("node", "sharding", "weight", "grouped", "only", "at") and
             not name.startswith("_")]
    found = taken = 0
    for i in range(options.count):
        model = Model(data)
        kind = kinds[i % len(kinds)]
        expected = getattr(Mutator(model, draw), kind)()
        file = f"mutated{i}.onnx"
        open(file, "wb").write(model.data())
        run = check(file)
        said = any(re.match(f"{file}: error: {expected}", line) for line in run.stderr.splitlines())
        if run.returncode != 1 or not said:
            print(f"{file}: {kind}, seed {options.seed}: exit {run.returncode}, expected {expected}\n{run.stderr}")
        found += run.returncode == 1 and said
        if options.onnx:
            import onnx
            try:
                onnx.checker.check_model(file)
                taken += 1
            except onnx.checker.ValidationError:
                pass
        os.remove(file)
    print(f"{found} of {options.count} mutated files, {len(kinds)} rules: a sentence at its place")
    if options.onnx:
        print(f"onnx's own checker takes {taken} of them")
    answered = 0
    for i, changed in enumerate(overwrite(data, draw, options.bytes)):
        open("overwritten.onnx", "wb").write(changed)
        run = check("overwritten.onnx")
        answered += run.returncode in (0, 1)
        if run.returncode not in (0, 1):
            print(f"overwritten {i}, seed {options.seed}: exit {run.returncode}\n{run.stderr}")
    print(f"{answered} of {options.bytes} overwritten files: an answer")
    sys.exit(found != options.count or answered != options.bytes)


if __name__ == "__main__":
    main()
