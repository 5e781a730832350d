"""Mixtures of experts of transformers in a form that is exported: every expert computes every token.

Their own implementations sort the tokens by expert, or loop over the experts that some token chose. The first has no
ONNX operator (`grouped_mm`) and couples all tokens of a batch, the second depends on data. Here the router's weights
become one share for each token and expert, zero where it is not chosen: two matmuls for all experts, which can be
sharded by tokens, experts and widths, with the same results and gradients. The operations grow by the number of experts
over the number chosen; a CPU skips the zeros in the matmuls that read them.
"""
import contextlib
import types


@contextlib.contextmanager
def exportable(torch, module):
    """Within it the experts of `module` compute densely. Modules that were told to use `batched_mm`, which is exported
    as it is (a copy of an expert's weights for each token), keep it."""
    changed = []
    try:
        for part in module.modules():
            form = _dense_form(part)
            if form is not None:
                methods = form(torch)
                for name, method in (methods if isinstance(methods, dict) else {"forward": methods}).items():
                    setattr(part, name, types.MethodType(method, part))
                    changed.append((part, name))
        yield
    finally:
        for part, name in changed:
            delattr(part, name)


def _dense_form(part):
    """The maker of the dense forward of a module of experts, or of several methods by name; None for other modules."""
    if "forward" in vars(part):
        return None  # the user's own
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
        parts = [self[f"expert_{expert}"](hidden_states) * shares[:, expert, None]
                 for expert in range(self.num_experts)]
        return sum(part.to(hidden_states.dtype) for part in parts)
    return forward


def _nllb(torch):
    """As _switch, by what transformers makes of its router's mask: a mark of 0 or 1 for each token and expert is the
    number of the expert that computes it. (Experts from the third on compute nothing.)"""
    def forward(self, hidden_states, router_mask, router_probs):
        numbers = torch.arange(self.num_experts, device=router_mask.device)
        chosen = (router_mask.unsqueeze(-1) == numbers).to(router_probs.dtype)
        shares = (chosen * router_probs.unsqueeze(-1)).sum(1)
        parts = (self[f"expert_{expert}"](hidden_states) * shares[:, expert, None]
                 for expert in range(self.num_experts))
        if self.moe_token_dropout > 0:
            parts = (self.token_dropout(part) if self.training else part * (1 - self.moe_token_dropout)
                     for part in parts)
        return sum(part.to(hidden_states.dtype) for part in parts)
    return forward


def _jetmoe_gates(torch, router, tokens):
    """Which experts each token has, as [token, choice], and their weights."""
    best, chosen = router.layer(tokens).float().topk(router.top_k, dim=1)
    return chosen, torch.softmax(best, dim=1).type_as(tokens)


def _jetmoe(torch):
    def forward(self, layer_input):
        tokens = layer_input.reshape(-1, layer_input.shape[-1])
        shares = _shares(torch, *_jetmoe_gates(torch, self.router, tokens), self.router.num_experts)
        left, right = torch.einsum("ti,eoi->teo", tokens, self.input_linear.weight).chunk(2, dim=-1)
        inner = self.activation(left) * right * shares.unsqueeze(-1)
        return torch.einsum("teo,eio->ti", inner, self.output_linear.weight).view(layer_input.shape) + self.bias
    return forward


def _jetmoe_attention(torch):
    """Experts of queries and of results: a query for each expert that a token has."""
    def map(self, layer_input):
        tokens = layer_input.reshape(-1, layer_input.shape[-1])
        chosen, weights = _jetmoe_gates(torch, self.router, tokens)
        numbers = torch.arange(self.num_experts, device=chosen.device)
        picked = (chosen.unsqueeze(-1) == numbers).to(weights.dtype)
        queries = torch.einsum("teo,tke->tko", torch.einsum("ti,eoi->teo", tokens, self.input_linear.weight), picked)
        return queries.view(*layer_input.shape[:2], self.top_k,
                            -1), self.router.layer(tokens).float(), (picked, weights)

    def reduce(self, layer_input, topology):
        picked, weights = topology
        rows = layer_input.reshape(-1, self.top_k, layer_input.shape[-1]) * weights.unsqueeze(-1)
        result = torch.einsum("teo,eio->ti", torch.einsum("tko,tke->teo", rows, picked), self.output_linear.weight)
        return result.view(*layer_input.shape[:2], -1) + self.bias

    return {"map": map, "reduce": reduce}


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


LOOPS = {"SwitchTransformersExperts": _switch, "DbrxExperts": _dbrx, "Step3p7Experts": _stacked,
         "NllbMoeExperts": _nllb,
         "JetMoeMoE": _jetmoe, "JetMoeMoA": _jetmoe_attention}
