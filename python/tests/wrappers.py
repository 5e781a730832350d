"""Modules that make a loss, for architectures whose forward makes none, and dropout switched off. Needs torch."""
import torch


class Classifier(torch.nn.Module):
    """A net of images, or of another input, with its loss."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, labels):
        scores = self.net(x)
        return torch.nn.functional.cross_entropy(getattr(scores, "logits", scores), labels)


class Language(torch.nn.Module):
    """A model of transformers whose forward makes the loss from labels."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, labels):
        return self.net(input_ids=input_ids, labels=labels, **self.uncached()).loss

    def uncached(self):
        """Decoders keep keys and values for generation unless they are told not to."""
        return {"use_cache": False} if self.net.config.model_type not in UNCACHED else {}


class AsItComes(torch.nn.Module):
    """A model of transformers that is told nothing but its input, by the name of that, and labels."""

    def __init__(self, net, argument="input_ids"):
        super().__init__()
        self.net, self.argument = net, argument

    def forward(self, x, labels):
        return self.net(**{self.argument: x}, labels=labels).loss


class Sound(torch.nn.Module):
    """An encoder-decoder of transformers from spectra to symbols."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_features, labels):
        return self.net(input_features=input_features, labels=labels, use_cache=False).loss


# Their forward knows no use_cache.
UNCACHED = ("bert", "roberta", "distilbert", "electra", "albert", "deberta", "deberta-v2", "mpnet", "squeezebert",
            "convbert",
            "mobilebert", "roformer", "nystromformer", "fnet", "xlnet")


def without_dropout(config):
    """The configuration of transformers, with each rate of dropout 0."""
    for name, value in list(vars(config).items()):
        if name.endswith(("dropout", "pdrop", "dropout_prob", "dropout_rate", "layerdrop", "drop_path_rate")):
            none = [0.0] * len(value) if isinstance(value, (list, tuple)) else 0 if type(value) is int else 0.0
            setattr(config, name, none)
    return config
