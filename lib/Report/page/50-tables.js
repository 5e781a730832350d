// Sections of tables.
const flopsText = rate => rate >= 1e12 ? (rate / 1e12).toFixed(0) + " TFLOP/s" : (rate / 1e9).toFixed(0) + " GFLOP/s";

function summaryOf(report) {
  const cards = [], card = (value, name) => cards.push(element("div", {class: "card"}, element("b", {}, value), element("span", {}, name)));
  const p = report.prediction;
  if (p) {
    card(timeText(p.step_ns), "predicted step");
    card(percentText(p.compute_permille), "compute");
    card(percentText(p.bubble_permille), "idle");
    card(percentText(p.communication_permille), "exposed communication");
    const u = report.utilization;
    if (u) card(u.percent.toFixed(1) + " %", "MFU: of " + flopsText(u.peak_per_second) + " a rank, " + u.hardware + " in " + u.type);
    if (p.core_permille) card(percentText(p.core_permille), "waiting for one of " + p.cores + " cores");
  }
  if (report.memory && report.memory.roles.length) {
    const most = report.memory.roles.reduce((one, other) => other.peak > one.peak ? other : one);
    card(bytesText(most.peak), "most memory of a rank" + (report.memory.limit ? ", of " + bytesText(report.memory.limit) : ""));
  }
  if (report.proof) card("proved", report.proof.communications ? groupedText(report.proof.communications) + " communications match" : "every buffer live when read");
  return element("div", {class: "cards"}, ...cards);
}

// The axes of a communicator as the table names them: "dp.data+tp" is dp+tp, "stages" and "s0>s1" the axis of stages.
function axesOf(communicator, report) {
  const over = (report.keys || []).find(key => key.key === "pipeline.over");
  if (communicator === "stages" || communicator.includes(">")) return over ? over.value : "";
  return [...new Set(communicator.split("+").map(axis => axis.split(".")[0]))].join("+");
}

// ns of communication, and those beside no compute, by role, axis, kind and place. Rows of the table that have these in
// common share the time.
function communicationTimes(report) {
  const times = new Map(), sharing = new Map(), rowsOfRole = new Map();
  const keyOf = row => [row.role, row.axis, row.kind.split(/[ ,]/)[0], row.place || ""].join("|");
  for (const row of report.collectives || []) sharing.set(keyOf(row), (sharing.get(keyOf(row)) || 0) + 1);
  for (const row of report.timeline ? report.timeline.rows : []) {
    rowsOfRole.set(row.role, (rowsOfRole.get(row.role) || 0) + 1);
    for (const [kind, , , duration, , , exposed, label] of row.spans) {
      if (report.timeline.kinds[kind] !== "communication" || report.timeline.labels[label].startsWith("all of ")) continue;
      const [head, place] = report.timeline.labels[label].split(" · "), [word, communicator] = head.split(" ");
      const key = keyOf({role: row.role, axis: axesOf(communicator || "", report), kind: word, place});
      const sum = times.get(key) || {duration: 0, exposed: 0};
      times.set(key, {duration: sum.duration + duration, exposed: sum.exposed + exposed});
    }
  }
  return row => {
    const found = times.get(keyOf(row)), rows = rowsOfRole.get(row.role) || 1; // of a role all rows count the same
    return found ? {duration: found.duration / rows, exposed: found.exposed / rows, together: sharing.get(keyOf(row)) > 1} : {};
  };
}

function communicationTable(report) {
  const all = report.collectives || [], times = communicationTimes(report);
  if (!all.length) return element("p", {}, "The ranks do not communicate.");
  const reason = row => row.rule ? row.rule.text + " (" + row.rule.origin + ")" : row.reason || "";
  // The dearest first: by what is exposed of it, among hidden ones by their bytes in a step.
  const rows = [...all].sort((one, other) => (times(other).exposed || 0) - (times(one).exposed || 0) ||
    other.bytes * other.count - one.bytes * one.count);
  return tableOf([
    {name: "role", of: row => roleName(row.role)}, {name: "axis", of: row => row.axis}, {name: "kind", of: row => row.kind},
    {name: "type", of: row => row.type}, {name: "bytes", of: row => row.bytes, text: bytesText, number: true},
    {name: "count", of: row => row.count, number: true},
    {name: "exposed", of: row => times(row).exposed, text: ns => ns === undefined ? "" : timeText(ns), number: true},
    {name: "of", of: row => times(row).duration, number: true,
      text: (ns, row) => ns === undefined ? "" : timeText(ns) + (times(row).together ? " together" : "")},
    {name: "node", of: row => row.place || ""}, {name: "forced by", of: reason}, {name: "beside", of: row => row.overlap || ""},
  ], rows, "Communication");
}

// Why a search has taken this plan, and the plans around it.
function searchParts(search) {
  const slower = {name: "slower", of: row => row.slower_percent, number: true,
    text: (value, row) => "second" in row || "plan" in row ? value.toFixed(1) + " %" : ""};
  const kind = {name: "", of: row => "second" in row || "plan" in row ? (row.compiled ? "compiled" : "estimated") : ""};
  const parts = [element("h3", {}, "Why this plan"), element("p", {}, "The best of " + groupedText(search.candidates) +
    " plans for " + groupedText(search.ranks) + " ranks; its step is " + search.gap_percent.toFixed(1) + " % above " +
    timeText(search.bound_ns) + ", which none of them is below by the profiles of the layers.")];
  if (search.reasons.length) parts.push(tableOf([
    {name: "key", of: row => row.key}, {name: "value", of: row => row.value},
    {name: "second", of: row => (row.second || "no other is possible or fits") + (row.others ? " (with " + row.others + ")" : "")},
    slower, kind], search.reasons, "Reasons"));
  if (search.alternatives.length) parts.push(element("h3", {}, "Plans around it"), tableOf([
    {name: "plan", of: row => row.plan + (row.recomputes ? ", with recomputation" : "")},
    {name: "step", of: row => row.step_ns, text: timeText, number: true}, slower,
    {name: "peak", of: row => row.peak, text: bytesText, number: true},
    kind], search.alternatives, "Alternatives"),
    element("p", {class: "note"}, "Slower compares figures of one kind: both compiled, or both estimated."));
  return parts;
}

function planBody(report) {
  const plan = report.plan, parts = [];
  if (plan) parts.push(pairsOf([
    ["ranks", plan.ranks], ["mesh", plan.meshes.map(mesh => mesh.map(({axis, size}) => axis + " " + size).join(" x ") || "one rank").join("; ")],
    ["stages", plan.stages + (plan.stages > 1 ? ", " + plan.schedule : "")],
    ["microbatches", plan.microbatches + " of " + [plan.microbatch_size, ...plan.sample_dims].join(" x ")],
    ["optimizer", plan.optimizers.join(", ")], ["compute", plan.compute], ["states", plan.states],
    ["gradients", plan.accumulate + " summed over microbatches, " + plan.reduce + " over ranks"],
    ["recompute", report.recompute ? report.recompute.mode : ""], ["seed", plan.seed]]));
  if (report.search) parts.push(...searchParts(report.search));
  const said = (report.keys || []).filter(key => key.origin !== "default");
  if (said.length) parts.push(element("h3", {}, "Keys that were said or derived"), tableOf([
    {name: "key", of: row => row.key}, {name: "value", of: row => row.value},
    {name: "from", of: row => row.origin === "auto" ? "derived" : row.origin},
    ...(said.some(key => key.reason) ? [{name: "why", of: row => row.reason || ""}] : [])], said, "Keys"));
  if (report.stages && report.stages.length) parts.push(element("h3", {}, "Stages"), tableOf([
    {name: "stage", of: row => report.stages.indexOf(row), number: true}, {name: "modules", of: row => row.modules.join(", ")},
    {name: "share of the work", of: row => row.percent, text: value => value.toFixed(1) + " %", number: true}], report.stages, "Stages"));
  if (report.matches && report.matches.length) parts.push(element("h3", {}, "What its patterns match"), tableOf([
    {name: "from", of: row => row.origin}, {name: "pattern", of: row => row.pattern},
    {name: "matches", of: row => row.kinds.map(kind => kind.names.length + " " + kind.kind + (kind.names.length > 1 ? "s" : "")).join(", ") || "nothing"},
    {name: "first", of: row => row.kinds.length ? row.kinds[0].names[0] : ""}], report.matches, "Patterns"));
  return parts;
}

function sourcesBody(report) {
  const p = report.prediction;
  if (!p) return [element("p", {}, "Nothing was predicted.")];
  return [pairsOf([["a measured row", percentText(p.measured_permille)], ["corrected by rows near", percentText(p.table_permille)],
    ["peak rates and links", percentText(p.peak_permille)]]),
    element("p", {class: "note"}, "Shares of the instructions' time. par-run --calibrate measures this machine into a hardware file.")];
}

function proofBody(report) {
  const parts = [], proof = report.proof;
  if (proof) parts.push(pairsOf([["programs", proof.programs], ["ranks", proof.ranks],
    ["communications matched", proof.communications], ["groups among them", proof.groups],
    ["longest chain", groupedText(proof.longest_chain) + " communications, each of which waits for the one before"]]),
    element("p", {}, "No deadlock, and every buffer is live when it is read: par-verify repeats the proof from the files."));
  else parts.push(element("p", {}, "Nothing is proved: this compilation ended before."));
  if (report.findings && report.findings.length) parts.push(element("h3", {}, "Warnings and errors"), tableOf([
    {name: "", of: row => row.warning ? "warning" : "error"}, {name: "place", of: row => [row.file, row.line].filter(Boolean).join(":")},
    {name: "message", of: row => [row.message, ...row.notes].join("\n")}], report.findings, "Findings"));
  return parts;
}
