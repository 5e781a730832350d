"""Par from Python: export a PyTorch module so that it trains as in PyTorch.

    import par
    par.export(module, {"input_ids": ids, "labels": labels}, "model.onnx", dynamic={"input_ids": ["batch", "seq"]})

PyTorch is imported when `export` is called, not before.
"""
from .errors import Error
from .export import export

__all__ = ["Error", "export"]
