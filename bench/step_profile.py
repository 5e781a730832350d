"""Profile of a step of Par: seconds of every kernel and call of a trace, and the bare library on the same shapes."""

import collections
import json
import os
import subprocess

PASSES = {"convolution": 0, "convolution_input_grad": 1, "convolution_filter_grad": 2}


class Work:
    """One matmul or convolution of the program: how often it ran, how long, and the library's line for it."""

    def __init__(self, line, flops, text):
        self.line, self.flops, self.text = line, flops, text
        self.seconds, self.count, self.alone = 0.0, 0, 0.0


def product_of(values):
    result = 1
    for value in values:
        result *= value
    return result


def product_work(call):
    matrices = product_of(call["batch"])
    fields = [int(call["trans_a"]), int(call["trans_b"]), call["m"], call["n"], call["k"]]
    fields += [call["lda"], call["ldb"], call["ldc"], matrices, int(call["beta"])]
    kind = "nt"[call["trans_a"]] + "nt"[call["trans_b"]]
    text = f"{matrices:3} x {call['m']} x {call['n']} x {call['k']} {kind} beta {call['beta']}"
    return Work("matmul " + " ".join(map(str, fields)), 2 * call["m"] * call["n"] * call["k"] * matrices, text)


def convolution_work(builtin, imm):
    n, groups, c, o = imm[:4]
    window, out, stride = imm[7:10], imm[10:13], imm[13:16]
    flops = 2 * n * o * c * product_of(window) * product_of(out)
    text = (f"{builtin} {n} x {groups * c} -> {o}, window {window[1]} x {window[2]} by {stride[2]}, "
            f"to {out[1]} x {out[2]}")
    return Work(f"convolution {PASSES[builtin]} " + " ".join(map(str, imm[:25])), flops, text)


def read_programs(bundle):
    """Each rank's program."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    roles = [rank["role"] for rank in manifest["ranks"]]
    programs = {role: json.loads((bundle / f"role-{role}.json").read_text()) for role in set(roles)}
    return [programs[role] for role in roles]


def read_events(trace, programs):
    """(rank, instruction, seconds) of all that the ranks ran while they were traced; what a rank does besides has
    none."""
    for event in json.loads(trace.read_text())["traceEvents"]:
        block, _, index = event["name"].partition("/")[2].rpartition(":")
        if event.get("ph") == "X" and block in programs[event["pid"]]["blocks"] and index.isdigit():
            yield event["pid"], programs[event["pid"]]["blocks"][block][int(index)], event["dur"] / 1e6


def read_profile(trace, bundle):
    """Products and convolutions by name, and seconds and number of everything else, over the traced steps of one
    rank."""
    programs = read_programs(bundle)
    program = programs[0]
    calls = {call["name"]: call for call in program["calls"]}
    kernels = {kernel["name"]: kernel for kernel in program["kernels"]}
    works, seconds, count = {}, collections.Counter(), collections.Counter()
    for _, instruction, spent in read_events(trace, programs):
        name = instruction.get("lib") or instruction.get("k") or instruction["op"]
        builtin = kernels.get(name, {}).get("builtin")
        if name in calls:
            work = works.setdefault(name, product_work(calls[name]))
        elif builtin in PASSES:
            work = works.setdefault(name, convolution_work(builtin, instruction["imm"]))
        else:
            seconds[builtin or name] += spent
            count[builtin or name] += 1
            continue
        work.seconds += spent
        work.count += 1
    return works, seconds, count


def measure_alone(library, works):
    """Seconds of each matmul or convolution by bare oneDNN."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    lines = "\n".join(work.line for work in works) + "\n"
    out = subprocess.run([library, "3"], input=lines, text=True, check=True, stdout=subprocess.PIPE, env=environment)
    for work, line in zip(works, out.stdout.splitlines()):
        work.alone = float(line.split()[1])


def print_works(library, works, steps, total, details):
    spent = sum(work.seconds for work in works)
    print(f"where Par's time goes (trace, {steps} steps): matmuls and convolutions {spent / total:.1%}")
    if not library or not works:
        return
    measure_alone(library, works)
    flops = sum(work.flops * work.count for work in works)
    alone = sum(work.alone * work.count for work in works)
    for work in sorted(works, key=lambda work: work.alone * work.count - work.seconds)[:details]:
        rate = work.flops * work.count / work.seconds / 1e9
        print(f"  {work.count // steps:4} x {work.text}: {work.seconds / total:6.1%}, {rate:6.1f} GF/s;"
              f" bare oneDNN {work.flops / work.alone / 1e9:6.1f}")
    print(f"  together {flops / spent / 1e9:.1f} GF/s, bare oneDNN {flops / alone / 1e9:.1f}:"
          f" Par takes {spent / alone:.2f} x the library's time")


def report(trace, bundle, library, steps, step_cpu, details=8):
    """Trace times are wall times: scaled to the step's CPU time, they hold on a shared machine, too."""
    works, seconds, count = read_profile(trace, bundle)
    total = step_cpu * steps
    scale = total / (sum(seconds.values()) + sum(work.seconds for work in works.values()))
    for work in works.values():
        work.seconds *= scale
    print_works(library, list(works.values()), steps, total, details)
    for name, spent in seconds.most_common(details):
        print(f"  {name:24} {count[name] // steps:5} a step {spent * scale / total:6.1%}"
              f" {spent * scale / steps * 1e3:8.1f} ms")
