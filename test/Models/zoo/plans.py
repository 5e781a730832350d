"""The zoo's plans: one rank as the reference has it, and three meshes of two ranks that must compute the same.

Ten steps of five bundles a model are fifty times the work of its first loss: the plans see shorter texts and small
heads.
"""
import dataclasses
import sys

from recipe import ROOT, SMALL_HEAD

sys.path.append(str(ROOT / "test/Models"))
from distributed import flow, parameters, shards  # noqa: E402

MICROBATCHES = 4
LENGTH = 32
# A clip that never clips: it makes par-run write the norm of the gradient.
CLIP = 1e9


def shorter(recipe):
    """The recipe with texts of LENGTH symbols and a batch of MICROBATCHES samples, so that each can be one; all widths
    and depths are the same. Images and sound keep their sizes."""
    sizes, feed = dict(recipe.sizes), recipe.feed
    if feed[0] == "words":
        feed = ("words", min(feed[1], LENGTH), min(feed[2], SMALL_HEAD))
        sizes["vocab_size"] = feed[2]
        if sizes.get("pad_token_id", 0) >= feed[2]:
            sizes["pad_token_id"] = 0
    cut = "" if (feed, recipe.batch) == (recipe.feed, MICROBATCHES) else f"{feed[1]} tokens, head {feed[2]}"
    return dataclasses.replace(recipe, sizes=sizes, feed=feed, batch=MICROBATCHES, cut=cut) if cut else recipe


def train(batch_norm):
    """PyTorch's part uses the same rates."""
    return f"train: {{optimizer: {{kind: sgd, lr: {1e-3 if batch_norm else 1e-2}}}, clip: {CLIP}}}\n"


def one(batch_norm, groups=1):
    return "batch: {microbatches: 1}\n" + (f"batch_norm: {groups}\n" if batch_norm and groups > 1
                                           else "") + train(batch_norm)


def of(name, binaries, model, batch_norm):
    """The plan's text and that of one rank which computes the same."""
    if name == "dp2":
        return "mesh: {dp: 2}\nbatch: {microbatches: 1}\n" + train(batch_norm), one(batch_norm)
    if name == "pp2":
        text = f"mesh: {{pp: 2}}\nbatch: {{microbatches: {MICROBATCHES}}}\npipeline: {{cuts: auto}}\n"
        return text + train(batch_norm), one(batch_norm, MICROBATCHES)
    rules = shards(parameters(binaries, model), 2)
    lines = "".join(f'  "{pattern}": {flow(rule)}\n' for pattern, rule in rules.items())
    return "mesh: {tp: 2}\nbatch: {microbatches: 1}\nshard:\n" + lines + train(batch_norm), one(batch_norm)


PLANS = ("dp2", "pp2", "tp2")
