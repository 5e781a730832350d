"""limits.py [--ranks 4] [--shares 60,35] PAR-COMPILE MODEL... -- FLAGS...: under a limit of memory that is a share of
what `--auto` takes when it is free, `--auto` finds a plan that fits (the bound on memory of the compiled plan is not
above the limit), or exits 3 and names the limit and the least that a plan needs, which is more, or that the plan with
the least estimate does not fit when it is compiled. Prints a line a model and share, and `all N limits: ...`."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def bytes_of(number, unit):
    return float(number) * UNITS[unit]


def search(command):
    """Exit code, the fullest rank's bytes and the step in ns of the plan, and the message."""
    run = subprocess.run([*command, "--check", "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        return run.returncode, None, None, run.stderr
    report = json.loads(run.stdout)
    return 0, max(role["peak"] for role in report["memory"]["roles"]), report["prediction"]["step_ns"], ""


def fault_of(code, peak, message, limit):
    """Nothing, if the outcome is one of the two that are right."""
    if code == 0:
        return "" if peak <= limit else f"takes {peak} bytes"
    if code == 3 and " is estimated to need " in message and " does not fit when it is compiled" in message:
        return ""
    needs = re.search(r"no plan for \d+ ranks fits ([\d.]+) (\w+) a rank: .* needs ([\d.]+) (\w+)", message)
    if code != 3 or not needs:
        return f"exit {code}: {message.strip()}"
    least = bytes_of(needs.group(3), needs.group(4))
    return "" if least > limit * 0.99 else f"refused, though a plan needs {least:.0f} bytes"


def main():
    sys.argv, flags = sys.argv[:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="4")
    parser.add_argument("--shares", default="60,35")
    parser.add_argument("compile")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    faults = count = 0
    for model in options.models:
        name = pathlib.Path(model).parent.name
        command = [options.compile, model, *flags, "--auto", "-n", options.ranks]
        code, free, step, message = search(command)
        if code:
            raise SystemExit(f"{name}: without a limit: exit {code}\n{message}")
        for share in options.shares.split(","):
            limit = free * int(share) // 100
            code, peak, slower, message = search([*command, "--set", f"target.memory={limit}"])
            fault = fault_of(code, peak, message, limit)
            count += 1
            faults += bool(fault)
            outcome = (f"takes {peak}, {100 * (slower - step) / step:+.1f} % slower" if code == 0 else
                       message.strip().split("\n")[0].split("error: ")[-1])
            print(f"{name} at {share} % of {free} bytes ({limit}): {'FAULT: ' + fault if fault else outcome}",
                  flush=True)
    print(f"all {count} limits: " + (f"{faults} faults" if faults else "each fits or says why not"))
    return bool(faults)


sys.exit(main())
