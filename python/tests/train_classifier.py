#!/usr/bin/env python3
"""examples/classifier.py, held to PyTorch's loop: losses, losses of evaluations and accuracy of each epoch.

    train_classifier.py [--model test_convnext] [--epochs 4] [--bin build/bin]

A line an epoch and quantity; exit status 0: all are equal up to rounding. Needs torch, timm, onnx and onnxscript.
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="test_convnext")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--samples", type=int, default=160)
    parser.add_argument("--bin", type=pathlib.Path, help="of a build; default: as par finds it")
    options = parser.parse_args()
    if options.bin:
        os.environ["PAR_HOME"] = str(options.bin.resolve().parent)
    import classifier

    with tempfile.TemporaryDirectory(prefix="par-classifier-") as folder:
        epochs = classifier.main(pathlib.Path(folder), options.model, options.epochs, options.samples)
    failed = 0 if epochs.told else 1
    for epoch, (ours, theirs) in enumerate(zip(epochs.told, epochs.beside), 1):
        for name, value in ours.items():
            # Sums are added in another order, and AdamW divides small gradients by their own size: what starts some
            # 1e-7 apart may be 1e-3 apart after 40 steps. A sample at the border may then fall to the other side.
            allowed = 1.5 / (options.samples // 3 + 5) if name == "accuracy" else 2e-3 * max(1, abs(theirs[name]))
            held = abs(value - theirs[name]) <= allowed
            failed += not held
            print(f"epoch {epoch} {name}: {value:.6f}, PyTorch {theirs[name]:.6f}, {value - theirs[name]:+.1e}   "
                  f"{'pass' if held else 'FAIL'}")
    print(f"{failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
