#!/usr/bin/env python3
"""Modules that par.export exports and plain torch.onnx.export does not (docs/pytorch.md): each is exported and trained
ten steps in Par and in PyTorch, as train_architectures.py does with whole architectures.

    python3 python/tests/train_exports.py --bin build/bin [--only branch,masked_scatter]
"""

import train_architectures
import torch
import transformers as hf
from torch import nn
from torch.nn import functional as F
from train_architectures import BERT, LLAMA, small, words
from train_modules import Made, reals, symbols, vectors
from wrappers import AsItComes, Language


def sentences():
    said = words()
    return {"x": said["input_ids"], "labels": said["labels"]}


def mapped(compute, width=5, **parts):
    """Cross entropy of a function of a linear map's results."""
    return lambda: Made(
        lambda m, x, y: F.cross_entropy(compute(m, m.map(x)), y), map=nn.Linear(6, width), **parts
    )


def branch(m, h):
    if not torch.isfinite(h).all():
        h = h.clamp(-1e4, 1e4)
    return h * 2 if (h > -9).any().item() else h


def pairs(m, h):
    """Products of all pairs, chosen by a constant mask, as interaction layers choose them."""
    each = h.unsqueeze(1) * h.unsqueeze(2)
    mask = torch.zeros(5, 5, dtype=torch.bool)
    mask[torch.arange(5).unsqueeze(1) > torch.arange(5)] = True
    return m.head(each[:, mask])


def joined(m, x, y):
    """Rows of another input in the places of a symbol, as models of text and images have them."""
    h, rows = m.table(x), m.rows(y[:, :4])
    mask = (torch.arange(9) % 2 == 1).expand(x.shape)
    by_where = h.masked_scatter(mask.unsqueeze(-1), rows)
    h = h.clone()
    h[mask] = rows.flatten(0, 1)
    return F.cross_entropy(m.head(h + by_where).flatten(0, 1), y.flatten())


def rotated(m, h):
    angles = torch.outer(torch.arange(4.0), torch.tensor([1.0, 0.1]))
    turn = torch.polar(torch.ones_like(angles), angles)[None, :, None]
    both = torch.view_as_complex(h.float().reshape(-1, 4, 1, 2, 2))
    turn = turn.expand(h.shape[0], -1, 1, 2).transpose(1, 2).transpose(1, 2)[:, 0:4]
    return torch.view_as_real(both * turn).flatten(1)[:, :5].to(h.dtype)


def checked(a, b):
    torch._check_tensor_all(a < 99)
    return F.mse_loss(a, b)


def likelihood(distribution):
    return reals(lambda a, b: -distribution(a).log_prob(b).mean())


def positive(function):
    """The function of positive numbers, weighed, and of all."""
    return reals(lambda a, b: (function(a.exp()) * b).mean() + function(a - 0.37).tanh().mean(), scale=1.3)


class Steep(torch.autograd.Function):
    """Its forward is differentiable, and its backward the same."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context, gradient):
        return 2 * context.saved_tensors[0] * gradient


MODULES = {
    "branch": (mapped(branch), vectors(6)),
    "assertion": (reals(checked), vectors(6, classes=(3,))),
    "normal": (likelihood(lambda a: torch.distributions.Normal(a, 1 + a.exp())), vectors(6, classes=(3,))),
    "laplace": (likelihood(lambda a: torch.distributions.Laplace(a, 1.5)), vectors(6, classes=(3,))),
    "student": (
        likelihood(lambda a: torch.distributions.StudentT(2 + a.exp(), a, 1 + a * a)),
        vectors(6, classes=(3,)),
    ),
    "negative_binomial": (
        reals(
            lambda a, b: -torch.distributions.NegativeBinomial(1 + a.exp(), logits=a)
            .log_prob(b.abs().round())
            .mean()
        ),
        vectors(6, classes=(3,)),
    ),
    "categorical": (
        lambda: Made(
            lambda m, x, y: -torch.distributions.Categorical(logits=m.map(x)).log_prob(y).mean(),
            map=nn.Linear(6, 5),
        ),
        vectors(6),
    ),
    "constant_mask": (mapped(pairs, head=nn.Linear(10, 5)), vectors(6)),
    "masked_scatter": (
        lambda: Made(joined, table=nn.Embedding(20, 12), rows=nn.Embedding(20, 12), head=nn.Linear(12, 20)),
        symbols(),
    ),
    "rotary": (mapped(rotated, width=16), vectors(6)),
    "lgamma": (positive(torch.lgamma), vectors(6, classes=(3,))),
    "digamma": (positive(torch.digamma), vectors(6, classes=(3,))),
    "erfinv": (
        reals(lambda a, b: (torch.erfinv(torch.tanh(3 * a)) * b).mean(), scale=1),
        vectors(6, classes=(3,)),
    ),
    "quantile": (
        reals(lambda a, b: F.mse_loss(torch.distributions.Normal(0.0, 1.0).icdf(a.sigmoid()), b)),
        vectors(6, classes=(3,)),
    ),
    "bool_sum": (mapped(lambda m, h: h * torch.add(0.3333, h > 0, alpha=0.6667)), vectors(6)),
    "own_function": (mapped(lambda m, h: Steep.apply(h)), vectors(6)),
    "llama_as_it_comes": (lambda: AsItComes(hf.LlamaForCausalLM(small("LlamaConfig", **LLAMA))), sentences),
    "gpt2_as_it_comes": (
        lambda: AsItComes(
            hf.GPT2LMHeadModel(small("GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=32))
        ),
        sentences,
    ),
    "nystromformer": (
        lambda: Language(
            hf.NystromformerForMaskedLM(
                small("NystromformerConfig", **BERT, segment_means_seq_len=16, num_landmarks=4)
            )
        ),
        words,
    ),
    "deepseek_v2": (
        lambda: Language(
            hf.DeepseekV2ForCausalLM(
                small(
                    "DeepseekV2Config",
                    **{**LLAMA, "num_key_value_heads": 4},
                    q_lora_rank=16,
                    kv_lora_rank=16,
                    qk_rope_head_dim=4,
                    v_head_dim=8,
                    qk_nope_head_dim=8,
                    n_routed_experts=4,
                    n_group=2,
                    topk_group=1,
                    moe_intermediate_size=16,
                    n_shared_experts=1,
                    first_k_dense_replace=1,
                    num_experts_per_tok=2,
                    experts_implementation="eager"
                )
            )
        ),
        words,
    ),
    "jetmoe": (
        lambda: Language(
            hf.JetMoeForCausalLM(
                small(
                    "JetMoeConfig",
                    hidden_size=32,
                    num_hidden_layers=2,
                    num_attention_heads=4,
                    num_key_value_heads=2,
                    kv_channels=8,
                    intermediate_size=32,
                    num_local_experts=4,
                    num_experts_per_tok=2,
                    max_position_embeddings=32,
                )
            )
        ),
        words,
    ),
    "nllb_moe": (
        lambda: Language(
            hf.NllbMoeForConditionalGeneration(
                small(
                    "NllbMoeConfig",
                    d_model=32,
                    encoder_layers=2,
                    decoder_layers=2,
                    encoder_attention_heads=4,
                    decoder_attention_heads=4,
                    encoder_ffn_dim=32,
                    decoder_ffn_dim=32,
                    num_experts=4,
                    encoder_sparse_step=2,
                    decoder_sparse_step=2,
                    expert_capacity=64,
                    max_position_embeddings=32,
                    decoder_start_token_id=2,
                    second_expert_policy="all",
                    moe_token_dropout=0.0,
                )
            )
        ),
        words,
    ),
}


if __name__ == "__main__":
    train_architectures.ARCHITECTURES = MODULES
    train_architectures.main()
