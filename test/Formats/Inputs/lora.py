"""LoRA as peft makes it: a model of transformers with adapters is trained by Par, and peft loads what Par wrote."""
import numpy
import par
import peft
import torch
import transformers
from safetensors.numpy import load_file

STEPS, LENGTH = 4, 16


def adapted():
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=64, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4, use_cache=False,
                                     resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    lora = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], lora_dropout=0, fan_in_fan_out=True)
    model = peft.get_peft_model(transformers.GPT2LMHeadModel(config), lora)
    for name, weight in model.named_parameters():
        if "lora_B" in name:  # which begin at zero, and then the first gradients of lora_A are zero
            torch.nn.init.normal_(weight, std=0.02)
    return model


def torch_losses(model, tokens):
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.01, weight_decay=0.01)
    windows, losses = torch.tensor(tokens.astype("i8")).view(-1, 4, LENGTH), []
    for step in range(STEPS):
        part = windows[step % len(windows)]
        loss = model(input_ids=part, labels=part).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    model = adapted().train()
    tokens = numpy.random.default_rng(1).integers(0, 64, 4 * LENGTH * STEPS).astype("u2")
    tokens.tofile("tokens.bin")
    window = torch.zeros(4, LENGTH, dtype=torch.int64)
    par.export(model, {"input_ids": window, "labels": window}, "lora.onnx")
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer = {"kind": "adamw", "lr": 0.01, "weight_decay": 0.01}
    done = par.compile("lora.onnx", out="lora.par", set={
        "ranks": 2, "mesh": {"dp": 2}, "train": {"optimizer": optimizer, "clip": "none"}})
    found = par.run(done, tokens="tokens.bin:u16", order="sequential", steps=STEPS, export="out/", quiet=True).losses
    wanted = torch_losses(model, tokens)
    print("losses", "as PyTorch's" if numpy.abs(numpy.subtract(found, wanted)).max() < 1e-5 else (found, wanted))

    written = load_file("out/model.safetensors")
    moved = [name for name, weight in before.items() if name in written
             and not numpy.array_equal(written[name], weight.numpy())]
    print("moved:", "adapters only" if moved and all("lora_" in name for name in moved) else moved)
    loaded = adapted()
    missing = loaded.load_state_dict({name: torch.tensor(array) for name, array in written.items()}, strict=False)
    apart = max((loaded.get_parameter(name) - model.get_parameter(name)).abs().max().item() for name in moved)
    print("loaded:", "all adapters" if not missing.unexpected_keys and apart < 1e-4 else (missing, apart))
    loaded.save_pretrained("adapter")
    print("adapter:", sorted(load_file("adapter/adapter_model.safetensors"))[0])


if __name__ == "__main__":
    main()
