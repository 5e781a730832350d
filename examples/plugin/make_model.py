#!/usr/bin/env python3
"""Writes cube.onnx: two linear layers with the node example::cube and a double negation between them.

    python3 make_model.py        needs the packages onnx and numpy
"""
import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

numbers = numpy.random.default_rng(1)


def weight(name, rows, columns):
    values = numbers.uniform(-1, 1, (rows, columns)) / numpy.sqrt(columns)
    return numpy_helper.from_array(values.astype(numpy.float32), name)


nodes = [
    helper.make_node("Gemm", ["x", "fc1.weight"], ["h"], "fc1", transB=1),
    helper.make_node("cube", ["h"], ["c"], "cube", domain="example", scale=0.5),
    helper.make_node("Neg", ["c"], ["n"], "neg1"),
    helper.make_node("Neg", ["n"], ["p"], "neg2"),
    helper.make_node("Gemm", ["p", "fc2.weight"], ["y"], "fc2", transB=1),
]
graph = helper.make_graph(
    nodes, "cube", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
    [weight("fc1.weight", 16, 8), weight("fc2.weight", 4, 16)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("example", 1)],
                          ir_version=9)
onnx.save(model, pathlib.Path(__file__).with_name("cube.onnx"))
