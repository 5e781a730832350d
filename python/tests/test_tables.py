#!/usr/bin/env python3
"""Tables of arrow as data: each form of them gives the losses of the same arrays, and what cannot be read says why.

    PAR_HOME=build python3 python/tests/test_tables.py

Needs pyarrow and a built Par; with the package datasets its own folders and objects are read too.
"""
import importlib.util
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import pyarrow
import pyarrow.ipc

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
import par  # noqa: E402
from par import tables  # noqa: E402
from stored import read_arrays  # noqa: E402

MODELS = SOURCE / "test/Models/mlp"
STEPS = 6


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-tables-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.bundle = par.compile(MODELS / "model.onnx", {"train": {"optimizer": "sgd"}}, out=cls.folder / "one.par")
        arrays = read_arrays(MODELS / "data.safetensors")
        cls.columns = {name: view.tolist() for name, view in arrays.items()}
        cls.reference = cls.losses(MODELS / "data.safetensors")

    @classmethod
    def losses(cls, data):
        return par.run(cls.bundle, data=data, order="sequential", steps=STEPS, quiet=True).losses

    def table(self, fixed=False, rows=None):
        made = {}
        for name, values in self.columns.items():
            kind = pyarrow.float32() if isinstance(values[0], list) else pyarrow.int64()
            if isinstance(values[0], list):
                kind = pyarrow.list_(kind, len(values[0])) if fixed else pyarrow.list_(kind)
            made[name] = pyarrow.array(values[:rows], kind)
        return pyarrow.table(made)

    def write(self, name, table, form=pyarrow.ipc.new_stream, chunk=None):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        with form(str(path), table.schema) as out:
            out.write_table(table, max_chunksize=chunk)
        return path

    def refused(self, data):
        with self.assertRaises(par.Error) as caught:
            self.losses(data)
        return f"{caught.exception.file or ''} {caught.exception.message}"

    def test_files(self):
        self.assertEqual(len(self.reference), STEPS)
        for name, path in (("stream", self.write("a.arrow", self.table())),
                           ("batches of 7 rows", self.write("b.arrow", self.table(True), chunk=7)),
                           ("file", self.write("c.arrow", self.table(), pyarrow.ipc.new_file))):
            with self.subTest(name):
                self.assertEqual(self.losses(path), self.reference)

    def test_folder_of_several_files(self):
        whole = self.table()
        half = whole.num_rows // 2
        self.write("set/data-0.arrow", whole.slice(0, half))
        self.write("set/data-1.arrow", whole.slice(half))
        state = {"_data_files": [{"filename": "data-0.arrow"}, {"filename": "data-1.arrow"}]}
        (self.folder / "set/state.json").write_text(json.dumps(state))
        self.assertEqual(self.losses(self.folder / "set"), self.reference)
        (self.folder / "set/state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "i"}]}))
        self.assertIn("is a selection of rows: Dataset.flatten_indices() before", self.refused(self.folder / "set"))

    def test_columns_without_numbers(self):
        table = self.table()
        table = table.append_column("text", pyarrow.array(["a"] * table.num_rows))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertEqual(self.losses(self.write("text.arrow", table)), self.reference)
        self.assertIn("text.arrow: columns that hold no numbers are left out: text (string)", str(said[0].message))
        self.assertIn("no column holds numbers; tokenize the texts first",
                      self.refused(self.write("only.arrow", table.select(["text"]))))

    def test_refusals(self):
        ragged = pyarrow.table({"x": pyarrow.array([[1.0, 2.0], [3.0]])})
        self.assertIn('column "x" has lists of 1 to 2 elements; pad them to one length',
                      self.refused(self.write("ragged.arrow", ragged)))
        holes = pyarrow.table({"x": pyarrow.array([1.0, None])})
        self.assertIn('column "x" has 1 rows without a value', self.refused(self.write("holes.arrow", holes)))
        within = pyarrow.table({"x": pyarrow.array([[1.0, None]])})
        self.assertIn('column "x" has lists with 1 elements that have no value',
                      self.refused(self.write("within.arrow", within)))
        (self.folder / "text.arrow").write_text("no arrow")
        self.assertIn("cannot be read as a data set", self.refused(self.folder / "text.arrow"))
        self.assertIn("cannot be read as a data set", self.refused(self.folder / "none.arrow"))
        (self.folder / "splits").mkdir()
        (self.folder / "splits/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        self.assertIn("holds the splits train, test: name one, " + str(self.folder / "splits/train"),
                      self.refused(self.folder / "splits"))

    def test_without_pyarrow(self):
        path = self.write("d.arrow", self.table())
        with mock.patch.dict(sys.modules, {"pyarrow": None}):
            self.assertIn("which is not installed: pip install pyarrow", self.refused(path))

    @unittest.skipUnless(importlib.util.find_spec("datasets"), "needs the package datasets")
    def test_data_sets(self):
        import datasets
        whole = datasets.Dataset.from_dict(self.columns)
        order = list(range(whole.num_rows))
        self.assertEqual(self.losses(whole), self.losses(MODELS / "data.safetensors"))
        whole.save_to_disk(str(self.folder / "saved"), num_shards=3)
        self.assertEqual(self.losses(self.folder / "saved"), self.reference)
        turned = whole.select(order[::-1]).select(order[::-1])
        self.assertEqual(self.losses(turned), self.reference)
        datasets.DatasetDict({"train": whole}).save_to_disk(str(self.folder / "both"))
        self.assertEqual(self.losses(self.folder / "both/train"), self.reference)
        shape = (1, len(self.columns["x"][0]))
        images = datasets.Dataset.from_dict({"x": [[row] for row in self.columns["x"]]},
                                            datasets.Features({"x": datasets.Array2D(shape, "float32")}))
        self.assertEqual(tables.columns(images)["x"].shape, (whole.num_rows, *shape))


if __name__ == "__main__":
    unittest.main()
