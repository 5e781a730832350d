#!/usr/bin/env python3
"""How par.export names the tensors among what forward takes, and what it refuses before PyTorch is asked.

    python3 python/tests/test_arguments.py
"""
import collections
import dataclasses
import importlib
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402

nested = importlib.import_module("par.nested")
Arguments = importlib.import_module("par.arguments").Arguments


class Tensor:
    """Stands for torch.Tensor: what a name is given to."""
    requires_grad, ndim = False, 1

    def detach(self):
        return self

    clone = detach

    def requires_grad_(self, _):
        return self


TORCH = types.SimpleNamespace(Tensor=Tensor, dtype=type("dtype", (), {}), device=type("device", (), {}))
X, Y, Z = Tensor(), Tensor(), Tensor()
Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass(frozen=True)
class Batch:
    tokens: Tensor
    length: int
    more: list


def module(forward):
    made = type("Module", (), {"forward": staticmethod(forward), "named_parameters": lambda self: [("weight", X)],
                               "named_buffers": lambda self: []})
    return made()


class Names(unittest.TestCase):
    def arguments(self, forward, inputs):
        return Arguments(TORCH, module(forward), inputs)

    def called(self, forward, inputs, *tensors):
        """(names, args, kwargs) with other tensors in the places of the examples."""
        found = self.arguments(forward, inputs)
        return (found.names, *found.call(tensors))

    def test_by_name_and_by_position(self):
        def forward(x, y=None, *, z=3):
            pass

        for inputs in ({"y": Y, "x": X}, (X, Y), [X, Y], collections.UserDict(x=X, y=Y)):
            found = self.arguments(forward, inputs)
            self.assertEqual((found.names, found.values, found.plain), (["x", "y"], [X, Y], True))
        self.assertEqual(self.called(forward, {"x": X, "y": True, "z": None}, Z),
                         (["x"], [], {"x": Z, "y": True, "z": None}))
        self.assertEqual(self.arguments(forward, X).names, ["x"])

    def test_lists_dicts_and_dataclasses(self):
        def forward(batch, pair=None):
            pass

        names, args, kwargs = self.called(forward, {"batch": Batch(X, 3, [None, Y]), "pair": Pair(X, 0.5)}, Y, Z, X)
        self.assertEqual((names, args), (["batch.tokens", "batch.more.1", "pair.first"], []))
        self.assertEqual(kwargs, {"batch": Batch(Y, 3, [None, Z]), "pair": Pair(X, 0.5)})
        given = collections.OrderedDict(a={"b": (X, "no")}, c=Y)
        names, _, kwargs = self.called(forward, {"batch": given}, Y, Z)
        self.assertEqual(names, ["batch.a.b.0", "batch.c"])
        self.assertEqual(kwargs, {"batch": collections.OrderedDict(a={"b": (Y, "no")}, c=Z)})
        self.assertIsInstance(kwargs["batch"], collections.OrderedDict)
        self.assertEqual(given["c"], Y, "the example stays as it is")

    def test_any_number(self):
        def forward(x, y=7, *xs, scale=1, **more):
            pass

        self.assertEqual(self.called(forward, (X, Y, Z), Z, Y, X), (["x", "y", "xs.0"], [Z, Y, X], {}))
        self.assertEqual(self.called(forward, {"x": X, "xs": [Y, None, Z], "scale": 2}, Z, Y, X),
                         (["x", "xs.0", "xs.2"], [Z, 7, Y, None, X], {"scale": 2}))
        for other in ("other", "scales"):
            given = {other: Y, "x": X, "scale": 2}
            self.assertEqual(self.called(forward, given, Z, Y), (["x", other], [], {"x": Z, "scale": 2, other: Y}))

    def test_by_position_alone(self):
        def forward(x, /, y):
            pass

        self.assertEqual(self.called(forward, {"x": X, "y": Y}, Y, X), (["x", "y"], [Y], {"y": X}))

    def test_results(self):
        scalar = Tensor()
        scalar.ndim = 0

        def names(value):
            return nested.results(TORCH, value)[0]

        self.assertEqual(names(X), ["output"])
        self.assertEqual(names(scalar), ["loss"])
        self.assertEqual(names((scalar, X, None, [Y, Z])), ["loss", "output", "output.1", "output.2"])
        self.assertEqual(names({"hidden": (X, Y), "loss": scalar, "cache": None}), ["hidden.0", "hidden.1", "loss"])
        self.assertEqual(names(Batch(X, 3, [Y])), ["tokens", "more.0"])
        self.assertEqual(names(Pair(X, Y)), ["first", "second"])

    def test_identifiers(self):
        self.assertEqual(nested.identifiers(["x", "x.0", "x_0", "self", "0", "a b"]),
                         ["x", "x_0", "x_0_", "input_self", "input_0", "a_b"])


class Refused(unittest.TestCase):
    def refused(self, forward, inputs):
        with self.assertRaises(par.Error) as caught:
            Arguments(TORCH, module(forward), inputs)
        self.assertEqual(caught.exception.code, 2)
        return caught.exception

    def test_an_argument_without_an_example(self):
        def forward(source, wanted, scale=1.0):
            pass

        error = self.refused(forward, {"source": X})
        self.assertEqual(error.message, 'forward of Module needs "wanted", for which there is no example')
        self.assertEqual(error.notes, ("its arguments are source, wanted, scale=1.0",))
        self.assertEqual(self.refused(forward, (X,) * 4).message, "4 inputs for forward of Module, which takes 3")

    def test_names_that_are_none(self):
        def forward(input_ids, **more):
            pass

        self.assertEqual(self.refused(forward, {"inputs_ids": X}).message,
                         'forward of Module has no argument "inputs_ids"; did you mean "input_ids"?')
        self.assertEqual(self.refused(lambda x: None, {"x": X, "other": X}).message,
                         'forward of Module has no argument "other"')
        self.assertEqual(self.refused(lambda *xs: None, {"xs": X}).message,
                         '"xs" of forward of Module takes any number of values, found a Tensor; give a list')

    def test_what_is_no_tensor(self):
        error = self.refused(lambda x: None, {"x": [X, {1, 2}]})
        self.assertEqual(error.message, 'input "x.1" is a set, and the inputs of a file are tensors')
        self.assertEqual(error.notes,
                         ("lists, tuples, dicts and dataclasses of tensors are taken apart, and numbers, texts and "
                          "None "
                                       "are constants",))

    def test_names_twice(self):
        self.assertEqual(self.refused(lambda weight: None, {"weight": X}).message,
                         'input "weight" is called as a parameter or buffer of Module, and a file holds one of a name')
        self.assertEqual(self.refused(lambda x: None, {"x": {"a": {"b": X}, "a.b": Y}}).message,
                         'two inputs are called "x.a.b", and a file holds one of a name')


if __name__ == "__main__":
    unittest.main()
