#!/usr/bin/env python3
"""Makes a model of two layers a deeper one, to be planned: the second layer again and again.

    deeper.py IN.onnx[.gz] OUT.onnx --layers 32

Layers are told by the number after `layers` or `h` in their modules' paths, in a model without weights. Needs onnx.
"""
import argparse
import ast
import copy
import gzip
import re

import onnx

LAYER = re.compile(r"(\b(?:layers|h|layer|block)[._])(\d+)\b")
SCOPES = "pkg.torch.onnx.name_scopes"
SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"


def layer_of(node):
    """The number of the layer that a node is of; None: it is of none."""
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            found = [LAYER.search(scope) for scope in ast.literal_eval(entry.value)]
            found = [match for match in found if match]
            return int(found[0][2]) if found else None
    return None


def numbered(text, layer):
    return LAYER.sub(lambda match: f"{match[1]}{layer}" if match[2] == "1" else match[0], text)


def copied(nodes, before, layer, own, weights):
    """Nodes of layer 1 as those of another: `before` maps values of layer 0 to those of the layer before it."""
    copies = []
    for node in nodes:
        made = copy.deepcopy(node)
        made.name = f"{node.name}__{layer}"
        names = [before[name] if name in before else f"{name}__{layer}" if name in own else
                 numbered(name, layer) if name in weights else name for name in node.input]
        del made.input[:]
        made.input.extend(names)
        outputs = [f"{name}__{layer}" for name in node.output]
        del made.output[:]
        made.output.extend(outputs)
        for entry in made.metadata_props:
            entry.value = numbered(entry.value, layer)
        copies.append(made)
    return copies


def deepen(model, layers):
    graph = model.graph
    by_layer = [[node for node in graph.node if layer_of(node) == layer] for layer in (0, 1)]
    second = [name for node in by_layer[1] for name in node.output]
    first, result = by_layer[0][-1].output[0], by_layer[1][-1].output[0]
    assert any(first in node.input for node in by_layer[1]), "the last value of layer 0 is not read by layer 1"
    users = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, set()).add(layer_of(node))
    weights = [tensor for tensor in graph.initializer if users.get(tensor.name) == {1}]
    own = set(second)
    added, last = [], result
    for layer in range(2, layers):
        added += copied(by_layer[1], {first: last}, layer, own, {tensor.name for tensor in weights})
        last = f"{result}__{layer}"
        for tensor in weights:
            made = copy.deepcopy(tensor)
            made.name = numbered(tensor.name, layer)
            assert made.name != tensor.name, f"{tensor.name} is of layer 1 only, and its name has no number"
            graph.initializer.append(made)
    nodes = list(graph.node)
    end = max(index for index, node in enumerate(nodes) if layer_of(node) == 1) + 1
    for node in nodes[end:]:
        for index, name in enumerate(node.input):
            node.input[index] = last if name == result else name
    del graph.node[:]
    graph.node.extend(nodes[:end] + added + nodes[end:])
    for entry in graph.metadata_props:
        if entry.key == SIGNATURE:
            lines = entry.value.split("\n")
            entry.value = "\n".join(lines + [numbered(line.replace("layers_1_", f"layers_{layer}_"), layer)
                                             for layer in range(2, layers) for line in lines if LAYER.search(line)
                                             and numbered(line, 0) != line])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, required=True)
    options = parser.parse_args()
    opened = gzip.open if options.model.endswith(".gz") else open
    with opened(options.model, "rb") as file:
        model = onnx.load_model_from_string(file.read())
    deepen(model, options.layers)
    onnx.save_model(model, options.out)


main()
