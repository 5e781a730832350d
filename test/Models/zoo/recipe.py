"""An architecture of the zoo as data: its cache key is its text. Building one needs torch."""
import dataclasses
import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
SEED = 7
STEPS = 10
SMALL_HEAD = 8192  # symbols, where the published head would take most of a step


@dataclasses.dataclass(frozen=True)
class Recipe:
    """`model` is a class of transformers (with `config`, its configuration's class) or a function of torchvision or
    timm; `sizes` are the published ones but for what `cut` says. `feed` is the kind of its data and their sizes (see
    data)."""

    name: str
    library: str
    model: str
    sizes: dict
    feed: tuple
    config: str = ""
    batch: int = 4
    cut: str = ""

    def key(self):
        """Changes whenever the export may: the recipe, how modules are built and exported, and the libraries."""
        import importlib.metadata as versions
        text = repr(self)
        for package in ("torch", self.library):
            text += versions.version(package)
        exporter = sorted((ROOT / "python/par").glob("*.py"))
        sources = [*exporter, ROOT / "python/tests/wrappers.py", pathlib.Path(__file__)]
        for source in sources:
            text += source.read_text()
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def decoder(name, model, sizes, *, config="", batch=4, cut="", vocabulary=0, length=256):
    """A language model of transformers; `vocabulary` cuts the head."""
    if vocabulary:
        sizes, cut = {**sizes, "vocab_size": vocabulary}, f"{cut}, head {vocabulary}".lstrip(", ")
    config = config or model.split("For")[0].removesuffix("LMHeadModel") + "Config"
    return Recipe(name, "transformers", model, sizes, ("words", length, sizes["vocab_size"]), config, batch, cut)


def build(recipe):
    """The module with its loss, in training mode, from fixed random weights; no dropout."""
    import torch
    torch.manual_seed(SEED)
    module = (build_transformers if recipe.library == "transformers" else build_vision)(recipe)
    stir(torch, module)
    module.train()
    return module


def build_transformers(recipe):
    import transformers
    wrappers = import_wrappers()
    config = wrappers.without_dropout(getattr(transformers, recipe.config)(**recipe.sizes))
    net = getattr(transformers, recipe.model)(config)
    return {"words": wrappers.Language, "sound": wrappers.Sound}.get(recipe.feed[0], wrappers.Classifier)(net)


def build_vision(recipe):
    import importlib
    library = importlib.import_module({"torchvision": "torchvision.models", "timm": "timm"}[recipe.library])
    if recipe.library == "timm":
        return import_wrappers().Classifier(library.create_model(recipe.model, **recipe.sizes))
    return import_wrappers().Classifier(getattr(library, recipe.model)(**recipe.sizes))


def import_wrappers():
    if str(ROOT / "python/tests") not in sys.path:
        sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests")]
    import wrappers
    return wrappers


def stir(torch, module):
    """No dropout, and no weights that are all equal: zero scales and biases would hide wrong gradients."""
    for part in module.modules():
        drops = any(word in type(part).__name__ for word in ("Drop", "StochasticDepth"))
        for rate, value in list(vars(part).items()):
            if isinstance(value, float) and (drops or "drop" in rate):
                setattr(part, rate, 0.0)
    with torch.no_grad():
        for weights in module.parameters():
            if weights.ndim < 2 or not weights.numel() or weights.min() == weights.max():
                weights.add_(0.02 * torch.randn_like(weights))


def data(recipe, steps=STEPS):
    """Samples of `steps` batches, by input."""
    import torch
    generator = torch.Generator().manual_seed(SEED + 1)
    count, (kind, *sizes) = steps * recipe.batch, recipe.feed

    def whole(high, shape, low=0):
        return torch.randint(low, high, shape, generator=generator)

    if kind == "words":
        length, vocabulary = sizes
        ids = whole(vocabulary, (count, length), low=10)  # what stands before is padding and marks
        return {"input_ids": ids, "labels": ids.clone()}
    if kind == "images":
        size, classes = sizes
        return {"x": torch.randn(count, 3, size, size, generator=generator), "labels": whole(classes, (count,))}
    if kind == "sound":
        bands, frames, length, vocabulary = sizes
        labels = whole(vocabulary, (count, length), low=10)
        return {"input_features": torch.randn(count, bands, frames, generator=generator), "labels": labels}
    samples, classes = sizes
    return {"x": torch.randn(count, samples, generator=generator), "labels": whole(classes, (count,))}


def first_batch(recipe, arrays):
    return {name: values[:recipe.batch] for name, values in arrays.items()}
