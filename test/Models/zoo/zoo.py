"""All recipes of the zoo by name."""
from decoders import DECODERS
from encoders import ENCODERS
from plans import shorter
from vision import TIMM, TORCHVISION

RECIPES = {recipe.name: recipe for recipe in [*DECODERS, *ENCODERS, *TORCHVISION, *TIMM]}
SHORTER = "@plans"


def find(name):
    """A recipe by its name, or by its name and SHORTER the form of it that runs under the plans."""
    return shorter(RECIPES[name.removesuffix(SHORTER)]) if name.endswith(SHORTER) else RECIPES[name]
