#!/usr/bin/env python3
"""The modules and losses of torch.nn that people build their own models from, as train_architectures.py has whole
architectures: each is exported with par.export and trained ten steps in Par and in PyTorch.

    python3 python/tests/train_modules.py --bin build/bin [--only lstm,unfold]
"""
import torch
import train_architectures
from torch import nn
from torch.nn import functional as F
from train_architectures import STEPS

BATCH = 4


class Made(nn.Module):
    """Parts (a dict of modules and parameters) and a function of them, x and labels that returns the loss."""

    def __init__(self, forward, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.compute = forward

    def forward(self, x, labels):
        return self.compute(self, x, labels)


def vectors(*shape, classes=5):
    """x of a shape, labels: classes, or of the shape of `classes` reals."""
    count = STEPS * BATCH
    labels = torch.randint(0, classes, (count,)) if isinstance(classes, int) else torch.randn(count, *classes)
    return lambda: {"x": torch.randn(count, *shape), "labels": labels}


def symbols(length=9, vocabulary=20):
    count = STEPS * BATCH
    ids = torch.randint(1, vocabulary, (count, length))
    return lambda: {"x": ids, "labels": ids.flip(1).clone()}


def tokens(z, labels):
    return F.cross_entropy(z.flatten(0, 1), labels.flatten())


def reals(loss, scale=0.3):
    """A linear map whose result a loss of two tensors compares."""
    return lambda: Made(lambda m, x, y: loss(m.map(x) * scale, y), map=nn.Linear(6, 3))


def shifted(loss, early=False):
    """Labels that the model shifts itself: the last position predicts nothing. `early`: it is cut off before the
    head."""
    def forward(m, x, y):
        h = torch.tanh(m.table(x))
        z = m.head(h[:, :-1]) if early else m.head(h)[:, :-1]
        return loss(5 * torch.tanh(z / 5).flatten(0, 1), y[:, 1:].flatten())
    return lambda: Made(forward, table=nn.Embedding(20, 12), head=nn.Linear(12, 20))


def pooled(*layers, size=8):
    """Layers over images with a linear classifier after the mean."""
    return lambda: Made(lambda m, x, y: F.cross_entropy(m.head(m.body(x).flatten(2).mean(2)), y),
                        body=nn.Sequential(*(layer() if isinstance(layer, type(lambda: 0)) else layer
                                             for layer in layers)),
                        head=nn.Linear(size, 5))


def residual(reduce):
    """Largest elements of a sum, which the backward part computes again to ask which they were."""
    def forward(m, x, y):
        x = m.norm(x)
        return F.cross_entropy(m.head(reduce(x + F.silu(m.conv(x)))), y)
    return Made(forward, norm=nn.BatchNorm2d(3), conv=nn.Conv2d(3, 3, 3, padding=1), head=nn.Linear(3, 5))


def sequence(make, width):
    return lambda: Made(lambda m, x, y: tokens(m.head(m.net(m.table(x))[0]), y), table=nn.Embedding(20, 12), net=make(),
                        head=nn.Linear(width, 20))


def encoder(**options):
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, **options)
    return lambda: Made(lambda m, x, y: tokens(m.head(m.net(m.table(x))), y), table=nn.Embedding(20, 16),
                        net=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), head=nn.Linear(16, 20))


def causal():
    mask = nn.Transformer.generate_square_subsequent_mask(9)
    return Made(lambda m, x,
                y: tokens(m.head(m.net(m.table(x), m.table(y), tgt_mask=mask.to(m.table.weight.dtype),
                                       tgt_is_causal=True)), y),
                table=nn.Embedding(20, 16), head=nn.Linear(16, 20),
                net=nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True))


def graph_layer():
    """Message passing over a fixed graph of nine nodes."""
    torch.manual_seed(3)
    source, target = torch.randint(0, 9, (20,)), torch.randint(0, 9, (20,))

    def forward(m, x, y):
        h = m.first(x)
        messages = torch.zeros_like(h).index_add(1, target, h[:, source])
        return F.cross_entropy(m.second(F.relu(messages)).mean(1), y)
    return Made(forward, first=nn.Linear(6, 8), second=nn.Linear(8, 5))


def variational():
    def forward(m, x, y):
        mean, log_variance = m.down(x).chunk(2, 1)
        z = mean + y * torch.exp(0.5 * log_variance)
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        return F.mse_loss(m.up(z), x) + 0.1 * divergence
    return Made(forward, down=nn.Linear(6, 4), up=nn.Sequential(nn.Linear(2, 8), nn.ELU(), nn.Linear(8, 6)))


def top_experts():
    """Two of four experts, chosen by topk, weighted by a softmax over the chosen."""
    def forward(m, x, y):
        weights, chosen = m.router(x).topk(2, -1)
        weights = weights.softmax(-1)
        outputs = torch.einsum("bd,edh->beh", x, m.experts)
        picked = outputs.gather(1, chosen.unsqueeze(-1).expand(-1, -1, outputs.shape[-1]))
        return F.cross_entropy((picked * weights.unsqueeze(-1)).sum(1), y)
    return Made(forward, router=nn.Linear(6, 4), experts=nn.Parameter(torch.randn(4, 6, 5) * 0.3))


def contrastive():
    def forward(m, x, y):
        a, b = F.normalize(m.left(x), dim=-1), F.normalize(m.right(y), dim=-1)
        scores = a @ b.T * m.scale.exp()
        target = torch.arange(scores.shape[0])
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
    return Made(forward, left=nn.Linear(6, 8), right=nn.Linear(3, 8), scale=nn.Parameter(torch.tensor(0.7)))


def rotary():
    def forward(m, x, y):
        h = m.table(x).unflatten(-1, (2, 8))
        angle = torch.arange(9)[:, None] / 10000 ** (torch.arange(4) / 4)
        cos, sin = (f(angle).repeat(1, 2)[:, None].to(h.dtype) for f in (torch.cos, torch.sin))
        turned = torch.cat([-h[..., 4:], h[..., :4]], -1)
        q = (h * cos + turned * sin).transpose(1, 2)
        z = F.scaled_dot_product_attention(q, q, h.transpose(1, 2), is_causal=True)
        return tokens(m.head(z.transpose(1, 2).flatten(2)), y)
    return Made(forward, table=nn.Embedding(20, 16), head=nn.Linear(16, 20))


def weight_normed():
    return Made(lambda m, x, y: F.cross_entropy(m.net(x), y),
                net=nn.utils.parametrizations.weight_norm(nn.Linear(6, 5)))


class Frozen(Made):
    """Its part `norm` stays in eval mode: moving statistics, which do not move."""

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self


def frozen():
    """A table and a layer that need no gradient, under and above some that do; one bias of a frozen layer trains."""
    m = Made(lambda m, x, y: tokens(m.head(m.top(torch.tanh(m.low(m.table(x))))), y), table=nn.Embedding(20, 12),
             low=nn.Linear(12, 12), top=nn.Linear(12, 12), head=nn.Linear(12, 20))
    for part in (m.table, m.top, m.head):
        part.requires_grad_(False)
    m.top.bias.requires_grad_(True)
    return m


def frozen_norm():
    m = Frozen(lambda m, x, y: F.cross_entropy(m.head(m.norm(m.conv(x)).relu().mean((2, 3))), y),
               conv=nn.Conv2d(3, 8, 3),
               norm=nn.BatchNorm2d(8), head=nn.Linear(8, 5))
    m.norm.running_mean.normal_(), m.norm.running_var.uniform_(0.5, 2)
    return m.train()


def embeddings(tied=True, optimizer="adamw", **options):
    """A table looked up twice, of which one lookup only masks or scales its gradient, and read as a head where tied."""
    m = Made(lambda m, x,
             y: tokens(m.head(torch.tanh(m.table(x) + 0.5 * F.embedding(y, m.table.weight) + m.place(x % 3))), y),
             table=nn.Embedding(20, 12, **options), place=nn.Embedding(3, 12, padding_idx=0), head=nn.Linear(12, 20))
    if tied:
        m.head.weight = m.table.weight
    m.optimizer = optimizer
    return m


def bags(weigh=lambda x: None, **options):
    return Made(lambda m, x,
                y: F.cross_entropy(m.head(m.bag(x, per_sample_weights=weigh(x.to(m.head.weight.dtype)))), y[:, 0]),
                bag=nn.EmbeddingBag(20, 8, **options), head=nn.Linear(8, 20))


def attending():
    """Attention that returns its weights has (tokens batch) rows inside."""
    def forward(m, x, y):
        h = m.table(x)
        out, weights = m.attend(h, h, h, key_padding_mask=x == 3)
        return tokens(m.head(h + out), y) + 0.1 * weights.square().mean()
    return Made(forward, table=nn.Embedding(20, 16), attend=nn.MultiheadAttention(16, 4, batch_first=True),
                head=nn.Linear(16, 20))


def padded_left():
    """Symbols below 3 in front are padding: those queries see no key, and what they get, 0, is learnt from."""
    def forward(m, x, y):
        h = m.table(x).unflatten(-1, (2, 8)).transpose(1, 2)
        seen = torch.ones(9, 9, dtype=torch.bool).tril() & ((x > 2).cumsum(1) > 0)[:, None, None, :]
        z = F.scaled_dot_product_attention(m.ask(h), m.key(h), h, attn_mask=seen)
        return tokens(m.head(z.transpose(1, 2).flatten(2)), y)
    return Made(forward, table=nn.Embedding(20, 16), ask=nn.Linear(8, 8), key=nn.Linear(8, 8), head=nn.Linear(16, 20))


def padded_whole():
    """A sample that begins with 1 is only padding, which key_padding_mask makes -inf in every score."""
    def forward(m, x, y):
        h = m.table(x)
        out, _ = m.attend(h, h, h, key_padding_mask=(x == 1) | (x[:, :1] == 1), need_weights=False)
        return tokens(m.head(h + out), y)
    return Made(forward, table=nn.Embedding(20, 16), attend=nn.MultiheadAttention(16, 4, batch_first=True),
                head=nn.Linear(16, 20))


def without_gradient():
    """A value made under no_grad, or detached, has no gradient."""
    def forward(m, x, y):
        h = m.map(x)
        with torch.no_grad():
            scale, shift = h.abs().mean(1, keepdim=True).exp(), m.other(x)
        return F.cross_entropy(m.head(h * scale + shift + m.other(x).detach()),
                               y) + (m.head.weight.detach() * scale.mean()).sum()
    return Made(forward, map=nn.Linear(6, 8), other=nn.Linear(6, 8), head=nn.Linear(8, 5))


def bending():
    """Functions at points without a derivative: `at` is 0 and has a gradient."""
    def forward(m, x, y):
        h = m.map(x)
        at = h - h.detach()
        bends = (F.relu6(at), F.relu6(at + 6), F.hardtanh(at - 1), F.hardtanh(3 * h, -1, 2),
                 at.max(1, keepdim=True).values,
                 at.min(1, keepdim=True).values, h.max(1, keepdim=True).values, at.norm(p=3, dim=1, keepdim=True),
                 h.norm(p=1.5, dim=1, keepdim=True), torch.sinc(at), torch.sinc(h), torch.angle(h) * h,
                 torch.logaddexp2(40 * h, at), torch.logcumsumexp(40 * h, 1))
        return F.cross_entropy(m.head(torch.cat(bends, 1)), y)
    return Made(forward, map=nn.Linear(6, 8), head=nn.Linear(77, 5))


def plain_norm():
    """Batch norm without weights; in eval mode as well."""
    m = Frozen(lambda m, x, y: F.cross_entropy(m.head(m.other(m.norm(m.map(x)).relu())), y), map=nn.Linear(6, 8),
               other=nn.BatchNorm1d(8, affine=False), norm=nn.BatchNorm1d(8, affine=False), head=nn.Linear(8, 5))
    return m.train()


IMAGE = vectors(3, 8, 8)
MODULES = {
    "frozen": (frozen, symbols()),
    "frozen_norm": (frozen_norm, IMAGE),
    "plain_norm": (plain_norm, vectors(6)),
    "padding": (lambda: embeddings(padding_idx=4), symbols()),
    "padding_untied": (lambda: embeddings(False, "sgd", padding_idx=-3), symbols()),
    "frequency": (lambda: embeddings(False, scale_grad_by_freq=True), symbols(vocabulary=8)),
    "frequency_padding": (lambda: embeddings(optimizer="sgd", scale_grad_by_freq=True, padding_idx=2),
                          symbols(vocabulary=8)),
    "no_grad": (without_gradient, vectors(6)),
    "bends": (bending, vectors(6)),
    "lstm": (sequence(lambda: nn.LSTM(12, 10, batch_first=True), 10), symbols()),
    "lstm_deep": (sequence(lambda: nn.LSTM(12, 10, 2, batch_first=True, bidirectional=True), 20), symbols()),
    "gru": (sequence(lambda: nn.GRU(12, 10, batch_first=True), 10), symbols()),
    "rnn": (sequence(lambda: nn.RNN(12, 10, batch_first=True), 10), symbols()),
    "encoder": (encoder(), symbols()),
    "encoder_norm_first": (encoder(norm_first=True, activation="gelu"), symbols()),
    "transformer": (causal, symbols()),
    "rotary": (rotary, symbols()),
    "graph": (graph_layer, vectors(9, 6)),
    "variational": (variational, vectors(6, classes=(2,))),
    "top_experts": (top_experts, vectors(6)),
    "contrastive": (contrastive, vectors(6, classes=(3,))),
    "weight_norm": (weight_normed, vectors(6)),
    "bilinear": (lambda: Made(lambda m, x, y: F.mse_loss(m.map(x, y), y), map=nn.Bilinear(6, 3, 3)),
                 vectors(6, classes=(3,))),
    "embedding_bag": (lambda: bags(mode="mean"), symbols()),
    "embedding_bag_padding": (lambda: bags(mode="mean", padding_idx=3), symbols(vocabulary=8)),
    "embedding_bag_sum": (lambda: bags(mode="sum", padding_idx=-15), symbols(vocabulary=8)),
    "embedding_bag_max": (lambda: bags(mode="max", padding_idx=2), symbols(vocabulary=8)),
    "embedding_bag_weights": (lambda: bags(weigh=lambda x: x.cos(), mode="sum"), symbols()),
    "attention_weights": (attending, symbols()),
    "attention_padded": (padded_whole, symbols(vocabulary=5)),
    "attention_padded_left": (padded_left, symbols(vocabulary=5)),
    "conv1d": (pooled(nn.Conv1d(3, 8, 3, padding="same", dilation=2), nn.GELU(), nn.Conv1d(8, 8, 3, groups=4)),
               vectors(3, 16)),
    "conv3d": (pooled(nn.Conv3d(2, 8, 3, stride=2, padding=1), nn.ReLU()), vectors(2, 5, 6, 6)),
    "depthwise": (pooled(nn.Conv2d(3, 6, 3, groups=3, padding=1, padding_mode="reflect"), nn.SiLU(),
                         nn.Conv2d(6, 8, 1)), IMAGE),
    "transposed": (pooled(nn.ConvTranspose2d(3, 8, 3, stride=2, padding=1, output_padding=1), nn.LeakyReLU()), IMAGE),
    "group_norm": (pooled(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.PReLU()), IMAGE),
    "instance_norm": (pooled(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.Softplus()), IMAGE),
    "local_response": (pooled(nn.Conv2d(3, 8, 3), nn.LocalResponseNorm(3), nn.Hardswish()), IMAGE),
    "pools": (pooled(nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(2, ceil_mode=True),
                     nn.AvgPool2d(2, 1, padding=1, count_include_pad=False)), IMAGE),
    "pooled_residual": (lambda: residual(lambda y: F.max_pool2d(y, 2).mean((2, 3))), IMAGE),
    "largest_residual": (lambda: residual(lambda y: y.amax((2, 3))), IMAGE),
    "divided_pool": (pooled(nn.Conv2d(3, 8, 3, padding=1), nn.AvgPool2d(3, 2, 1, ceil_mode=True, divisor_override=5),
                            nn.Tanh()), IMAGE),
    "divided_volume": (pooled(nn.Conv3d(2, 8, 3), nn.AvgPool3d(2, 1, divisor_override=3), nn.Tanh()),
                       vectors(2, 5, 6, 6)),
    "cut_circle": (lambda: residual(lambda y: F.pad(y, (-1, 2, 1, -2),
                                                    mode="circular")[..., :4, :4].tanh().mean((2, 3))), IMAGE),
    "power_pool": (pooled(nn.Conv2d(3, 8, 3, padding=1), nn.Sigmoid(), nn.LPPool2d(2, 2)), IMAGE),
    "adaptive_pool": (pooled(nn.Conv2d(3, 8, 3, padding=1), nn.Tanh(), nn.AdaptiveAvgPool2d((4, 2))), IMAGE),
    "adaptive_max": (pooled(nn.Conv2d(3, 8, 3, padding=1), nn.AdaptiveMaxPool2d((4, 2))), IMAGE),
    "pixel_shuffle": (pooled(nn.Conv2d(3, 8, 3), nn.PixelShuffle(2), nn.Conv2d(2, 8, 1), nn.Mish()), IMAGE),
    "upsample": (pooled(nn.Conv2d(3, 8, 3), nn.Upsample(scale_factor=2, mode="bilinear"), nn.CELU()), IMAGE),
    "bicubic": (pooled(nn.Conv2d(3, 8, 3), nn.Upsample(scale_factor=2, mode="bicubic", align_corners=True), nn.SELU()),
                IMAGE),
    "aligned": (pooled(nn.Conv2d(3, 8, 3), nn.Upsample(scale_factor=1.7, mode="bilinear", align_corners=True),
                       nn.CELU()), IMAGE),
    "unfold": (lambda: Made(lambda m, x,
                            y: F.cross_entropy(m.head(F.unfold(x, 3, stride=2).transpose(1, 2)).mean(1), y),
                            head=nn.Linear(27, 5)), IMAGE),
    "grid_sample": (lambda: Made(lambda m, x, y: F.cross_entropy(m.head(F.grid_sample(
        x, F.affine_grid(m.theta.expand(x.shape[0], -1, -1), [x.shape[0], 3, 4, 4], align_corners=False),
        align_corners=False).flatten(1)), y),
        theta=nn.Parameter(torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.8, 0.1]]])), head=nn.Linear(48, 5)), IMAGE),
    "grid_cubic_border": (lambda: Made(lambda m, x, y: F.cross_entropy(m.head(F.grid_sample(
        x, F.affine_grid(m.theta.expand(x.shape[0], -1, -1), [x.shape[0], 3, 4, 4], align_corners=False),
        mode="bicubic",
        padding_mode="border", align_corners=False).flatten(1)), y),
        theta=nn.Parameter(torch.tensor([[[1.2, 0.1, 0.2], [-0.1, 1.4, 0.1]]])), head=nn.Linear(48, 5)), IMAGE),
    "glu": (lambda: Made(lambda m, x, y: F.cross_entropy(m.head(F.glu(m.map(x))), y), map=nn.Linear(6, 16),
                         head=nn.Linear(8, 5)), vectors(6)),
    "rms_norm": (lambda: Made(lambda m, x, y: F.cross_entropy(m.head(m.norm(m.map(x))), y), map=nn.Linear(6, 16),
                              norm=nn.RMSNorm(16),
                              head=nn.Linear(16, 5)), vectors(6)),
    "cumsum": (lambda: Made(lambda m, x, y: F.cross_entropy(m.map(x).cumsum(1).flip(1).roll(1, 1).mean(1), y),
                            map=nn.Linear(6, 5)), vectors(7, 6)),
    "sort": (lambda: Made(lambda m, x, y: F.cross_entropy(m.map(x).sort(1, descending=True).values[:, :3].mean(1), y),
                          map=nn.Linear(6, 5)), vectors(7, 6)),
    "where": (lambda: Made(lambda m, x,
                           y: F.cross_entropy(torch.where(x[:, :5] > 0, m.map(x),
                                                          m.other(x).masked_fill(x[:, :5] < -1, -2.0)), y),
                           map=nn.Linear(6, 5), other=nn.Linear(6, 5)), vectors(6)),
    "einsum": (lambda: Made(lambda m, x,
                            y: F.cross_entropy(torch.einsum("bij,jk,il->bkl", x, m.w, m.v).logsumexp(2), y),
                            w=nn.Parameter(torch.randn(6, 5)), v=nn.Parameter(torch.randn(7, 2))), vectors(7, 6)),
    "variance": (lambda: Made(lambda m, x, y: F.cross_entropy(m.map(x).std(1) + m.map(x).var(1, unbiased=False), y),
                              map=nn.Linear(6, 5)), vectors(7, 6)),
    "extremes": (lambda: Made(lambda m, x,
                              y: F.cross_entropy(m.map(x).amax(1) - m.map(x).min(1).values + m.map(x).norm(dim=1), y),
                              map=nn.Linear(6, 5)), vectors(7, 6)),
    "smoothed_labels": (lambda: Made(lambda m, x, y: F.cross_entropy(m.map(x), y, label_smoothing=0.1),
                                     map=nn.Linear(6, 5)), vectors(6)),
    "smoothed_weights": (lambda: Made(lambda m, x,
                                      y: F.cross_entropy(m.map(x), y - 1, weight=m.weights.to(x.dtype), ignore_index=-1,
                                                                      label_smoothing=0.2), map=nn.Linear(6, 5),
                                      weights=torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0])), vectors(6)),
    "probabilities": (reals(lambda a, b: F.cross_entropy(a, b.softmax(1), label_smoothing=0.1)),
                      vectors(6, classes=(3,))),
    "probabilities_weighted": (reals(lambda a,
                                     b: F.cross_entropy(a, b.softmax(1), weight=a.new_tensor([1.0, 2.0, 0.5]))),
                               vectors(6, classes=(3,))),
    "weighted_classes": (lambda: Made(lambda m, x, y: F.cross_entropy(m.map(x), y, weight=m.weights.to(x.dtype)),
                                      map=nn.Linear(6, 5), weights=torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0])),
                         vectors(6)),
    "shifted": (shifted(F.cross_entropy), symbols()),
    "shifted_early": (shifted(F.cross_entropy, early=True), symbols()),
    "shifted_sum": (shifted(lambda z, y: F.cross_entropy(z, y, reduction="sum") / 32), symbols()),
    "shifted_smoothed": (shifted(lambda z, y: F.cross_entropy(z, y, ignore_index=3, label_smoothing=0.1)), symbols()),
    "shifted_nll": (shifted(lambda z, y: F.nll_loss(z.log_softmax(1), y)), symbols()),
    "nll_loss": (lambda: Made(lambda m, x, y: F.nll_loss(F.log_softmax(m.map(x), 1), y), map=nn.Linear(6, 5)),
                 vectors(6)),
    "multi_margin": (lambda: Made(lambda m, x, y: F.multi_margin_loss(m.map(x), y), map=nn.Linear(6, 5)), vectors(6)),
    "l1_loss": (reals(F.l1_loss), vectors(6, classes=(3,))),
    "smooth_l1": (reals(F.smooth_l1_loss), vectors(6, classes=(3,))),
    "huber_loss": (reals(lambda a, b: F.huber_loss(a, b, delta=0.7)), vectors(6, classes=(3,))),
    "logits_loss": (reals(lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid())), vectors(6, classes=(3,))),
    "binary_loss": (reals(lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid())), vectors(6, classes=(3,))),
    "kl_div": (reals(lambda a, b: F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean")),
               vectors(6, classes=(3,))),
    "poisson_nll": (reals(lambda a, b: F.poisson_nll_loss(a, b.exp())), vectors(6, classes=(3,))),
    "cosine_loss": (reals(lambda a, b: 1 - F.cosine_similarity(a, b).mean()), vectors(6, classes=(3,))),
    "triplet_loss": (reals(lambda a, b: F.triplet_margin_loss(a, b, b.flip(1))), vectors(6, classes=(3,))),
    "focal_loss": (lambda: Made(lambda m, x, y: ((1 - m.map(x).softmax(1).gather(1, y[:, None])) ** 2 * F.cross_entropy(
        m.map(x), y, reduction="none")[:, None]).mean(), map=nn.Linear(6, 5)), vectors(6)),
    "penalty": (lambda: Made(lambda m, x,
                             y: F.cross_entropy(m.map(x), y) + 0.01 * sum(p.abs().sum() for p in m.parameters()),
                             map=nn.Linear(6, 5)), vectors(6)),
}

if __name__ == "__main__":
    train_architectures.ARCHITECTURES = MODULES
    train_architectures.main()
