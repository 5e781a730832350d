#!/usr/bin/env python3
"""Refusals of par.export before PyTorch is asked.

    python3 python/tests/test_inputs.py
"""
import importlib
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402

inputs = importlib.import_module("par.inputs")


def tensor(*shape):
    return types.SimpleNamespace(shape=shape, ndim=len(shape))


class Target(unittest.TestCase):
    def test_a_file_that_cannot_be_written(self):
        export = importlib.import_module("par.export").export
        with tempfile.TemporaryDirectory() as folder:
            for path, said in ((f"{folder}/none/m.onnx",
                                f'"{folder}/none/m.onnx" cannot be written: there is no folder "{folder}/none"'),
                               (folder,
                                f'"{folder}" is a folder; the path of the ONNX file is needed, '
                                f"as {folder}/model.onnx")):
                with self.assertRaises(par.Error) as caught:
                    export(None, {}, path)
                self.assertEqual(caught.exception.message, said)


class Dynamic(unittest.TestCase):
    def refused(self, *arguments):
        with self.assertRaises(par.Error) as caught:
            inputs.dynamic_dims(*arguments)
        self.assertEqual(caught.exception.code, 2)
        return caught.exception

    def test_dims_by_list_and_by_dict(self):
        dims = inputs.dynamic_dims(["x", "y"], [tensor(2, 3, 4), tensor(2, 1)],
                                   {"x": ["batch", None], "y": {-2: "batch"}})
        self.assertEqual(dims, {"x": {0: "batch"}, "y": {0: "batch"}})
        self.assertIsNone(inputs.dynamic_dims(["x"], [tensor(1)], None))

    def test_an_example_of_one(self):
        error = self.refused(["x"], [tensor(1, 8)], {"x": ["batch", "seq"]})
        self.assertEqual(error.message,
                         'dim 0 of the example for "x" is 1, and dynamic calls it "batch": torch fixes sizes of 0 '
                         "and 1, so the file would hold no other")
        self.assertEqual(error.notes, ('give an example whose "batch" is 2 or more; any size then trains',))

    def test_names_and_dims_that_are_not_there(self):
        error = self.refused(["x"], [tensor(2)], {"y": ["batch"]})
        self.assertEqual(error.message, 'dynamic names "y", which is no input')
        self.assertEqual(self.refused(["x"], [tensor(2)], {"x": [None, "seq"]}).message,
                         'dynamic names dim 1 of "x", which has 1')

    def test_one_name_for_two_sizes(self):
        error = self.refused(["source", "target"], [tensor(2, 48), tensor(2, 40)],
                             {"source": ["batch", "seq"], "target": ["batch", "seq"]})
        self.assertEqual(error.message,
                         '"seq" is 48 in dim 1 of "source" and 40 in dim 1 of "target": what dynamic calls alike has '
                                        'one size')
        self.assertEqual(error.notes, ("two sizes need two names; where one is meant, the examples must agree",))

    def test_what_is_no_list_of_names(self):
        def said(dims, value=None):
            return self.refused(["x"], [value or tensor(2, 3)], {"x": dims}).message

        self.assertEqual(said("batch"), "dynamic says 'batch' of \"x\", which is neither a list by dim nor a dict")
        self.assertEqual(said(["batch", 3]), 'dynamic calls dim 1 of "x" 3, which is no name')
        self.assertEqual(said({"0": "batch"}), "dynamic names dim '0' of \"x\", which is no number")
        self.assertEqual(said(["batch"], 3.0), 'dynamic names dims of "x", which is a float and no tensor')


if __name__ == "__main__":
    unittest.main()
