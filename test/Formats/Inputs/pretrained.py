"""A language model from nothing to `generate`, in this folder: a tokenizer trained on texts, its tokens as a file, four
ranks that train the model, and transformers that loads the folder that they wrote.

    pretrained.py TEXT...
"""
import json
import pathlib
import subprocess
import sys

import numpy
import par
import tokenizers
import torch
import transformers

SYMBOLS, LENGTH, STEPS = 300, 32, 60


def train_tokenizer(texts):
    """Pairs of bytes, merged until there are SYMBOLS of them."""
    pieces = tokenizers.ByteLevelBPETokenizer()
    pieces.train(texts, vocab_size=SYMBOLS, show_progress=False)
    pieces.save("tokenizer.json")
    return transformers.PreTrainedTokenizerFast(tokenizer_file="tokenizer.json")


def run(*command):
    print("$", *command)
    subprocess.run([str(word) for word in command], check=True)


def loss_of(model, tokens):
    """Mean over the windows that `par-run --eval` reads."""
    windows = torch.tensor(tokens[:len(tokens) // LENGTH * LENGTH].astype("i8")).view(-1, LENGTH)
    with torch.no_grad():
        return numpy.mean([model(input_ids=part, labels=part).loss.item() for part in windows.split(1)])


def main(texts):
    torch.manual_seed(1)
    tokenizer = train_tokenizer(texts)
    tokens = numpy.array(tokenizer.encode("".join(pathlib.Path(text).read_text() for text in texts)), "u2")[:20000]
    tokens.tofile("tokens.bin")
    config = transformers.GPT2Config(vocab_size=SYMBOLS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4,
                                     use_cache=False, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = transformers.GPT2LMHeadModel(config)
    window = torch.zeros(8, LENGTH, dtype=torch.int64)
    par.export(model, {"input_ids": window, "labels": window}, "gpt2.onnx")
    run("par-compile", "gpt2.onnx", "-q", "-o", "gpt2.par", "-n", 4, "--set", "mesh={dp: 2, tp: 2}", "--set",
        "use=[megatron]", "--set", "train={optimizer: {kind: adamw, lr: 0.003}}")
    run("par-run", "gpt2.par", "--tokens", "tokens.bin:u16", "--steps", STEPS, "--export", "hub/", "--max-shard",
        "40KB", "--metrics", "metrics.jsonl", "-q")
    config.save_pretrained("hub")
    tokenizer.save_pretrained("hub")
    print(sorted(path.name for path in pathlib.Path("hub").iterdir()))
    run("par-run", "gpt2.par", "--eval", "--tokens", "tokens.bin:u16", "--weights", "hub", "--metrics", "eval.jsonl",
        "-q")
    losses = [json.loads(line)["loss"] for line in open("metrics.jsonl")]
    evaluated = json.loads(open("eval.jsonl").readline())["eval_loss"]

    trained, said = transformers.AutoModelForCausalLM.from_pretrained("hub", output_loading_info=True)
    reader = transformers.AutoTokenizer.from_pretrained("hub")
    print("keys that are missing or unknown:", sorted(said["missing_keys"]) + sorted(said["unexpected_keys"]))
    theirs = loss_of(trained.eval(), tokens)
    print(f"loss {losses[0]:.4f}, after {STEPS} steps {losses[-1]:.4f}; evaluated {evaluated:.5f}, in PyTorch "
          f"{theirs:.5f}: {'equal' if abs(evaluated - theirs) < 1e-4 else 'apart'}")
    prompt = reader("The ", return_tensors="pt")
    made = trained.generate(**prompt, max_new_tokens=16, do_sample=False, pad_token_id=0)
    print("generated:", repr(reader.decode(made[0])))
    print("it learned" if losses[-1] < losses[0] - 1 and made.shape[1] == prompt["input_ids"].shape[1] + 16
          else "it did not learn")


if __name__ == "__main__":
    main(sys.argv[1:])
