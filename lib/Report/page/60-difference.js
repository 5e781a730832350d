// Two reports side by side, or a prediction and a measured step. Of figures with `text` less is better.
function figuresOf(report) {
  const p = report.prediction || {}, plan = report.plan || {}, figures = [];
  const add = (name, value, text) => figures.push({name, value, text});
  add("model", report.model ? report.model.name : "");
  add("mesh", (plan.meshes || []).map(mesh => mesh.map(({axis, size}) => axis + " " + size).join(" x ")).join("; "));
  add("schedule", plan.stages > 1 ? plan.schedule : "");
  add("microbatches", plan.microbatches);
  for (const {key, value, origin} of report.keys || [])
    if (origin !== "auto" && !/^(mesh|batch\.microbatch)/.test(key)) add(key, value);
  add("predicted step", p.step_ns, timeText);
  for (const [key, name] of [["compute", "compute"], ["bubble", "idle"], ["communication", "exposed communication"],
    ["core", "waiting for a core"]])
    add(name, p[key + "_permille"] === undefined ? undefined : p.step_ns * p[key + "_permille"] / 1000, timeText);
  if (report.memory && report.memory.roles.length)
    add("most memory of a rank", Math.max(...report.memory.roles.map(role => role.peak)), bytesText);
  for (const role of report.memory ? report.memory.roles : [])
    for (const key of [...purposes, "peak"]) add(roleName(role.role) + ": " + key, role[key], bytesText);
  const sums = new Map();
  for (const row of report.collectives || []) {
    const key = roleName(row.role) + ": " + row.axis + " " + row.kind;
    sums.set(key, (sums.get(key) || 0) + row.bytes * row.count);
  }
  for (const [name, bytes] of sums) add(name + ", a step", bytes, bytesText);
  return figures;
}

// The mean over ranks of where a step's time goes; of a trace, whose rows have it, or of a report.
function timesOf(rows, end) {
  const ranks = rows.reduce((sum, row) => sum + row.ranks.length, 0);
  const mean = of => rows.reduce((sum, row) => sum + (of(row) || 0) * row.ranks.length, 0) / Math.max(1, ranks);
  return [["step", end], ["compute of a rank", mean(row => row.compute)],
    ["exposed communication of a rank", mean(row => row.communication)],
    ["idle time of a rank", mean(row => row.idle + (row.core || 0))]].map(([name, value]) => ({name, value, text: timeText}));
}

function tableOfDifference(ours, theirs, heads) {
  const [left, right] = [ours, theirs].map(figures => new Map(figures.map(figure => [figure.name, figure])));
  const rows = [...new Set([...left.keys(), ...right.keys()])].map(name => {
    const [one, two] = [left.get(name), right.get(name)], cost = (one || two).text, text = cost || String;
    const known = [one, two].every(figure => figure && typeof figure.value === "number");
    const show = figure => figure && figure.value !== undefined ? text(figure.value) : "";
    const change = known ? two.value - one.value : cost && two && !one ? two.value : cost && one && !two ? -one.value : undefined;
    return {name, here: show(one), there: show(two), change, cost, text,
            share: known && one.value ? (two.value / one.value - 1) * 100 : undefined};
  }).filter(row => row.here !== row.there).sort((one, other) => Boolean(one.cost) - Boolean(other.cost)); // keys first
  if (!rows.length) return element("p", {}, "No figure differs.");
  const kindOf = row => "number" + (!row.cost ? "" : row.change > 0 ? " more" : row.change < 0 ? " less" : "");
  const changeOf = row => row.change === undefined ? "" : (row.change > 0 ? "+" : "") + row.text(row.change) +
    (row.share === undefined ? "" : row.share > 900 ? " (" + digits(1 + row.share / 100) + " times)"
      : " (" + (row.share > 0 ? "+" : "") + row.share.toFixed(1) + " %)");
  const table = element("table", {"aria-label": "Figures that differ"}, element("thead", {}, element("tr", {},
    ...heads.map((name, at) => element("th", at ? {class: "number"} : {}, name)))),
    element("tbody", {}, ...rows.map(row => element("tr", {}, element("th", {scope: "row"}, row.name),
      element("td", {class: "number"}, row.here), element("td", {class: "number"}, row.there),
      element("td", {class: kindOf(row)}, changeOf(row))))));
  return element("div", {class: "scroll"}, table);
}

const differenceTable = (report, other) =>
  tableOfDifference(figuresOf(report), figuresOf(other), ["", "this report", "the other", "difference"]);

function measuredTable(report, trace) {
  const {rows, end} = rowsOf(report);
  return tableOfDifference(timesOf(rows, end), timesOf(trace.rows, trace.end), ["", "predicted", "measured", "difference"]);
}
