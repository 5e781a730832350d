#!/usr/bin/env python3
"""Kills jobs that save at every step, and damages their saves; checks how jobs go on from these.

    saves.py --bin build/bin [--count N] [--seed S] [--first N] [--keep] [--each]

Each trial kills a job one to three times at random moments (only its parent, all of it, or one rank), on one rank or on
two, in a new folder or over the saves of an earlier job. After each kill every folder with a step's number must be
complete. Then the job goes on at once by --resume auto, and its last save must equal, bit for bit, the last save of a
job without kills: parameters, optimizer and counters. Then one thing is done to a copy of the folder (files of another
step, run or rank, a flipped bit, a byte less, another bundle's width, another name, other times, a second job, ...). A
job on the copy must refuse it with the folder's name, before a step, or, if nothing was damaged, compute the same. With
--each the first trials do each of these things once, to saves of a job that was not killed.
"""
import functools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Phases" / "Import" / "Inputs"))
import encode
import trials

STEPS = 8
MODEL = """
input x f32[8,{width}]
output loss f32[]
init w f32[{width},128] = {w}
init v f32[128,{width}] = {v}
node a MatMul x,w -> h
node t Tanh h -> r
node b MatMul r,v -> y
node e Sub y,x -> d
node p Mul d,d -> q
node l ReduceMean q -> loss keepdims=0
"""
PLANS = {"one": "train: {optimizer: adamw}\n",
         "two": "train: {optimizer: adamw}\nmesh: {tp: 2}\nshard: {w: {1: tp}, v: {0: tp}}\n"}


class Job:
    """The bundles, data and saves without kills that all trials compare with."""

    def __init__(self, folder, bin_folder):
        self.folder, self.run_tool = folder, str(pathlib.Path(bin_folder).resolve() / "par-run")
        numbers = random.Random(7)
        for width in (32, 48):
            values = {name: " ".join(f"{numbers.gauss(0, 0.1):.4f}" for _ in range(width * 128)) for name in "wv"}
            model = encode.encode(MODEL.format(width=width, **values).splitlines())
            (folder / f"m{width}.onnx").write_bytes(model)
        samples = b"".join(encode.struct.pack("<f", numbers.gauss(0, 1)) for _ in range(64 * 32))
        trials.write_arrays(folder / "x.safetensors", {"x": ("F32", [64, 32], samples)})
        trials.write_arrays(folder / "x48.safetensors", {"x": ("F32", [64, 48], samples + samples[:len(samples) // 2])})
        for name, plan in PLANS.items():
            (folder / f"{name}.yaml").write_text(plan)
            for width in (32, 48):
                bundle = folder / (name + ("" if width == 32 else "-wide") + ".par")
                subprocess.run([str(pathlib.Path(bin_folder).resolve() / "par-compile"), folder / f"m{width}.onnx",
                                folder / f"{name}.yaml", "-o", bundle, "-q"], check=True)
        self.expected, self.seconds = {}, {}
        for name in PLANS:
            for again in ("", "-other"):  # the other one is another run, which saves the same
                begin = time.monotonic()
                done = trials.Outcome(self.command(name, folder / (name + again), STEPS), folder, 60)
                self.seconds[name] = time.monotonic() - begin
                if done.status != 0:
                    sys.exit(done.text)
            self.expected[name] = {STEPS: state(folder / name, STEPS)}
            far = trials.Outcome(self.command(name, folder / f"{name}-far", STEPS + 2), folder, 60)
            self.expected[name][STEPS + 2] = state(folder / f"{name}-far", STEPS + 2)
            if far.status != 0 or None in self.expected[name].values():
                sys.exit("a job without kills did not save: " + far.text)

    def command(self, name, saves, steps, flags=("--resume", "auto")):
        return [self.run_tool, str(self.folder / f"{name}.par"), "--data", str(self.folder / "x.safetensors"),
                "--steps", str(steps), "--save", str(saves), "--save-every", "1", *flags]


def state(saves, step):
    """Contents of the ranks' files of a step: name -> bytes of each; None if one cannot be read."""
    files = sorted((saves / str(step)).glob("rank*.safetensors"))
    arrays = [trials.read_arrays(file) for file in files]
    return None if not files or None in arrays else arrays


def half_saved(saves):
    """The first fault in a folder with a step's number; "" if all these folders are complete."""
    for folder in saves.iterdir() if saves.exists() else []:
        if not folder.name.isdigit():
            continue
        try:
            files = json.loads((folder / "index.json").read_text())["files"]
            for name, entry in files.items():
                if (folder / name).stat().st_size != (entry if isinstance(entry, int) else entry["bytes"]):
                    return f"{folder / name} has not its length"
        except (OSError, ValueError) as error:
            return f"{folder}: {error}"
    return ""


def children_of(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill_one(job, name, saves, chance):
    """Starts a job and kills it, or a part of it, at a random moment; returns a description, and whether it hung."""
    victim = chance.choice(["parent", "job", "rank"])
    delay = chance.random() * job.seconds[name] * 1.1
    process = subprocess.Popen(job.command(name, saves, STEPS), cwd=job.folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(delay)
    ranks = children_of(process.pid)
    try:
        if victim == "rank" and ranks:
            os.kill(chance.choice(ranks), signal.SIGKILL)
        elif victim == "job":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(trials.LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"{victim} after {delay:.3f} s", True
    return f"{victim} after {delay:.3f} s", False


def kill_and_go_on(job, number, chance, counts, saves):
    """One to three kills, then the end of the job; returns the plan's name if it ends as without kills, else None."""
    name = chance.choice(list(PLANS))
    if chance.random() < 0.3:  # over the saves of an earlier job
        shutil.copytree(job.folder / f"{name}-other", saves)
    done = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        flags = chance.choice([("--resume", "auto"), ("--init",)]) if name == "never" else ("--resume", "auto")
        how, hung = kill_one(job, name, saves, chance)
        done.append(how)
        if hung:
            counts.fault("hangs", number, f"{name}: killed {done}", "the job did not end")
        if half := half_saved(saves):
            counts.fault("wrong", number, f"{name}: killed {done}", half)
    title = f"{name}: killed {', '.join(done)}"
    outcome = trials.Outcome(job.command(name, saves, STEPS), job.folder)
    if outcome.status is None:
        counts.fault("hangs", number, title, outcome.text)
    elif outcome.crashed():
        counts.fault("crashes", number, title, outcome.text)
    elif outcome.status != 0 or state(saves, STEPS) != job.expected[name][STEPS]:
        counts.fault("wrong", number, title, outcome.text + "\nthe job does not go on as without kills")
    else:
        return name
    return None


# Changes of a copy of a folder with the saves of the last two steps. Each gets (job, bundle, saves, chance) and returns
# whether a job must still compute the right result.
def newest(saves):
    return saves / str(STEPS)


def pick(folder, chance):
    return chance.choice(sorted(folder.iterdir()))


def rank_of_other_step(job, name, saves, chance):
    file = chance.choice(sorted(newest(saves).glob("rank*")))
    shutil.copy(saves / str(STEPS - 1) / file.name, file)


def rank_of_other_run(job, name, saves, chance):
    file = chance.choice(sorted(newest(saves).glob("rank*")))
    shutil.copy(job.folder / name / str(STEPS) / file.name, file)


def rank_of_other_rank(job, name, saves, chance):
    files = sorted(newest(saves).glob("rank*"))
    other = files[1] if len(files) > 1 else sorted((job.folder / "two" / str(STEPS)).glob("rank*"))[0]
    shutil.copy(other, files[0])


def index_of_other_step(job, name, saves, chance):
    shutil.copy(saves / str(STEPS - 1) / "index.json", newest(saves) / "index.json")


def index_of_other_run(job, name, saves, chance):
    shutil.copy(job.folder / name / str(STEPS) / "index.json", newest(saves) / "index.json")


def flipped_bit(job, name, saves, chance):
    file = pick(newest(saves), chance)
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def shorter(job, name, saves, chance):
    file = pick(newest(saves), chance)
    os.truncate(file, chance.randrange(file.stat().st_size))


def longer(job, name, saves, chance):
    file = pick(newest(saves), chance)
    file.write_bytes(file.read_bytes() + bytes(chance.randrange(1, 100)))


def torn(job, name, saves, chance):
    """A page of zeros, as a file system leaves after a loss of power."""
    file = chance.choice(sorted(newest(saves).glob("rank*")))
    data = bytearray(file.read_bytes())
    begin = chance.randrange(len(data))
    end = min(len(data), begin + 4096)
    if any(data[begin:end]):
        data[begin:end] = bytes(end - begin)
    else:
        data[begin] = 1
    file.write_bytes(data)


def gone(job, name, saves, chance):
    chance.choice(sorted(newest(saves).glob("rank*"))).unlink()


def renamed(job, name, saves, chance):
    newest(saves).rename(saves / str(chance.choice([STEPS + 1, 1000, 3])))
    return False


def index_out_of_range(job, name, saves, chance):
    file = newest(saves) / "index.json"
    key = chance.choice(["step", "rows", "seed", "order", "serial"])
    index = json.loads(file.read_text())
    index[key] = chance.choice([-1, 2 ** 64, 1e30, "x", None, [], 2.5])
    file.write_text(json.dumps(index, indent=1))


def copied(job, name, saves, chance):
    """Gives all files other times, as after a copy."""
    for path in sorted(saves.rglob("*")):
        moment = chance.randrange(1, 2_000_000_000)
        os.utime(path, (moment, moment))
    return True


def strange_names(job, name, saves, chance):
    for strange in ["99999999999999999999999999", "-3", "1e9", "007", "8.tmp2", "18446744073709551616"]:
        shutil.copytree(saves / str(STEPS - 1), saves / strange)
    return True


def left_over(job, name, saves, chance):
    """Folders that a kill of an older par-run or of this one leaves."""
    for left in [f"{STEPS + 1}.tmp", f"{STEPS + 1}.0123456789abcdef.tmp", f"{STEPS - 1}.0123456789abcdef.gone"]:
        shutil.copytree(newest(saves), saves / left)
    return True


def moved_aside(job, name, saves, chance):
    """A kill while an older save was moved aside, where the file system cannot exchange."""
    newest(saves).rename(saves / f"{STEPS}.0123456789abcdef.old")
    return True


DAMAGES = [rank_of_other_step, rank_of_other_run, rank_of_other_rank, index_of_other_step, index_of_other_run,
           flipped_bit,
           flipped_bit, flipped_bit, shorter, longer, torn, gone, renamed, index_out_of_range, copied, strange_names,
           left_over,
           moved_aside]


def judge_refusal(counts, number, title, outcome, culprit):
    if outcome.status is None:
        counts.fault("hangs", number, title, outcome.text)
    elif outcome.crashed():
        counts.fault("crashes", number, title, outcome.text)
    elif outcome.status == 0 or "step " in outcome.text.split("error:")[0]:
        counts.fault("wrong", number, title, outcome.text + "\nit was not refused")
    elif culprit not in outcome.text or "error: " not in outcome.text:
        counts.fault("unnamed", number, title, outcome.text)


def damage_copy(job, number, chance, counts, name, saves, damage=None):
    damage = damage or chance.choice(DAMAGES)
    intact = damage(job, name, saves, chance)
    if intact:
        outcome = trials.Outcome(job.command(name, saves, STEPS + 2), job.folder)
        title = f"{name}: {damage.__name__}"
        if outcome.status is None:
            counts.fault("hangs", number, title, outcome.text)
        elif outcome.status != 0 or state(saves, STEPS + 2) != job.expected[name][STEPS + 2]:
            counts.fault("wrong", number, title, outcome.text + "\nit does not go on as without it")
        return
    there = newest(saves)
    if damage is renamed:
        there = next(path for path in saves.iterdir() if path.name.isdigit() and path.name != str(STEPS - 1))
    how = chance.choice([("--resume", "auto"), ("--resume", str(there)), ("--weights", str(there))])
    if damage is renamed and there.name == "3":
        how = ("--resume", str(there))  # older than the other: that one is the newest
    # A run that takes only the weights would replace these saves, and be refused for it.
    to = saves.parent / "new" if how[0] == "--weights" else saves
    judge_refusal(counts, number, f"{name}: {damage.__name__}, {' '.join(how)}",
                  trials.Outcome(job.command(name, to, STEPS + 2, how), job.folder), str(there))


def other_width(job, number, chance, counts, name, saves):
    how = chance.choice(["--resume", "--weights"])
    command = job.command(name + "-wide", saves.parent / "new", STEPS + 2, (how, str(newest(saves))))
    command[command.index("--data") + 1] = str(job.folder / "x48.safetensors")
    outcome = trials.Outcome(command, job.folder)
    title = f"{name}: {how} of another width"
    judge_refusal(counts, number, title, outcome, str(newest(saves)))
    if outcome.status == 1 and not any(shapes in outcome.text for shapes in ("is [32, 128], the bundle has [48, 128]",
                                                                            "is [128, 32], the bundle has [128, 48]")):
        counts.fault("unnamed", number, title, outcome.text)


def two_jobs(job, number, chance, counts, name, saves):
    """The first owns the folder from its first moment; the second is refused by its name, and the first goes on
    undisturbed."""
    shutil.rmtree(saves)
    first = subprocess.Popen(job.command(name, saves, 1_000_000), cwd=job.folder, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + trials.LIMIT
        while not list(saves.glob("[0-9]*/index.json")) and time.monotonic() < deadline:
            time.sleep(0.005)
        outcome = trials.Outcome(job.command(name, saves, STEPS), job.folder)
        judge_refusal(counts, number, f"{name}: two jobs", outcome, f"{saves}: error: pid {first.pid} on ")
        if first.poll() is not None:
            counts.fault("wrong", number, f"{name}: two jobs", "the first one ended")
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    if half := half_saved(saves):
        counts.fault("wrong", number, f"{name}: two jobs", half)


EACH = [functools.partial(damage_copy, damage=damage) for damage in dict.fromkeys(DAMAGES)] + [other_width, two_jobs]


def begin(folder, arguments, counts):
    job = Job(folder, arguments.bin)

    def trial(number):
        chance = random.Random(f"{arguments.seed}/{number}")
        own = folder / f"t{number}"
        if arguments.each and number < len(EACH):
            name = list(PLANS)[number % len(PLANS)]
            shutil.copytree(job.folder / f"{name}-other", own / "copy")
            EACH[number](job, number, chance, counts, name, own / "copy")
        elif name := kill_and_go_on(job, number, chance, counts, own / "ckpt"):
            shutil.copytree(own / "ckpt", own / "copy")
            then = chance.choices([damage_copy, other_width, two_jobs], [8, 1, 1])[0]
            then(job, number, chance, counts, name, own / "copy")
        if not arguments.keep:
            shutil.rmtree(own, ignore_errors=True)

    return trial


if __name__ == "__main__":
    sys.exit(trials.main("saves", 500, __doc__.splitlines()[0], begin, kinds=len(EACH)))
