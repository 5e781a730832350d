"""Makes the models of rows.toml as ONNX files without weights: GPT-2 of transformers at the sizes of a row, or Llama if
it has `inner`, the width of its gated layer.

    python3 bench/published/models.py NAME... --out FOLDER

Scores are in memory if the plan says so, whatever the export has. Dropouts are 0.1 as Megatron-LM's default where a row
has dropout = 0.1, else 0. Needs torch, transformers, onnx and onnxscript, as test/Models/zoo/README.md installs them.
"""
import argparse
import pathlib
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))


def build_llama(sizes):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    with torch.device("meta"):
        return LlamaForCausalLM(LlamaConfig(
            vocab_size=sizes["V"], max_position_embeddings=sizes["s"], hidden_size=sizes["h"],
            intermediate_size=sizes["inner"], num_hidden_layers=sizes["L"], num_attention_heads=sizes["a"],
            num_key_value_heads=sizes.get("groups", sizes["a"]), tie_word_embeddings=sizes.get("tied", True),
            use_cache=False))


def build(sizes):
    """The module on the meta device, with GPT-2's own names of parameters and only logits as its output."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    class Scores(torch.nn.Module):
        def __init__(self):
            super().__init__()
            dropout = sizes.get("dropout", 0.0)
            model = GPT2LMHeadModel(GPT2Config(
                vocab_size=sizes["V"], n_positions=sizes["s"], n_embd=sizes["h"], n_layer=sizes["L"],
                n_head=sizes["a"], tie_word_embeddings=sizes.get("tied", True), use_cache=False,
                attn_pdrop=dropout, resid_pdrop=dropout, embd_pdrop=dropout))
            self.transformer, self.lm_head = model.transformer, model.lm_head

        def forward(self, input_ids):
            return self.lm_head(self.transformer(input_ids, use_cache=False)[0])

    with torch.device("meta"):
        return Scores()


def make(sizes, path):
    import torch
    import par
    module = build_llama(sizes) if "inner" in sizes else build(sizes)
    module.train()
    par.export(module, {"input_ids": torch.zeros(2, sizes["s"], dtype=torch.long)}, path,
               dynamic={"input_ids": ["batch", None]}, outputs=["logits"], weights=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a model in rows.toml; default: all")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    models = tomllib.loads((HERE / "rows.toml").read_text())["models"]
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or models:
        path = options.out / f"{name}.onnx"
        if not path.exists():
            make(models[name], path)


if __name__ == "__main__":
    main()
