"""All recipes of the zoo by name."""
from decoders import DECODERS
from encoders import ENCODERS
from vision import TIMM, TORCHVISION

RECIPES = {recipe.name: recipe for recipe in [*DECODERS, *ENCODERS, *TORCHVISION, *TIMM]}
