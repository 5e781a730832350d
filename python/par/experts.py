"""Mixtures of experts of transformers in a form that is exported: every expert computes every token.

Their own implementations sort the tokens by expert, or loop over the experts that some token chose. The first has no ONNX
operator (`grouped_mm`) and couples all tokens of a batch, the second depends on data. Here the router's weights become
one share for each token and expert, zero where it is not chosen: two products for all experts, which can be cut along
tokens, experts and widths, and the same results and gradients. It costs as many times the operations as there are experts
for each one chosen, but for products that read the zeros, of which a CPU skips these.
"""
import contextlib
import types


@contextlib.contextmanager
def exportable(torch, module):
    """Within it the experts of `module` compute densely. Those that were told to use `batched_mm`, which is exported as
    it is (a copy of an expert's weights for each token), keep it."""
    changed = []
    try:
        for part in module.modules():
            forward = _dense_form(part)
            if forward is not None:
                part.forward = types.MethodType(forward(torch), part)
                changed.append(part)
        yield
    finally:
        for part in changed:
            del part.forward


def _dense_form(part):
    """What makes the dense forward of a module of experts; None for other modules."""
    if "forward" in vars(part):
        return None  # somebody's own
    if hasattr(part, "has_gate") and hasattr(part, "_is_expert_parallel"):  # what transformers' decorator leaves
        told = getattr(getattr(part, "config", None), "_experts_implementation", None)
        return None if part._is_expert_parallel or told == "batched_mm" else _stacked
    return LOOPS.get(type(part).__name__) if type(part).__module__.startswith("transformers.") else None


def _shares(torch, chosen, weights, experts):
    """[token, choice] and their weights to [token, expert]; what chose no expert has an index beyond them."""
    numbers = torch.arange(experts, device=chosen.device)
    picked = (chosen.unsqueeze(-1) == numbers).to(weights.dtype)
    return (picked * weights.unsqueeze(-1)).sum(-2)


def _stacked(torch):
    """Experts whose weights are stacked: [expert, out, in], or [expert, in, out] where they are transposed."""
    def forward(self, hidden_states, top_k_index, top_k_weights):
        gated, biased = getattr(self, "has_gate", True), getattr(self, "has_bias", False)
        turned = getattr(self, "is_transposed", False)
        up = self.gate_up_proj if gated else self.up_proj
        shares = _shares(torch, top_k_index, top_k_weights, self.num_experts)
        inner = torch.einsum("ti,eio->teo" if turned else "ti,eoi->teo", hidden_states.to(up.dtype), up)
        if biased:
            inner = inner + (self.gate_up_proj_bias if gated else self.up_proj_bias)
        inner = self._apply_gate(inner) if gated else self.act_fn(inner)
        if getattr(self, "has_post_expert_norm", False):
            each = torch.einsum("teo,eoi->tei" if turned else "teo,eio->tei", inner, self.down_proj)
            each = self.post_expert_norm(each + self.down_proj_bias if biased else each)
            return (each * shares.unsqueeze(-1)).sum(1).to(hidden_states.dtype)
        weighted = (inner * shares.unsqueeze(-1)).to(self.down_proj.dtype)
        result = torch.einsum("teo,eoi->ti" if turned else "teo,eio->ti", weighted, self.down_proj)
        if biased:
            result = result + shares.to(self.down_proj_bias.dtype) @ self.down_proj_bias
        return result.to(hidden_states.dtype)
    return forward


def _switch(torch):
    """Experts that are modules of their own; a token has one, or none where that has no room."""
    def forward(self, hidden_states, selected_experts, routing_weights):
        shares = (selected_experts * routing_weights.unsqueeze(-1)).sum(1)
        parts = [self[f"expert_{expert}"](hidden_states) * shares[:, expert, None] for expert in range(self.num_experts)]
        return sum(part.to(hidden_states.dtype) for part in parts)
    return forward


def _dbrx(torch):
    """Three tables [expert * inner, hidden], the last one transposed."""
    def forward(self, hidden_states, top_k_index, top_k_weights):
        flat = hidden_states.reshape(-1, self.hidden_size)
        shares = _shares(torch, top_k_index, top_k_weights, self.num_experts)
        w1, v1, w2 = (weights.view(self.num_experts, self.ffn_hidden_size, self.hidden_size)
                      for weights in (self.mlp.w1, self.mlp.v1, self.mlp.w2))
        inner = self.mlp.activation_fn(torch.einsum("ti,eoi->teo", flat, w1)) * torch.einsum("ti,eoi->teo", flat, v1)
        result = torch.einsum("teo,eoi->ti", inner * shares.unsqueeze(-1), w2)
        return result.view(hidden_states.shape[0], -1, self.hidden_size)
    return forward


LOOPS = {"SwitchTransformersExperts": _switch, "DbrxExperts": _dbrx, "Step3p7Experts": _stacked}
