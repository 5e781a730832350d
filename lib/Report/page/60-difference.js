// Two reports side by side.
function figuresOf(report) {
  const p = report.prediction || {}, plan = report.plan || {}, figures = [];
  const add = (name, value, text) => figures.push({name, value, text: text || String});
  add("model", report.model ? report.model.name : "");
  add("mesh", (plan.meshes || []).map(mesh => mesh.map(({axis, size}) => axis + " " + size).join(" x ")).join("; "));
  add("schedule", plan.stages > 1 ? plan.schedule : "");
  add("microbatches", plan.microbatches);
  add("recompute", report.recompute ? report.recompute.mode : "");
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

function differenceTable(report, other) {
  const theirs = new Map(figuresOf(other).map(figure => [figure.name, figure]));
  const ours = new Map(figuresOf(report).map(figure => [figure.name, figure]));
  const rows = [...new Set([...ours.keys(), ...theirs.keys()])].map(name => {
    const [one, two] = [ours.get(name), theirs.get(name)], text = (one || two).text;
    const known = [one, two].every(figure => figure && typeof figure.value === "number");
    const show = figure => figure && figure.value !== undefined ? text(figure.value) : "";
    return {name, here: show(one), there: show(two), change: known ? two.value - one.value : undefined,
            share: known && one.value ? (two.value / one.value - 1) * 100 : undefined, text};
  }).filter(row => row.here !== row.there);
  if (!rows.length) return element("p", {}, "No figure differs.");
  const table = element("table", {"aria-label": "Figures that differ"}, element("thead", {}, element("tr", {},
    ...["", "this report", "the other", "difference"].map(name => element("th", {}, name)))),
    element("tbody", {}, ...rows.map(row => element("tr", {}, element("th", {scope: "row"}, row.name),
      element("td", {class: "number"}, row.here), element("td", {class: "number"}, row.there),
      element("td", {class: "number " + (row.change > 0 ? "more" : row.change < 0 ? "less" : "")}, row.change === undefined ? "" :
        (row.change > 0 ? "+" : "") + row.text(row.change) + (row.share === undefined ? "" : " (" + (row.share > 0 ? "+" : "") + row.share.toFixed(1) + " %)"))))));
  return element("div", {class: "scroll"}, table);
}
