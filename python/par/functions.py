"""Own torch.autograd.Functions: a file holds their forward, and Par differentiates that."""

import contextlib

from .errors import Error


@contextlib.contextmanager
def watched(torch):
    """Watches while the example runs; then refuses a Function whose backward gives an input a gradient that
    differentiating its forward does not give, because forward runs under no_grad, detaches or rounds. The layers before
    it would not train."""
    seen = {}

    def called(cls, arguments, results):
        seen.setdefault(
            (cls, tuple(_needs_gradient(torch, value) for value in arguments)), (arguments, results)
        )

    with calls(torch, called):
        yield
    for (cls, needs), (arguments, results) in seen.items():
        results = results if isinstance(results, tuple) else (results,)
        if any(_needs_gradient(torch, result) for result in results):  # else it ran under no_grad
            lost = _lost(torch, cls, arguments, [place for place, needed in enumerate(needs) if needed])
            if lost:
                raise _refusal(cls, lost)


@contextlib.contextmanager
def calls(torch, called):
    """Within, called(class, arguments, results) hears of each call of an own Function: by its forward, for
    its apply is one of C++ that somebody may have kept."""
    own = [
        (cls, vars(cls).get("forward"), cls.forward)
        for cls in _subclasses(torch.autograd.Function)
        if not f"{cls.__module__}.".startswith("torch.")
    ]

    def hearing(cls, forward):
        def heard(*arguments, **named):
            results = forward(*arguments, **named)
            called(cls, arguments[0 if _has_setup(cls) else 1 :], results)
            return results

        return staticmethod(heard)

    try:
        for cls, _, forward in own:
            cls.forward = hearing(cls, forward)
        yield
    finally:
        for cls, before, _ in own:
            if before is None:
                del cls.forward
            else:
                cls.forward = before


def _subclasses(cls):
    found = {below: None for below in cls.__subclasses__()}
    for below in list(found):
        found.update(dict.fromkeys(_subclasses(below)))
    return list(found)


def _has_setup(cls):
    from torch.autograd.function import _SingleLevelFunction

    return cls.setup_context is not _SingleLevelFunction.setup_context


def _needs_gradient(torch, value):
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.requires_grad


def _refusal(cls, lost):
    place = ", ".join(str(each) for each in lost)
    return Error(
        f"the backward of {cls.__name__} (torch.autograd.Function) gives its input {place} a gradient, "
        f"and its forward, of which Par computes the gradient, gives none: what comes before would not train",
        notes=[
            "write it so that forward has that gradient: without no_grad, or, where a rounded value y is to "
            "have the gradient of x, as x + (y - x).detach()"
        ],
    )


def _lost(torch, cls, arguments, real):
    """Numbers of those of the `real` inputs to which backward gives a gradient that is not 0, and forward as
    autograd sees it none, or 0."""
    state = torch.random.get_rng_state()
    try:
        with torch.enable_grad(), _gradients_kept(torch, arguments):
            theirs = _gradients(torch, cls.apply, arguments, real)
            torch.random.set_rng_state(state)
            traced = _gradients(torch, lambda *given: _forward(cls, given), arguments, real)
    except Exception:  # a check that cannot be made leaves the warning that its backward is not in the file
        return []
    finally:
        torch.random.set_rng_state(state)
    return [place for place, had, has in zip(real, theirs, traced) if _is_some(had) and not _is_some(has)]


def _is_some(gradient):
    return gradient is not None and bool((gradient != 0).any())


def _gradients(torch, function, arguments, real):
    """Gradients of the results' sum, each weighed by another number."""
    given = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in arguments]
    for place in real:
        given[place].requires_grad_()
    results = function(*(value * 1 if place in real else value for place, value in enumerate(given)))
    results = [
        result
        for result in (results if isinstance(results, tuple) else (results,))
        if isinstance(result, torch.Tensor) and result.requires_grad
    ]
    weights = [
        torch.cos(torch.arange(result.numel(), dtype=result.dtype)).reshape(result.shape)
        for result in results
    ]
    if not results:
        return [None] * len(real)
    return torch.autograd.grad(results, [given[place] for place in real], weights, allow_unused=True)


def _forward(cls, given):
    """The exporter's view: forward, as if it were a plain function."""
    return cls.forward(*given) if _has_setup(cls) else cls.forward(Context(given), *given)


class Context:
    """Stands for the context of a forward; what is kept in it is for a backward that does not come."""

    def __init__(self, given):
        self.needs_input_grad = tuple(getattr(value, "requires_grad", False) for value in given)

    def save_for_backward(self, *_):
        pass

    save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = save_for_backward


@contextlib.contextmanager
def _gradients_kept(torch, arguments):
    """A backward that runs another one (of layers that it computes again) leaves gradients at parameters: not
    at the user's."""
    modules = [
        part
        for value in arguments
        for part in (value if isinstance(value, (list, tuple)) else [value])
        if isinstance(part, torch.nn.Module)
    ]
    parameters = [parameter for module in modules for parameter in module.parameters()]
    before = [parameter.grad for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        yield
    finally:
        for parameter, gradient in zip(parameters, before):
            parameter.grad = gradient
