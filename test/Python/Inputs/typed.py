"""A user's program, for a type checker only: what README and the pages call, with the types of its results."""
from __future__ import annotations

import array
from typing import Any, Dict, List

import par

module: Any = None  # of PyTorch
rows = array.array("f", [0.0] * 16)
file: str = par.export(module, {"x": rows}, "model.onnx", dynamic={"x": ["batch"]})
bundle: par.Bundle = par.compile(file, {"batch": 8, "train": {}}, set={"batch.microbatches": 2})
summary: str = par.check(file) + par.names(file, "params") + par.complete_plan(file) + bundle.summary
peak: int = bundle.memory.roles[0].peak
proof: Dict[str, object] = bundle.verify()
losses: List[float] = par.run(bundle, steps=3, data="data.safetensors").losses
written: str = par.predict(bundle, data={"x": rows}, output="out.safetensors")
with par.open(bundle, init=True) as job:
    step: int = job.step
    loss: float = job.train(x=rows).loss
    fitted: par.Fit = job.fit([{"x": rows}], epochs=2, callbacks=[par.EarlyStopping(2)])
with par.Decoder(par.compile(par.export_decoder(module, "decoder.onnx"))) as decoder:
    tokens: List[List[int]] = decoder.generate([[1, 2]], max_new_tokens=4, temperature=0.5)
    for row, token in decoder.stream([[1]], top_p=0.9):
        print(row + token)
try:
    par.compile("none.onnx")
except par.Error as error:
    print(error.message, error.code, error.notes)
