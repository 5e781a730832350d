"""Settings of transformers that a training step does not use."""

import contextlib

CACHE = "use_cache"
EXTRAS = ("output_attentions", "output_hidden_states")  # unused results of the module itself


@contextlib.contextmanager
def exportable(module):
    """Within, no part of `module` keeps keys and values for generation, and the module returns nothing beside
    its loss and scores unless forward is told to. A part inside another module may have results that the
    module reads: it keeps them.
    """
    configs = {
        id(config): config
        for config in (getattr(part, "config", None) for part in module.modules())
        if hasattr(config, "__dict__")
    }
    wanted = [(config, CACHE) for config in configs.values()]
    if hasattr(getattr(module, "config", None), "__dict__"):
        wanted += [(module.config, name) for name in EXTRAS]
    changed = []
    try:
        for config, name in wanted:
            said = _said(config, name)
            if said:
                changed.append((config, name, said))
                _set(config, name, False)
        yield
    finally:
        for config, name, said in reversed(changed):
            _set(config, name, said)


def _said(config, name):
    """Whether it is set: as an own attribute, or as the private one of a property of that name."""
    return vars(config).get(name, vars(config).get("_" + name))


def _set(config, name, value):
    """Past the setters, which check and warn."""
    vars(config)[name if name in vars(config) else "_" + name] = value
