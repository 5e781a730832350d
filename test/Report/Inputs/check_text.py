"""Makes the lines of the summary, of --explain and of --emit=kernels from a report, and looks for each among the lines
of texts that par-compile printed. Prints how many lines of each kind there were."""
import collections
import json
import sys


def human(count):
    units, unit = ["B", "KiB", "MiB", "GiB", "TiB"], 0
    while count >= 1000 and unit + 1 < len(units):
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} {units[unit]}" if unit == 0 or count >= 99.95 else f"{count:.1f} {units[unit]}"


def stage(role):
    numbers = role.replace("s", "")
    return ("stages " if "+" in numbers or "." in numbers else "stage ") + numbers


def model(report):
    facts = report["model"]
    millions = facts["elements"] / 1e6
    yield (f"model   {facts['name']}: {facts['nodes']} nodes, {facts['parameters']} parameters ("
           + (f"{millions:.2f} M" if millions < 10 else f"{millions:.1f} M"))


def plan(report):
    facts = report["plan"]
    axes = " x ".join(f"{axis['axis']} {axis['size']}" for axis in facts["meshes"][0])
    yield f"plan    {facts['ranks']} rank" + ("s" if facts["ranks"] > 1 else "") + (f": {axes}" if axes else "")


def stages(report):
    shares = [f"{i}: {', '.join(each['modules'])} ({each['percent']:.0f} %" + (" of the work)" if i == 0 else ")")
              for i, each in enumerate(report["stages"])]
    if shares:
        yield "stages  " + "   ".join(shares)


def memory(report):
    limit = report["memory"].get("limit")
    for role in report["memory"]["roles"]:
        name = f"  {stage(role['role'])} ({role['ranks']} rank" + ("s)" if role["ranks"] > 1 else ")")
        sizes = "".join(human(role[key]).rjust(11) for key in ("params", "grads", "states", "saved", "buffers", "peak"))
        yield name.ljust(19) + sizes
        yield "   none" if limit is None else "   " + human(limit)


def saved(report):
    for role in report["saved"]:
        yield f"stage {role['role'].lstrip('s')} saves {role['bytes']} bytes of a microbatch in {role['slots']} slot"
        for each in role["values"]:
            layers = f"layers {each['layers']}: " if "layers" in each else ""
            yield f"{each['count']:6} x {each['bytes']:12}  {each['type']:24}{layers}{each.get('place', '')}"


def collectives(report):
    """The lines of the table: of each axis and kind the role that has most."""
    sorts = collections.defaultdict(lambda: collections.defaultdict(list))
    for each in report["collectives"]:
        sorts[each["axis"], each["kind"]][each["role"]].append(each)
    width = max((len(kind) + 2 for _, kind in sorts), default=0)
    for (axis, kind), roles in sorts.items():
        parts = max(roles.values(), key=lambda parts: sum(part["bytes"] * part["count"] for part in parts))
        counts = collections.Counter()
        for part in parts:
            counts[part["bytes"]] += part["count"]
        sizes = [f"{count} x {human(size)}" for size, count in sorted(counts.items(), reverse=True)]
        more = f" and {len(sizes) - 3} more sizes" if len(sizes) > 3 else ""
        yield f"  {axis:3} {kind.ljust(width)}" + ", ".join(sizes[:3]) + more
        rules = {part["place"]: part["rule"]["text"] for part in parts if "rule" in part}
        if rules:
            yield f"forced by {next(iter(rules.values()))}"


def reasons(report):
    for each in report["collectives"]:
        yield f"{each['kind']} {each['type']} over {{{each['axis']}}}, {each['count']} a step, {human(each['bytes'])}"
        if "reason" in each:
            yield f"  why    {each['reason']}"


def kernels(report):
    for kernel in report["kernels"]["list"]:
        resources = "    ?     ?      ?         ?"
        if "resources" in kernel:
            taken = kernel["resources"]
            resources = (f"{taken['registers']:5} {taken['spill_bytes']:5} {taken['shared_bytes']:6} "
                         f"{kernel['occupancy']:7} %")
        yield (f"{kernel['gpu']:7} {kernel['symbol']:22}{kernel['blocks']:8} {kernel['threads']:7} {resources} "
               f"{kernel['bytes_per_element']:10.1f} {kernel['wide_percent']:11} % {kernel['launches']:8}  "
               f"@{kernel['kernel']}")


def predicted(report):
    parts = ("compute", "bubble", "communication")
    percent = {part: (report["prediction"][part + "_permille"] + 5) // 10 for part in parts}
    yield f"compute {percent['compute']} %, bubble {percent['bubble']} %"
    yield f"exposed communication {percent['communication']} %"
    bubble = report["prediction"].get("expected_bubble")
    if bubble and bubble["closed_form"]:
        yield f"({bubble['schedule']}, m = {bubble['microbatches']}: closed form {bubble['percent']:.1f} %)"


def proof(report):
    yield f"on {report['proof']['ranks']} ranks: {report['proof']['communications']} communications matched"


def main():
    report = json.load(open(sys.argv[1]))
    text = "".join(open(path).read() for path in sys.argv[2:])
    missing = 0
    for make in (model, plan, stages, memory, saved, collectives, reasons, kernels, predicted, proof):
        lines = list(make(report))
        for line in lines:
            if line not in text:
                missing += 1
                print(f"the text lacks: {line}")
        print(f"{make.__name__}: {len(lines)}")
    print(f"{missing} missing")
    sys.exit(bool(missing))


main()
