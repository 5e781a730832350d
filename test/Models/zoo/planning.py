"""Plans the big models: cuda, bf16, 64 ranks (pp 4 x dp 4 x tp 4), every layer computed again; from import to the
proof.

Each may take 30 s and 3 GB on two cores. Exports that the folder lacks are made by structure.py, which needs torch.
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

from big import BIG, plan
from par_side import TIMEOUT, refusal

MOST_SECONDS, MOST_MIB = 30.0, 3 * 1024
HERE = pathlib.Path(__file__).resolve().parent


def compile_and_watch(command):
    """Exit status, what was said, seconds, CPU seconds and MiB at the peak of one process."""
    begin = time.monotonic()
    job = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = job.stdout.read()
    _, status, used = os.wait4(job.pid, 0)
    job.returncode = os.waitstatus_to_exitcode(status)
    return job.returncode, said, time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def trial(options, recipe):
    model = options.big / f"{recipe.name}.onnx"
    if not model.exists():
        options.big.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, HERE / "structure.py", recipe.name, "--out", options.big], check=True,
                       timeout=TIMEOUT)
    text, bundle = options.cache / f"big-{recipe.name}.yaml", options.cache / f"big-{recipe.name}.par"
    text.write_text(plan(recipe))
    status, said, wall, cpu, peak = compile_and_watch([options.bin / "par-compile", model, text, "-o", bundle])
    shutil.rmtree(bundle, ignore_errors=True)
    parameters = re.search(r"\(([\d.,]+) M", said)
    proof = re.search(r"^proved.*$", said, re.M)
    row = {"name": recipe.name, "length": recipe.feed[1], "parameters_m": parameters and parameters[1], "wall_s": wall,
           "cpu_s": cpu, "peak_mib": peak, "proved": proof and proof[0].removeprefix("proved").strip(), "failed": []}
    if status:
        row["refused" if refusal(status, said) else "stopped"] = refusal(status, said) or said.strip()[-300:]
        row["failed"].append(f"exit {status}")
    elif not proof:
        row["failed"].append("no proof")
    for what, found, most in (("s", wall, MOST_SECONDS), ("MiB", peak, MOST_MIB)):
        if found > most:
            row["failed"].append(f"{found:.0f} {what}, at most {most:.0f}")
    return row


def main(options, names):
    print("| name | tokens | parameters M | wall s | CPU s | peak MiB | proof | said |\n|" + " --- |" * 8, flush=True)
    options.cache.mkdir(parents=True, exist_ok=True)
    rows = []
    for recipe in BIG:
        if recipe.name not in names:
            continue
        rows.append(row := trial(options, recipe))
        said = " ".join((row.get("refused") or row.get("stopped") or "; ".join(row["failed"])).split())
        figures = f"{row['wall_s']:.1f} | {row['cpu_s']:.1f} | {row['peak_mib']:.0f}"
        print(f"| {row['name']} | {row['length']} | {row['parameters_m']} | {figures} | {row['proved']} | {said} |",
              flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
    failed = [row["name"] for row in rows if row["failed"]]
    print(f"\n{len(rows)} big ones: {len(rows) - len(failed)} hold, {len(failed)} failed ({', '.join(failed)}); "
          f"median {statistics.median(row['wall_s'] for row in rows):.1f} s")
    return 1 if failed else 0
