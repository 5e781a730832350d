"""Nets of images: torchvision and timm, published sizes."""
from recipe import Recipe


def tv(name, size=224, cut="", model="", **sizes):
    return Recipe(name, "torchvision", model or name, sizes, ("images", size, 1000), cut=cut)


def timm(name, size=224, cut="", **sizes):
    return Recipe(name, "timm", name, sizes, ("images", size, 1000), cut=cut)


TORCHVISION = [
    tv("alexnet"),
    tv("vgg11_bn"),
    tv("resnet18"),
    tv("resnet50"),
    tv("resnext50_32x4d"),
    tv("densenet121"),
    tv("googlenet", aux_logits=False, init_weights=True),
    tv("inception_v3", size=299, aux_logits=False, init_weights=True),
    tv("mobilenet_v2"),
    tv("mobilenet_v3_large"),
    tv("shufflenet_v2_x1_0"),
    tv("squeezenet1_1"),
    tv("efficientnet_b0"),
    tv("regnet_y_400mf"),
    tv("mnasnet1_0"),
    tv("convnext_tiny"),
    tv("swin_t"),
    tv("swin_v2_t", size=256),
    tv("maxvit_t"),
    tv("vit_b_16", model="VisionTransformer", image_size=224, patch_size=16, num_layers=3, num_heads=12, hidden_dim=768,
       mlp_dim=3072, cut="3 of 12 layers"),
]

TIMM = [
    timm("deit_tiny_patch16_224"),
    timm("mixer_s16_224"),
    timm("resmlp_12_224"),
    timm("gmlp_ti16_224"),
    timm("cait_xxs24_224", depth=6, cut="6 of 24 layers"),
    timm("xcit_nano_12_p16_224"),
    timm("pvt_v2_b0"),
    timm("twins_svt_small"),
    timm("mobilevit_xxs", size=256),
    timm("efficientformer_l1"),
    timm("ghostnet_100"),
    timm("hrnet_w18_small"),
    timm("res2net50_26w_4s"),
    timm("dla34"),
    timm("repvgg_a0"),
    timm("poolformer_s12"),
    timm("edgenext_xx_small", size=256),
    timm("coat_lite_tiny"),
    timm("eca_nfnet_l0"),
    timm("eva02_tiny_patch14_224", num_classes=1000),
    timm("convit_tiny"),
    timm("pit_ti_224"),
    timm("focalnet_tiny_srf"),
    timm("mvitv2_tiny"),
]
