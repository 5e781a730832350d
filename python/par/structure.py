"""par.export of a module without its weights: tensors that have shapes and no memory stand in their places.

Parameters (on the meta device, or real ones that are not to be written) become fake tensors of the CPU while PyTorch
traces, and external data that lie in no file, under PyTorch's names, by which par-run finds them in files of weights.
Buffers are part of the structure: one whose values were lost on the meta device is made again by the code that made it
(transformers' `_init_weights`, `reset_parameters`), and refused where nothing makes it and no checkpoint holds it.
"""
import contextlib

from .errors import Error

ABSENT = ".absent"  # appended to the model's name: the file of its weights, which is absent
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"


def check_weights(torch, module, wanted):
    """Refuses modules that a file with weights cannot hold, or neither kind of file."""
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.is_meta:
                raise Error(f'the tensor "{_join(name, key)}" lies on the meta device, and it is no parameter or '
                            f'buffer: its values '
                            f"are lost", code=2, notes=["register_buffer makes it one"])
    lost = [name for name, value in _tensors(module) if value.is_meta]
    if lost and wanted:
        raise Error(f'"{lost[0]}" lies on the meta device and has no values to write', code=2,
                    notes=["weights=False exports only the structure; the weights come when it runs, from --weights "
                           "or --init"])


def _tensors(module):
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _join(module, name):
    return f"{module}.{name}" if module else name


@contextlib.contextmanager
def without_memory(torch, module, wanted):
    """Within it, where no weights are wanted, parameters and what a checkpoint brings take no memory. Gives the mode in
    which forward runs on such tensors, or None."""
    if wanted:
        yield None
        return
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    kept = [(part, dict(part._parameters), dict(part._buffers)) for part in module.modules()]
    try:
        _replace_parameters(torch, module, mode)
        for name, part in module.named_modules():
            if any(buffer is not None and buffer.is_meta for buffer in part._buffers.values()):
                _fill_buffers(torch, module, name, part, mode)
        yield mode
    finally:
        for part, parameters, buffers in kept:
            part._parameters.update(parameters)
            part._buffers.update(buffers)


def _replace_parameters(torch, module, mode):
    fakes = {}
    for name, part in module.named_modules():
        for key, parameter in part._parameters.items():
            if parameter is None:
                continue
            if torch.nn.parameter.is_lazy(parameter):
                raise Error(f'"{_join(name, key)}" has no shape yet', code=2,
                            notes=["run forward once before the export"])
            if id(parameter) not in fakes:
                fakes[id(parameter)] = torch.nn.Parameter(_fake(torch, parameter, mode),
                                                          requires_grad=parameter.requires_grad)
            part._parameters[key] = fakes[id(parameter)]


def _fake(torch, tensor, mode):
    with mode:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")


def _fill_buffers(torch, module, name, part, mode):
    """Values of the buffers that lie on the meta device. Made twice, from zeros and from ones: what is the same in both
    does not depend on what was there."""
    before, lost = dict(part._buffers), [key for key, buffer in part._buffers.items()
                                         if buffer is not None and buffer.is_meta]
    made = []
    for fill in (torch.zeros, torch.ones):
        for key, buffer in before.items():
            if buffer is not None:
                part._buffers[key] = fill(buffer.shape, dtype=buffer.dtype) if key in lost else buffer.clone()
        _initialize(torch, module, name, part)
        made.append({key: part._buffers[key] for key in lost})
    part._buffers.update(before)
    for key in lost:
        first, second = made[0][key], made[1][key]
        if first.numel() == 0 or torch.equal(first, second):
            part._buffers[key] = first
        elif key not in part._non_persistent_buffers_set:
            part._buffers[key] = _fake(torch, before[key], mode)
        else:
            raise Error(f'the values of buffer "{_join(name, key)}" are lost: it lies on the meta device, and no '
                        f'checkpoint holds it '
                        f"(persistent=False)", code=2, notes=[
                            "accelerate's init_empty_weights() leaves buffers on the CPU; or set it to a tensor of its "
                            "values before the "
                            "export, or let reset_parameters of its module fill it"])


def _initialize(torch, module, name, part):
    """Runs what fills the buffers of `part`: PyTorch's own way, then that of the models that it is in, the innermost
    last."""
    path = name.split(".") if name else []
    models = [module.get_submodule(".".join(path[:end])) for end in range(len(path) + 1)]
    ways = [lambda _: part.reset_parameters()] if callable(getattr(part, "reset_parameters", None)) else []
    ways += [model._init_weights for model in models if callable(getattr(model, "_init_weights", None))]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for way in ways:
            torch.manual_seed(0)
            # of a module that it does not know; what stays unset is found by comparing
            with contextlib.suppress(Exception):
                way(part)


def examples(torch, values, wanted):
    """Inputs on the meta device as zeros: of an example the shape counts."""
    return [torch.zeros(value.shape, dtype=value.dtype).requires_grad_(value.requires_grad)
            if not wanted and isinstance(value, torch.Tensor) and value.is_meta else value for value in values]


def fakes(values, mode):
    """The examples as tensors of the mode, in which forward computes nothing."""
    return values if mode is None else [mode.from_tensor(value) if hasattr(value, "ndim") else value
                                        for value in values]


def write(torch, model, path, name):
    """Writes the model, whose fake initializers are in a file that is not there. `name`: that of the model at the
    end."""
    import onnx_ir

    from torch._subclasses.fake_tensor import FakeTensor

    offset = 0
    for key, value in model.graph.initializers.items():
        tensor = value.const_value
        raw = getattr(tensor, "raw", None)
        if not isinstance(raw, FakeTensor):
            continue
        if value.metadata_props.get(KIND) not in ("PARAMETER", "BUFFER"):
            raise Error(f'the values of the constant "{key}" are lost',
                        notes=["this is a defect of par.export; the file was not written"])
        length = int(tensor.dtype.itemsize * raw.numel())
        value.const_value = onnx_ir.ExternalTensor(name + ABSENT, offset, length, tensor.dtype, shape=tensor.shape,
                                                   name=key)
        offset += length
    path.write_bytes(onnx_ir.to_proto(model).SerializeToString())
