#!/usr/bin/env python3
"""Asynchronous schedules against one rank whose gradients are taken at stale weights, a line a claim.

    asynchronous.py --bin build/bin MODEL DATA [--batch 8] [--steps 48] [--stages 2,4] [--dim seq=16] [--rate 0.05]
                    [--train '{loss: mse}']

pipedream and pipedream-2bw are defined on one device: the gradient of batch k is taken at stage s's parameters as they
were d_s updates before the newest, but never before the last flush, and it updates the newest ones. This script does
that itself, with a bundle of one rank that makes one step of sgd with lr 1 (the difference of weights is then the
gradient), and weights that it mixes for every batch. Masks of dropout are those of the step without staleness, and
moving statistics those after the batch before. Compared with that:
  losses  of every batch, within 1e-5, relative above 1: both compute in float32, and add in other orders (batch norms
          amplify the differences: see `hold`); a model in float64 within 1e-9
  proof   par-verify accepts the bundle
  resumed a job that is saved and goes on at a flush gives the bits of one that was not interrupted
  moving  statistics (of batch norms) after the last batch are those of that rank, within the same bound
  dp2     the same stages, each with two replicas, within 1e-5 too
  slots   the older versions that a rank keeps are as many as the schedule says: p-1-s, with vertical sync p-1, of 2bw
          one
Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import pathlib
import shutil
import tempfile

from runs import FLOATS, Claims, Failed, Runs, largest, nudged, read_safetensors, types_of, write_safetensors

BOUND, DOUBLE_BOUND, FLUSH, NUDGES = 1e-5, 1e-9, 8, 3


def plan(args, mesh, schedule=None, rate=0.0, microbatches=1, more=""):
    dims = ", ".join(dim.replace("=", ": ") for dim in args.dim)
    pipeline = f"pipeline: {{schedule: {schedule}, flush_every: {FLUSH}{more}}}\n" if schedule else ""
    return (f"mesh: {{{mesh}}}\ndims: {{{dims}}}\nbatch: {{size: {args.batch}, microbatches: {microbatches}}}\n"
            f"train: {{optimizer: {{kind: sgd, lr: {rate}}}{args.train}}}\n{pipeline}")


class Save:
    """A save of one rank with the given arrays, in the first format, which has no checksums."""

    def __init__(self, like):
        self.index = json.loads((like / "index.json").read_text())
        self.index["par_checkpoint"] = [1, 0]
        for key in ("checksum", "run", "serial"):
            del self.index[key]
        self.types = types_of(like / "rank0.safetensors")

    def write(self, folder, step, rows, arrays):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        file = folder / "rank0.safetensors"
        write_safetensors(file, arrays, self.types)
        self.index |= {"step": step, "rows": rows, "files": {file.name: file.stat().st_size}}
        (folder / "index.json").write_text(json.dumps(self.index))

    @staticmethod
    def read(folder):
        return read_safetensors(folder / "rank0.safetensors", FLOATS)


def stages_of(bundle):
    """tensor -> stage of the rank that owns it"""
    manifest = json.loads((bundle / "manifest.json").read_text())
    layouts = manifest["layouts"]
    return {tensor["name"]: manifest["ranks"][layouts[tensor["layout"]]["parts"][0]["ranks"][0]]["role"]
            for tensor in manifest["tensors"] if tensor["kind"] == "parameter"}


class Delayed:
    """One rank that takes gradients at stale parameters: those of stage s by s's staleness, in updates. Its steps are
    jobs of one step each that resume from a save that this script writes: with those parameters, the moving statistics
    after the job before, and the number of steps before."""

    def __init__(self, runs, args, start):
        self.runs, self.args = runs, args
        self.initial, self.save = Save.read(start), Save(start)
        self.rows = min(shape[0] for shape, _ in read_safetensors(args.data, (*FLOATS, "I64")).values())
        manifest = json.loads((self.bundle(1) / "manifest.json").read_text())
        self.kinds = {tensor["name"]: tensor["kind"] for tensor in manifest["tensors"]}

    def bundle(self, microbatches):
        """Whose batch norms see so many groups of the batch."""
        return self.runs.compile(self.args.model, plan(self.args, "", rate=1.0, microbatches=microbatches))

    def step(self, k, arrays, microbatches):
        """The loss of batch k, and what the step leaves."""
        before, after = self.runs.work / "reference" / str(k + 1), self.runs.work / "after"
        shutil.rmtree(after, ignore_errors=True)
        self.save.write(before, k + 1, self.rows + k * self.args.batch, arrays) # no save is of no rows: a round more
        metrics, _ = self.runs.train(self.bundle(microbatches), self.args.data, k + 2, "--resume", before, "--save",
                                     after)
        return metrics[0]["loss"], Save.read(after / str(k + 2))

    def next(self, name, k, newest, mixed, after):
        """Counters count steps, parameters change by what the step took off, and all else is what the step left."""
        shape, numbers = newest
        if self.kinds[name] == "counter":
            return shape, (k + 1.0,)
        if self.kinds[name] != "parameter":
            return after
        return shape, tuple(w - self.args.rate * (x - y) for w, x, y in zip(numbers, mixed[1], after[1]))

    def losses(self, stages, behind, steps, microbatches, seed=None):
        """Losses of `steps` batches, and the moving statistics after the last one; with a seed, from weights with other
        last bits."""
        initial = self.initial if seed is None else nudged(self.initial, seed)
        versions, losses = [{name: (shape, (0.0,)) if self.kinds[name] == "counter" else (shape, numbers)
                             for name, (shape, numbers) in initial.items()}], []
        for k in range(steps):
            if k % FLUSH == 0:
                versions = versions[-1:]
            newest = len(versions) - 1
            late = {name: behind[stages.get(name, 0)] if self.kinds[name] == "parameter" else 0 for name in initial}
            mixed = {name: versions[max(0, newest - late[name])][name] for name in initial}
            loss, after = self.step(k, mixed, microbatches)
            losses.append(loss)
            versions.append({name: self.next(name, k, versions[-1][name], mixed[name], after[name])
                             for name in initial})
        return losses, {name: numbers for name, (_, numbers) in versions[-1].items() if self.kinds[name] == "buffer"}


def older_versions(bundle):
    """How many slots the buffers of older versions have on each role, 0 where there are none"""
    roles = sorted(bundle.glob("role-*.json"), key=lambda path: int(path.stem[5:]))
    return [max((len(buffer["at"]) for buffer in json.loads(role.read_text())["buffers"]
                 if buffer.get("index") == "ver" and buffer["kind"] == "temp"), default=0) for role in roles]


class Case:
    def __init__(self, runs, claims, args, delayed):
        self.runs, self.claims, self.args, self.delayed = runs, claims, args, delayed
        self.bound = DOUBLE_BOUND if "F64" in types_of(delayed.initial_file).values() else BOUND

    def losses(self, bundle, steps, *more):
        metrics, weights = self.runs.train(bundle, self.args.data, steps, *more)
        return [line["loss"] for line in metrics], read_safetensors(weights, FLOATS)

    def check(self, title, stages, schedule, behind, microbatches=1, more=""):
        args, start = self.args, ["--weights", self.delayed.initial_file]
        bundle = self.runs.compile(args.model, plan(args, f"pp: {stages}", schedule, args.rate, microbatches, more))
        self.runs.run(self.runs.binaries / "par-verify", bundle)
        self.claims.equal(f"{title}: older versions a rank keeps", older_versions(bundle), behind)
        found, weights = self.losses(bundle, args.steps, *start)
        oracle = lambda made, *seed: self.delayed.losses(stages_of(made), behind, args.steps, microbatches, *seed)
        wanted = oracle(bundle)
        self.hold(title, bundle, (found, weights), wanted, oracle)
        synchronous, _ = self.delayed.losses(stages_of(bundle), [0] * stages, FLUSH, microbatches)
        self.claims.hold(f"{title}: without delay they would differ", self.apart(found[:FLUSH], synchronous),
                         100 * self.bound, least=True)
        saves = self.runs.work / f"saves-{title.replace(' ', '-')}"
        half = args.steps // 2 // FLUSH * FLUSH
        self.losses(bundle, half, *start, "--save", saves)
        again, resumed = self.losses(bundle, args.steps, "--resume", saves)
        self.claims.equal(f"{title}: resumed, losses and weights of other bits",
                          sum(a != b for a, b in zip(again, found[half:]))
                          + sum(resumed[n] != weights[n] for n in weights), 0)
        both = self.runs.compile(args.model,
                                 plan(args, f"pp: {stages}, dp: 2", schedule, args.rate, microbatches, more))
        if stages_of(both) != stages_of(bundle): # cut elsewhere, so that other parameters are behind
            wanted = oracle(both)
        self.hold(f"{title}: dp 2", both, self.losses(both, args.steps, *start), wanted, oracle)

    def hold(self, title, bundle, found, wanted, oracle):
        """Losses, and the moving statistics at the end. Batch norms amplify rounding, at times to another path: if a
        value misses the bound, job and one rank are run with other last bits of the initial weights, and the nearest
        two count. A wrong result is far from all."""
        pair = self.distances(found, wanted)
        if wanted[1] and self.bound == BOUND and not max(pair) <= BOUND:
            title += ", nudged"
            jobs, ranks = [found], [wanted]
            for seed in range(NUDGES):
                jobs.append(self.nudged(bundle, seed))
                ranks.append(oracle(bundle, seed))
            pair = min((self.distances(job, rank) for job in jobs for rank in ranks), key=max)
        for what, distance in zip((f"losses of {self.args.steps} steps", "moving statistics"), pair):
            self.claims.hold(f"{title}: {what}", distance, self.bound)

    def distances(self, found, wanted):
        (losses, weights), (expected, left) = found, wanted
        moved = [largest(self.apart(weights[name][1], numbers) for name, numbers in left.items())] if left else []
        return [self.apart(losses, expected), *moved]

    def nudged(self, bundle, seed):
        weights, initial = self.runs.work / "nudged.safetensors", self.delayed.initial_file
        write_safetensors(weights, nudged(read_safetensors(initial, FLOATS), seed), types_of(initial))
        return self.losses(bundle, self.args.steps, "--weights", weights)

    @staticmethod
    def apart(found, wanted):
        if len(found) != len(wanted):
            return float("nan")
        return largest(abs(a - b) / max(1, abs(b)) for a, b in zip(found, wanted))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--stages", type=lambda text: [int(number) for number in text.split(",")], default=[2, 4])
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--train", default="", help="more keys of train, as ', loss: mse'")
    args = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(args.bin, folder)
        start = runs.compile(args.model, plan(args, "", rate=0.0))
        initial_file, saves = pathlib.Path(folder) / "initial.safetensors", pathlib.Path(folder) / "start"
        runs.run(*runs.command(start, args.data, 1, "--export", initial_file, "--save", saves))
        delayed = Delayed(runs, args, saves / "1")
        delayed.initial_file = initial_file
        case = Case(runs, claims, args, delayed)
        for p in args.stages:
            with claims.watch(f"pipedream pp{p}"):
                try:
                    case.check(f"pipedream pp{p}", p, "pipedream", [p - 1 - s for s in range(p)])
                except Failed as failure: # its page says so
                    if "(tied weights) must have the same staleness on each" not in str(failure):
                        raise
                    print(f"pipedream pp{p}: refused, the model has tied weights", flush=True)
            with claims.watch(f"pipedream pp{p} vertical sync"):
                case.check(f"pipedream pp{p} vertical sync", p, "pipedream", [p - 1] * p, more=", vertical_sync: true")
            with claims.watch(f"pipedream-2bw pp{p}"):
                case.check(f"pipedream-2bw pp{p}", p, "pipedream-2bw", [1] * p, microbatches=p)
    print(f"{claims.count} claims, {len(claims.failures)} failed")
    raise SystemExit(bool(claims.failures))


if __name__ == "__main__":
    main()
