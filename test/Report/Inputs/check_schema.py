"""Compares the table of docs/report.md with reports: every key of a report is in the table with its type, every key of
the table is in some report, and one that is not marked "?" is in every object that could hold it."""
import json
import re
import sys

TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object"}


def read_table(page):
    """{key: (type, whether it may be left out)}"""
    rows = re.findall(r"^\| `([^`]+)`( \?)? \| (\w+) \|", open(page).read(), re.M)
    return {key: (type, bool(optional)) for key, optional, type in rows}


def parents(key):
    """The object that holds a key: `memory.roles[]` for `memory.roles[].role`."""
    return key.rpartition(".")[0]


def sides(report):
    """The report, and the facts of each plan of a comparison as a report of their own."""
    shared = {key: report[key] for key in ("par_report", "code", "findings")}
    return [{**report, "before": {}, "after": {}} if "before" in report else report,
            *({**shared, **report[side]} for side in ("before", "after") if side in report)]


def walk(value, key, seen, objects):
    if isinstance(value, list):
        for item in value:
            walk(item, key + "[]", seen, objects)
        return
    if key:
        seen.setdefault(key, set()).add(TYPES[type(value)])
    if isinstance(value, dict):
        objects.append((key, set(value)))
        for name, item in value.items():
            walk(item, f"{key}.{name}" if key else name, seen, objects)


def wrong(table, reports):
    seen, objects = {}, []
    for report in reports:
        for side in sides(report):
            walk(side, "", seen, objects)
    if not any(report.get("kernels", {}).get("assembled") for report in reports):  # no ptxas here
        table = {key: row for key, row in table.items() if not re.match(r"kernels.list\[\].(resources|occupancy)", key)}
    for key, types in seen.items():
        said = table.get(key, ("no row", False))[0]
        if key not in table and types == {"object"} and any(other.startswith(key + ".") for other in table):
            continue  # always there, and its keys have rows
        for found in types:
            if found != said and not (found == "integer" and said == "number"):
                yield f"{key} is {found} in a report, the page says {said}"
    for key, (type, optional) in table.items():
        if key not in seen:
            yield f"{key} is on the page and in no report"
        name = key.rpartition(".")[2].split("[")[0]
        for at, names in objects:
            if at == parents(key) and name not in names and not optional:
                yield f"{key} is left out of a report"


def main():
    table = read_table(sys.argv[1])
    faults = list(wrong(table, [json.load(open(path)) for path in sys.argv[2:]]))
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(table)} keys, {len(faults)} faults")
    sys.exit(bool(faults))


main()
