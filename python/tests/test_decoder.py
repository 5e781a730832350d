#!/usr/bin/env python3
"""par.export_decoder and par.Decoder with torch and transformers: the page's example, and refusals. All models:
decode_models.py.

    python3 python/tests/test_decoder.py
"""
import importlib.util
import os
import pathlib
import re
import sys
import tempfile
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import par  # noqa: E402

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnx", "onnxscript", "transformers"))
TINY = dict(n_embd=32, n_layer=2, n_head=4, n_positions=256, bos_token_id=50256, eos_token_id=50256)


def page_example():
    """The Python of docs/pytorch.md's section Decoding."""
    section = (ROOT / "docs/pytorch.md").read_text().split("## Decoding")[1]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)


@unittest.skipUnless(HAS_TORCH, "needs torch, onnx, onnxscript and transformers")
class Decoders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="par-decoder-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        warnings.simplefilter("ignore")

    def refused(self, model, **options):
        with self.assertRaises(par.Error) as refused:
            par.export_decoder(model, "model.onnx", **options)
        self.assertFalse(pathlib.Path("model.onnx").exists())
        return str(refused.exception)

    def test_the_example_of_the_page(self):
        import torch
        import transformers

        torch.manual_seed(1)
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**TINY)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, 0.3) if parameter.dim() > 1 else None
        said, names = [], {"par": par, "print": lambda *values: said.append(values)}

        class Models:
            class AutoModelForCausalLM:
                @staticmethod
                def from_pretrained(_):
                    return model

        exec(page_example(), {**names, "transformers": Models})
        wanted = [model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=8)[0, len(prompt):].tolist()
                  for prompt in ([464, 3290], [15496])]
        self.assertEqual(said[0], (wanted,))
        self.assertEqual([prompt for prompt, _ in said[1:]], [0] * 8)
        self.assertIs(type(model), transformers.GPT2LMHeadModel)

    def test_weights_that_come_later(self):
        """A structure from the meta device, and the weights of save_pretrained's kind under the model's own names."""
        import torch
        import transformers

        config = transformers.LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                                          num_attention_heads=4, vocab_size=96)
        with torch.device("meta"):
            empty = transformers.LlamaForCausalLM(config)
        par.export_decoder(empty, "model.onnx", weights=False)
        torch.manual_seed(3)
        model = transformers.LlamaForCausalLM(config).eval()
        model.save_pretrained("weights")
        bundle = par.compile("model.onnx", {"batch": 2, "dims": {"seq": 1, "cache": 32},
                                            "carry": {"present.*": "past.*"}}, out="model.par")
        with par.Decoder(bundle, weights="weights") as decoder:
            got = decoder.generate([[1, 2, 3]], max_new_tokens=8)
        wanted = model.generate(torch.tensor([[1, 2, 3]]), do_sample=False, max_new_tokens=8, eos_token_id=None)
        self.assertEqual(got, [wanted[0, 3:].tolist()])

    def test_what_has_no_cache_of_keys_and_values(self):
        import transformers

        mamba = transformers.MambaForCausalLM(transformers.MambaConfig(hidden_size=32, num_hidden_layers=1,
                                                                       vocab_size=96, state_size=4))
        self.assertRegex(self.refused(mamba), "MambaForCausalLM (returns no cache of keys and values|keeps other state "
                         "in layer 0), and a static cache holds keys and values of past tokens only")
        import torch
        self.assertIn("export_decoder takes a model of transformers that generates, found Linear",
                      self.refused(torch.nn.Linear(2, 2)))
        t5 = transformers.T5ForConditionalGeneration(transformers.T5Config(
            d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2, vocab_size=32))
        self.assertIn("has an encoder, and export_decoder takes decoders without one", self.refused(t5))

    def test_a_cache_beyond_the_positions(self):
        import transformers

        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**TINY))
        self.assertIn('cache is 512, and "transformer.wpe" has 256 positions', self.refused(model, cache=512))

    def test_logits_that_follow_from_the_number_of_keys(self):
        import transformers

        class Scaled(transformers.GPT2LMHeadModel):
            def forward(self, input_ids=None, **named):
                out = super().forward(input_ids, **named)
                out.logits = out.logits * input_ids.shape[1]
                return out

        self.assertIn("Scaled gives other logits with a static cache than without one: they differ by",
                      self.refused(Scaled(transformers.GPT2Config(**TINY))))

    def test_a_window_in_a_table_of_positions(self):
        import transformers

        config = transformers.GPTNeoConfig(
            hidden_size=32, num_layers=2, num_heads=4, vocab_size=96, max_position_embeddings=64, window_size=3,
            attention_types=[[["global", "local"], 1]], intermediate_size=64)
        model = transformers.GPTNeoForCausalLM(config)  # its logits are compared when it is exported
        tables = [part.bias for part in model.modules() if hasattr(part, "bias") and hasattr(part, "attention_type")]
        par.export_decoder(model, "model.onnx")
        self.assertIs(tables[1], model.transformer.h[1].attn.attention.bias)

    def test_parts_compute_as_in_evaluation(self):
        """Routers of some models (Phimoe) draw experts in training."""
        import transformers

        model, seen = transformers.GPT2LMHeadModel(transformers.GPT2Config(**TINY)), []
        model.transformer.h[0].eval()
        modes = [part.training for part in model.modules()]
        model.lm_head.register_forward_pre_hook(lambda part, _: seen.append(part.training))
        par.export_decoder(model, "model.onnx")
        self.assertEqual(set(seen), {False})
        self.assertEqual([part.training for part in model.modules()], modes)

    def test_attention_by_chunks(self):
        import transformers

        config = transformers.Llama4TextConfig(
            hidden_size=32, intermediate_size=32, intermediate_size_mlp=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, vocab_size=96, num_local_experts=2, attention_chunk_size=8)
        self.assertIn("Llama4ForCausalLM calls create_chunked_causal_mask of transformers, and a static cache holds",
                      self.refused(transformers.Llama4ForCausalLM(config)))


if __name__ == "__main__":
    unittest.main()
