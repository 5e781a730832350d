#!/usr/bin/env python3
"""Writes an ONNX model that means the same under other names and in another order.

    rename_model.py MODEL.onnx OUT.onnx

Nodes, values (graph inputs and outputs too) and modules are renamed, initializers stand in reverse, and the two inputs
of Add, Mul, And, Or, Equal, Max and Min are swapped. Prints the new name of every graph input, output and initializer
as JSON. The protobuf wire format is read and written here field by field, so nothing but Python's standard library is
needed.
"""
import json
import pathlib
import re
import sys

# Words of module paths; a word ends where neither a letter nor a digit follows, as in
# p_model_transformer_h_0_ln_1_weight.
WORDS = {"model": "net", "transformer": "trunk", "h": "blocks", "attn": "mixer", "mlp": "wide", "c_attn": "into",
         "c_proj": "back", "c_fc": "up", "ln_1": "norm_before", "ln_2": "norm_between", "ln_f": "norm_last",
         "wte": "symbols",
         "wpe": "places", "lm_head": "readout", "fc1": "one", "fc2": "two", "fc3": "three"}
WORD = re.compile(r"(?<![A-Za-z0-9])(" + "|".join(sorted(WORDS, key=len, reverse=True)) + r")(?![A-Za-z0-9])")
COMMUTATIVE = {b"Add", b"Mul", b"And", b"Or", b"Equal", b"Max", b"Min"}

# Numbers of the fields used here, by message of onnx.proto.
MODEL_GRAPH, MODEL_METADATA = 7, 14
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_VALUE, GRAPH_METADATA = 1, 5, 11, 12, 13, 16
NODE_INPUT, NODE_OUTPUT, NODE_NAME, NODE_OP, NODE_ATTRIBUTE, NODE_METADATA = 1, 2, 3, 4, 5, 9
ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS, TENSOR_NAME, VALUE_NAME, VALUE_METADATA, ENTRY_VALUE = 6, 11, 8, 1, 4, 2


def read_number(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def read_message(data):
    """[field, wire type, number or bytes], in the order of the message."""
    fields, at = [], 0
    while at < len(data):
        key, at = read_number(data, at)
        kind = key & 7
        if kind == 0:
            value, at = read_number(data, at)
        elif kind in (1, 2, 5):
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                length, at = read_number(data, at)
            if at + length > len(data):
                sys.exit(f"a field of {length} bytes at {at} of {len(data)}")
            value, at = data[at:at + length], at + length
        else:
            sys.exit(f"wire type {kind} at {at}")
        fields.append([key >> 3, kind, value])
    return fields


def write_number(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def write_message(fields):
    out = []
    for field, kind, value in fields:
        out.append(write_number(field << 3 | kind))
        out.append(write_number(value) if kind == 0 else value if kind != 2 else write_number(len(value)) + value)
    return b"".join(out)


def other_words(name):
    return WORD.sub(lambda found: WORDS[found[0]], name)


def map_fields(data, changes):
    """A message with `changes[field]` applied to the fields that it names."""
    return write_message([[field, kind, changes[field](value) if field in changes else value]
                          for field, kind, value in read_message(data)])


def map_text(change):
    return lambda value: change(value.decode()).encode()


def field_of(message, number):
    return next((value for field, _, value in message if field == number), b"")


class Renaming:
    def __init__(self, graph):
        self.parameters = {field_of(read_message(value), TENSOR_NAME).decode()
                           for field, _, value in graph if field == GRAPH_INITIALIZER}
        self.values, self.nodes = {"": ""}, 0

    def value(self, name):
        """New name of a parameter by its module, of another value by a number."""
        if name not in self.values:
            self.values[name] = other_words(name) if name in self.parameters else f"t{len(self.values)}.x"
        return self.values[name]

    def node(self, data):
        node = read_message(data)
        self.nodes += 1
        inputs = [index for index, entry in enumerate(node) if entry[0] == NODE_INPUT]
        if field_of(node, NODE_OP) in COMMUTATIVE and len(inputs) == 2:
            first, second = inputs
            node[first], node[second] = node[second], node[first]
        for entry in node:
            inside = {field for field, _, _ in read_message(entry[2])} if entry[0] == NODE_ATTRIBUTE else set()
            if inside & {ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS}:
                sys.exit("a node with a subgraph, whose values are not renamed")
        value = map_text(self.value)
        return map_fields(write_message(node), {NODE_INPUT: value, NODE_OUTPUT: value, NODE_METADATA: metadata,
                                                NODE_NAME: lambda _: f"op {self.nodes}".encode()})

    def graph(self, graph):
        described = {VALUE_NAME: map_text(self.value), VALUE_METADATA: metadata}
        changes = {GRAPH_NODE: self.node, GRAPH_METADATA: metadata,
                   GRAPH_INITIALIZER: lambda data: map_fields(data, {TENSOR_NAME: map_text(self.value)})}
        for field in (GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_VALUE):
            changes[field] = lambda data: map_fields(data, described)
        graph = read_message(map_fields(write_message(graph), changes))
        parameters = iter([entry for entry in graph if entry[0] == GRAPH_INITIALIZER][::-1])
        return write_message([next(parameters) if entry[0] == GRAPH_INITIALIZER else entry for entry in graph])


def metadata(data):
    """An entry of metadata_props: module paths stand in the values."""
    return map_fields(data, {ENTRY_VALUE: map_text(other_words)})


def rename(source, to):
    """Writes the renamed model; the new names of inputs, outputs and parameters by the old ones."""
    model = read_message(pathlib.Path(source).read_bytes())
    graph = read_message(field_of(model, MODEL_GRAPH))
    renaming = Renaming(graph)
    changes = {MODEL_GRAPH: lambda data: renaming.graph(graph), MODEL_METADATA: metadata}
    pathlib.Path(to).write_bytes(map_fields(write_message(model), changes))
    seen = [field_of(read_message(value), VALUE_NAME).decode() for field, _, value in graph
            if field in (GRAPH_INPUT, GRAPH_OUTPUT)]
    return {name: renaming.value(name) for name in sorted(renaming.parameters) + seen}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(json.dumps(rename(sys.argv[1], sys.argv[2]), indent=1))


if __name__ == "__main__":
    main()
