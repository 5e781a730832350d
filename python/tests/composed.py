"""Small models of transformers that are made of several configurations or read more than text or an image:
detectors, text with images, series. The classes of docs/pytorch.md that stopped in torch's own exporter are
among them."""

import torch
import transformers as hf
from tiny import VOCABULARY, config
from torch import nn
from torch.nn import functional as F

BATCH = 4
IMAGE_TOKEN = 90


class Boxes(nn.Module):
    """A detector without its matching, whose targets no graph holds: scores and boxes against reals."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, labels):
        found = self.net(pixel_values=x)
        return (found.logits - labels[:, :1, None]).square().mean() + (
            found.pred_boxes - labels[:, 1:2, None]
        ).square().mean()


class Seeing(nn.Module):
    """Text with the places of an image in it."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, pixel_values):
        scores = self.net(input_ids=input_ids, pixel_values=pixel_values).logits
        return F.cross_entropy(scores[:, 16:-1].flatten(0, 1), input_ids[:, 17:].flatten())


class Forecast(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, past, future, past_time, future_time):
        return self.net(
            past_values=past,
            past_time_features=past_time,
            past_observed_mask=torch.ones_like(past),
            future_values=future,
            future_time_features=future_time,
        ).loss


class Hidden(nn.Module):
    """A model without a head."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, labels):
        return (self.net(pixel_values=x).last_hidden_state.mean(1) - labels[:, :1]).square().mean()


def backbone(*stages):
    return hf.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=list(stages),
    )


DETECTOR = dict(
    d_model=32,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=32,
    decoder_ffn_dim=32,
    num_queries=6,
    num_labels=5,
    use_timm_backbone=False,
    use_pretrained_backbone=False,
    backbone=None,
)
SERIES = dict(
    prediction_length=4,
    context_length=8,
    lags_sequence=[1, 2],
    num_time_features=2,
    d_model=16,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=16,
    decoder_ffn_dim=16,
)


def vision():
    return hf.CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
        projection_dim=32,
    )


def llava():
    return hf.LlavaForConditionalGeneration(
        hf.LlavaConfig(
            vision_config=vision(),
            text_config=config(hf.LlamaConfig),
            image_token_index=IMAGE_TOKEN,
            vision_feature_layer=-1,
        )
    )


def paligemma():
    sight = hf.SiglipVisionConfig(
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
        projection_dim=32,
        vision_use_head=False,
    )
    return hf.PaliGemmaForConditionalGeneration(
        hf.PaliGemmaConfig(
            vision_config=sight,
            text_config=config(hf.GemmaConfig),
            image_token_index=IMAGE_TOKEN,
            projection_dim=32,
        )
    )


def rt_detr():
    sight = hf.RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    return hf.RTDetrForObjectDetection(
        hf.RTDetrConfig(
            backbone_config=sight,
            encoder_hidden_dim=32,
            encoder_in_channels=[16, 24, 32],
            encoder_ffn_dim=32,
            encoder_attention_heads=4,
            d_model=32,
            num_queries=6,
            decoder_in_channels=[32, 32, 32],
            decoder_ffn_dim=32,
            decoder_layers=2,
            decoder_attention_heads=4,
            num_denoising=0,
            num_labels=5,
            use_pretrained_backbone=False,
            dropout=0.0,
        )
    )


def detector(kind, *stages, **more):
    name = kind.replace("ForObjectDetection", "Config")
    return lambda: Boxes(
        getattr(hf, kind)(
            getattr(hf, name)(backbone_config=backbone(*stages), **DETECTOR, dropout=0.0, **more)
        )
    )


def series(kind, **more):
    name = kind.replace("ForPrediction", "Config")
    return lambda: Forecast(getattr(hf, kind)(getattr(hf, name)(**SERIES, dropout=0.0, **more)))


MODELS = {
    "detr": (detector("DetrForObjectDetection", "stage4"), "boxes"),
    "conditional_detr": (detector("ConditionalDetrForObjectDetection", "stage4"), "boxes"),
    "deformable_detr": (detector("DeformableDetrForObjectDetection", "stage2", "stage3", "stage4"), "boxes"),
    "rt_detr": (lambda: Boxes(rt_detr()), "boxes"),
    "llava": (lambda: Seeing(llava()), "seen"),
    "paligemma": (lambda: Seeing(paligemma()), "seen"),
    "dinov3_vit": (lambda: Hidden(hf.DINOv3ViTModel(config(hf.DINOv3ViTConfig, num_register_tokens=2))), "boxes"),
    "time_series_transformer": (series("TimeSeriesTransformerForPrediction"), "series"),
    "informer": (series("InformerForPrediction"), "series"),
    "autoformer": (series("AutoformerForPrediction", moving_average=3, label_length=4), "series"),
}


def feed(kind, count):
    """A batch of so many samples."""
    if kind == "boxes":
        return {"x": torch.randn(count, 3, 64, 64), "labels": torch.randn(count, 2)}
    if kind == "seen":
        ids = torch.randint(4, VOCABULARY - 8, (count, 24))
        ids[:, :16] = IMAGE_TOKEN
        return {"input_ids": ids, "pixel_values": torch.randn(count, 3, 32, 32)}
    past = 8 + 2
    return {
        "past": torch.rand(count, past) + 0.5,
        "future": torch.rand(count, 4) + 0.5,
        "past_time": torch.randn(count, past, 2),
        "future_time": torch.randn(count, 4, 2),
    }
