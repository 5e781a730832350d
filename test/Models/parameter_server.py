#!/usr/bin/env python3
"""A recommendation model whose tables lie on ranks of their own, held against one rank, a line a claim.

    parameter_server.py --bin build/bin --models FOLDER [--optimizer adamw] [--steps 10]

The model dlrm of FOLDER under `meshes: [{ps: 2}, {dp: 2}]`: two ranks look up, add up and update rows of the tables,
two train the dense layers; gradients dense and sparse, of 1, 2 and 4 microbatches, each optimizer. Bounds are those of
distributed.py. About a minute on two cores. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import pathlib
import shutil
import sys
import tempfile

from distributed import Pair, Plan
from models import find
from runs import Claims, Runs

TABLES = "tables.*.weight"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--optimizer", action="append", choices=["sgd", "momentum", "adamw"], help="default: all")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    claims = Claims()
    (model,) = find(options.models, ["dlrm"], ["plain"])
    with tempfile.TemporaryDirectory(prefix="par-servers-") as work:
        runs = Runs(options.bin, work)
        for optimizer in options.optimizer or ("sgd", "momentum", "adamw"):
            for kind, train in (("dense", {}), ("sparse", {"groups": f'{{"{TABLES}": {{sparse: true}}}}'})):
                for count in (1, 2, 4):
                    title = f"dlrm {kind} {optimizer} m{count}"
                    with claims.watch(title):
                        plan = Plan([{"ps": 2}, {"dp": 2}], count, {TABLES: {0: "ps"}}, train=train,
                                    pipeline="{cuts: [bottom]}")
                        pair = Pair(runs, model, plan, optimizer, options.steps)
                        runs.run(runs.binaries / "par-verify", runs.compile(model.file, pair.plan))
                        loss, share, worst = pair.compare()
                        claims.hold(f"{title}: losses to one rank's", loss, 2e-5)
                        claims.hold(f"{title}: weights, worst {worst}", share, 1, unit="of the bound")
    print(f"{claims.count} claims, {len(claims.failures)} failed")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()
