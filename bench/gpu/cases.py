"""Cases compiled for the GPU, with their references and tolerances."""

# Greatest difference of a loss from the float64 reference, relative, by precision; and of several ranks from one.
BOUNDS = {"f32": 1e-4, "bf16": 1e-2}
RANK_BOUNDS = {"f32": 1e-4, "bf16": 2e-3}

OPTIMIZER_KEYS = {"sgd": ["lr"], "momentum": ["lr", "momentum"], "adamw": ["lr", "weight_decay", "betas", "eps"]}

ONE = "batch: {microbatches: 1}\n"
# Several ranks on one GPU, by model: layers are cut where the model has them.
RANKS = {
    ("gpt2", "dp2-pp2"): "mesh: {dp: 2, pp: 2}\nbatch: {microbatches: 4}\n"
                         "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\n",
    ("gpt2", "tp2-pp2"): "use: [megatron]\nmesh: {tp: 2, pp: 2}\nbatch: {microbatches: 4}\n"
                         "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\n",
    ("mlp", "dp2-pp2"): "mesh: {dp: 2, pp: 2}\nbatch: {microbatches: 4}\npipeline: {schedule: 1f1b, cuts: [fc2]}\n",
}

SEQUENCE = 1024


def cases(model, optimizers):
    """(case, optimizer, precision, ranks, plan without optimizer and target) of a model."""
    one = [("one", optimizer, "f32", 1, ONE) for optimizer in ("sgd", "adamw") if optimizer in optimizers]
    if "adamw" in optimizers and model in ("bert", "cnn", "gpt2", "mlp"):
        one.append(("one", "adamw", "bf16", 1, ONE))
    several = [(case, "adamw", precision, 4, plan) for (name, case), plan in RANKS.items() if name == model
               for precision in ("f32", "bf16")]
    return one + several


def benchmark_plan(batch):
    return (f"batch: {{size: {batch}, microbatches: 1}}\ndims: {{batch: {batch}, seq: {SEQUENCE}}}\nprecision: bf16\n"
            "train: {optimizer: {kind: adamw, lr: 1e-4, betas: [0.9, 0.95], weight_decay: 0.1}}\n")
