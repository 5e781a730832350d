#!/usr/bin/env python3
"""Saves under limits of address space: a rank without memory for a copy of its state says so, and saves the same.

    save-without-copy.py BUNDLE

Looks for the least limit, to 8 MiB, under which the job runs. There it cannot copy the state of 96 MiB.
"""
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Trust"))
import trials

MIB = 1 << 20


def run(bundle, limit):
    shutil.rmtree("ckpt", ignore_errors=True)
    return subprocess.run(["par-run", bundle, "--init", "--data", "x.safetensors", "--steps", "3", "--save", "ckpt",
                           "--save-every", "2", "--threads", "1", "--no-tuning"], text=True, capture_output=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB)))


def saved():
    return {path.name: path.read_bytes()[-96 * MIB:] for path in sorted(pathlib.Path("ckpt/2").glob("*.safetensors"))}


def main():
    bundle, = sys.argv[1:]
    trials.write_arrays("x.safetensors", {"x": ("F32", [3, 1024], struct.pack("<3072f", *[0.5] * 3072))})
    most = 1 << 13
    done = run(bundle, most)
    assert done.returncode == 0, done.stderr
    assert "saving ckpt/2" in done.stdout and "note" not in done.stdout, done.stdout
    expected, fails = saved(), 16
    while most - fails > 8:
        middle = (most + fails) // 2
        if run(bundle, middle).returncode == 0:
            most = middle
        else:
            fails = middle
    done = run(bundle, most)
    assert re.search(r"^ckpt: note: rank 0 has no memory for a copy of its state \(100,663,300 bytes\): each save is "
                     r"written before the next step begins$", done.stdout, re.M), done.stdout + done.stderr
    assert saved() == expected
    print(f"saved without a copy under a limit of {most} MiB")


main()
