"""One run of the module on its example, before the export: what it returns, and what the exporter's run
cannot know."""

import contextlib
import dataclasses
import warnings

from . import branches, draws, failures, functions, gradients, hooks, nested, notes, selections, structure
from .errors import Error


@dataclasses.dataclass
class Found:
    """outputs: their names. plain: all that it takes and returns are plain tensors, which the exporter then
    sees as they are. conditions, chosen: what branches and masks were. hooked: lines that hang hooks on
    gradients."""

    outputs: list
    plain: bool
    conditions: notes.Notes
    chosen: notes.Notes
    hooked: list


def run(torch, module, arguments, values, mode):
    """Raises par.Error where forward fails by itself. The state of the random numbers is left as it was.
    `mode`: that of tensors without memory, or None."""
    ways = (
        hooks.differentiable(torch),
        torch.enable_grad(),  # forward itself differentiates, and needs what the first drops
        torch.no_grad(),  # forward changes parameters in place
    )
    values, reasons = structure.fakes(values, mode), []
    for way in ways:
        state = torch.random.get_rng_state()
        try:
            return _run(torch, module, arguments, values, mode, way)
        except Error:
            raise
        except Exception as reason:
            reasons.append(reason)
        finally:
            torch.random.set_rng_state(state)
    raise failures.of_forward(torch, module, reasons[1], mode) from reasons[1]


def _run(torch, module, arguments, values, mode, way):
    positional, named = arguments.call(values)
    with contextlib.ExitStack() as within:
        hooked = within.enter_context(hooks.watching(torch))
        conditions = within.enter_context(branches.noted(torch))
        chosen = within.enter_context(selections.noted(torch))
        within.enter_context(functions.watched(torch))
        drawn = within.enter_context(draws.watched())
        within.enter_context(mode or contextlib.nullcontext())
        within.enter_context(way)
        result = module(*positional, **named)
    if drawn:
        warnings.warn(draws.warning(drawn), stacklevel=4)
    names, tensors = nested.results(torch, result)
    if not names:
        raise Error(f"forward of {type(module).__name__} returns no tensor", code=2)
    if others := nested.left_out(torch, result):
        warnings.warn(
            f"the file does not hold what forward returns beside tensors: {gradients.some(others)}",
            stacklevel=4,
        )
    plain = (
        arguments.plain
        and nested.is_known(torch, result, tensors)
        and not any(nested.held(module, values, tensors))
    )
    return Found(names, plain, conditions, chosen, hooked)
