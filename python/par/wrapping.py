"""Attributes of classes and modules that are others for a while."""

import contextlib


@contextlib.contextmanager
def wrapped(places, wrap):
    """Within, each (owner, name) of `places` is wrap(name, original). Afterwards what the owner had of its own
    is there again, and what it inherits is inherited."""
    before = [(owner, name, name in vars(owner), getattr(owner, name)) for owner, name in places]
    try:
        for owner, name, _, original in before:
            setattr(owner, name, wrap(name, original))
        yield
    finally:
        for owner, name, own, original in before:
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)
