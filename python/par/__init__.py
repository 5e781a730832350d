"""Par from Python: export a PyTorch module so that it trains as in PyTorch, compile it for many ranks, and run it.

    import par
    par.export(module, {"tokens": tokens}, "model.onnx", dynamic={"tokens": ["batch", "seq"]})
    bundle = par.compile("model.onnx", {"mesh": {"dp": 4}, "batch": 32, "dims": {"seq": 64}, "train": {"loss":
    "cross_entropy"}})
    print(bundle.summary)
    run = bundle.run(text="README.md", steps=100)

Nothing here needs PyTorch but `export`, when it is called. The compiled parts are found in the folder that the
environment variable PAR_HOME names, else in the package, the source tree's build/, or beside a par-compile on the PATH.
"""
from .bundle import Bundle
from .compile import check, compile, names
from .contents import show_only as _show_only
from .decode import Decoder
from .decoder import export_decoder
from .errors import Error
from .export import export
from .findings import Finding
from .fitting import BestCheckpoint, Callback, EarlyStopping, Fit
from .logs import CsvFile, TensorBoard
from .plan import complete_plan
from .run import Run, predict, run
from .search import Found, fit
from .session import Job, Scalars, open
from .verify import verify
from .whatif import Change, what_if

__version__ = "0.1.0"
__all__ = ["BestCheckpoint", "Bundle", "Callback", "Change", "CsvFile", "Decoder", "EarlyStopping", "Error", "Finding",
           "Fit", "Found", "Job", "Run", "Scalars", "TensorBoard", "check", "compile", "complete_plan", "export",
           "export_decoder", "fit", "names", "open", "predict", "run", "verify", "what_if"]


_show_only(__all__, globals())


def __dir__():
    return __all__ + ["__version__", "__doc__"]
