"""The zoo's table: rows of real_models.py as Markdown, and a table that stands in a page as rows again."""
import json
import statistics

from zoo import RECIPES

COLUMNS = (("parameters", "{:,}"), ("export_s", "{:.0f}"), ("compile_s", "{:.1f}"), ("loss", "{:.6f}"),
           ("loss_apart", "{:.0e}"), ("norm", "{:.5g}"), ("norm_apart", "{:.0e}"), ("dp2", "{:.0e}"), ("pp2", "{:.0e}"),
           ("tp2", "{:.0e}"), ("nudged", "{:.0e}"), ("step_s", "{:.2f}"), ("torch_step_s", "{:.2f}"),
           ("ratio", "{:.2f}"),
           ("peak_mib", "{:.0f}"), ("torch_peak_mib", "{:.0f}"))
WHOLE, SAME, NONE = "whole", "the same", "-"


def cell(row, key, form):
    value = row.get(key)
    return NONE if value is None else value.split(":")[0][:8] if isinstance(value, str) else form.format(value)


def line_of(row):
    said = row.get("refused") or row.get("stopped") or "; ".join(row["failed"].values())
    if row.get("refused"):
        said = "refused, " + said
    plans_of = NONE if "plans_cut" not in row else row["plans_cut"] or SAME
    cells = [row["name"], row["cut"] or WHOLE, plans_of, *(cell(row, key, form) for key, form in COLUMNS)]
    return "| " + " | ".join([*cells, said.replace("\n", " ")[:300]]) + " |"


def head():
    titles = ["name", "depth, head", "under plans", *(key.replace("_", " ") for key, _ in COLUMNS), "said"]
    return "| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles)


def read_cell(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def row_of(line):
    """A row of line_of's again; numbers as they are printed, what fails by the column that it names first."""
    name, cut, plans_of, *cells, said = (part.strip() for part in line.strip().strip("|").split("|"))
    row = {"name": name, "cut": "" if cut == WHOLE else cut, "failed": {}}
    if plans_of != NONE:
        row["plans_cut"] = "" if plans_of == SAME else plans_of
    row.update({key: read_cell(text) for (key, _), text in zip(COLUMNS, cells) if text != NONE})
    if "parameters" in row:
        row["parameters"] = int(row["parameters"])
    if said.startswith("refused, "):
        row["refused"] = said.removeprefix("refused, ")
    elif said:
        row["failed"] = {"ratio" if part.startswith("a step takes") else part.split()[0].rstrip(":"): part
                         for part in said.split("; ")}
    return row


def read(path):
    """Results written by --json; for a page, the lines whose first cell names an architecture."""
    lines = path.read_text().splitlines()
    if path.suffix != ".md":
        return [json.loads(line) for line in lines]
    return [row_of(line) for line in lines if line.startswith("| ") and line.split("|")[1].strip() in RECIPES]


def print_rows(paths):
    """One table of the files; a later row of an architecture replaces what it measured again."""
    rows = {}
    for row in (row for path in paths for row in read(path)):
        known = rows.setdefault(row["name"], {"failed": {}})
        for outcome in ("refused", "stopped"):
            known.pop(outcome, None)
        failed = {what: said for what, said in known["failed"].items() if what != "stopped" and what not in row}
        known.update(row, failed={**failed, **row["failed"]})
    rows = [rows[name] for name in RECIPES if name in rows]
    print(head(), *map(line_of, rows), sep="\n")
    summarise(rows)
    for title, key in (("Not under the plans", "dp2"), ("Not timed beside PyTorch", "ratio")):
        print(f"{title}: {', '.join(row['name'] for row in rows if key not in row)}.")
    known = {row["name"] for row in rows}
    print(f"Not run: {', '.join(name for name in RECIPES if name not in known)}.")
    return rows


def summarise(rows):
    refused = [row["name"] for row in rows if "refused" in row]
    failed = [row["name"] for row in rows if row["failed"]]
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    print(f"\n{len(rows)} architectures: {len(rows) - len(refused) - len(failed)} hold, {len(refused)} refused "
          f"({', '.join(refused)}), {len(failed)} failed ({', '.join(failed)})")
    if ratios:
        slow = [f"{row['name']} {row['ratio']:.2f}" for row in rows if row.get("ratio", 0) > 1]
        print(f"a step's CPU time over PyTorch eager's: median {statistics.median(ratios):.2f} of {len(ratios)}, "
              f"most {max(ratios):.2f}; above 1: {', '.join(slow)}")
