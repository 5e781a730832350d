// The report in the page, and what is read from files: docs/report.md has its keys.
const kindNames = ["forward", "backward", "weight", "update", "communication", "other"];
const letterOf = {forward: "F", backward: "B", weight: "W", update: "U", communication: "", other: ""};

function parseReport(text) {
  const report = JSON.parse(text);
  if (!report || !report.par_report) throw new Error("is no report of Par");
  if (report.par_report !== 1) throw new Error("is a report of version " + report.par_report + ", and this page reads 1");
  return report;
}

// "s0+2" as a reader calls it.
function roleName(role) {
  const numbers = role.replace(/s/g, "");
  return (/[+.]/.test(numbers) ? "stages " : "stage ") + numbers;
}

// "0-3, 8" of sorted numbers.
function shortRanges(numbers) {
  const parts = [];
  for (let i = 0; i < numbers.length;) {
    let last = i;
    while (last + 1 < numbers.length && numbers[last + 1] === numbers[last] + 1) ++last;
    parts.push(last === i ? String(numbers[i]) : numbers[i] + "-" + numbers[last]);
    i = last + 1;
  }
  return parts.length > 4 ? parts.slice(0, 3).join(", ") + ", … " + parts[parts.length - 1] : parts.join(", ");
}

// Rows of the picture: spans as objects, times in ns.
function rowsOf(report) {
  const timeline = report.timeline;
  if (!timeline) return {rows: [], end: 0};
  const rows = timeline.rows.map(row => ({
    name: roleName(row.role), ranks: row.ranks, label: (row.ranks.length > 1 ? "ranks " : "rank ") + shortRanges(row.ranks),
    compute: row.compute_ns, communication: row.communication_ns, core: row.core_ns, idle: row.idle_ns,
    spans: row.spans.map(([kind, microbatch, start, duration, busy, critical, exposed, label]) => ({
      kind: timeline.kinds[kind], microbatch, start, duration, busy, critical, exposed,
      label: timeline.labels[label]})),
  }));
  return {rows, end: timeline.step_ns};
}

// A trace of par-run as rows of the same kind: one step, on its own clock, one row a rank.
function rowsOfTrace(trace) {
  const events = (Array.isArray(trace) ? trace : trace.traceEvents || []).filter(event => event.ph === "X" && event.dur >= 0);
  const steps = [...new Set(events.map(event => event.args && event.args.step).filter(step => step !== undefined))];
  if (!steps.length) throw new Error("is a trace without steps; par-run BUNDLE --trace FILE makes one");
  const step = steps[Math.floor(steps.length / 2)];
  const ofStep = events.filter(event => event.args && event.args.step === step);
  const zero = Math.min(...ofStep.map(event => event.ts));
  const byRank = new Map();
  for (const event of ofStep) {
    if (!byRank.has(event.pid)) byRank.set(event.pid, []);
    const span = spanOfEvent(event, zero);
    if (span) byRank.get(event.pid).push(span);
  }
  const rows = [...byRank.keys()].sort((one, other) => one - other).map(rank => ({
    name: "measured", ranks: [rank], label: "rank " + rank, spans: joinNear(byRank.get(rank))}));
  const end = Math.max(...rows.flatMap(row => row.spans.map(span => span.start + span.duration)), 1);
  for (const row of rows) {
    row.compute = row.spans.reduce((sum, span) => sum + (span.kind === "communication" ? 0 : span.busy), 0);
    row.communication = findExposed(row.spans);
    row.idle = Math.max(0, end - row.compute - row.communication);
  }
  return {rows, end, step};
}

// Sets the part of each communication that is beside no compute; returns the time that some are, which is counted once.
function findExposed(spans) {
  const [compute, communication] = [false, true].map(communicates => spans.filter(
    span => (span.kind === "communication") === communicates).sort((one, other) => one.start - other.start));
  let all = 0, end = 0, first = 0;
  for (const span of communication) {
    const last = span.start + span.duration;
    while (first < compute.length && compute[first].start + compute[first].duration <= span.start) ++first;
    let at = span.start;
    for (let i = first; at < last; ++i) {
      const next = i < compute.length ? Math.min(last, Math.max(at, compute[i].start)) : last;
      span.exposed += next - at;
      all += Math.max(0, next - Math.max(at, end));
      at = i < compute.length ? Math.max(next, compute[i].start + compute[i].duration) : last;
    }
    end = Math.max(end, last);
  }
  return all;
}

function spanOfEvent(event, zero) {
  const at = String((event.args && event.args.at) || event.name);
  const block = (at.split("/")[1] || at).split(":")[0];
  const category = event.cat || "";
  if (category === "wait" || category === "signal") return null;
  const communicates = ["coll", "send", "recv", "group"].includes(category);
  const word = (block.split(".")[1] || "").replace(/\d+$/, "");
  const kind = communicates ? "communication" : kindNames.includes(word) ? word : "other";
  const start = Math.round((event.ts - zero) * 1000), duration = Math.round(event.dur * 1000);
  return {kind, microbatch: event.args.microbatch === undefined ? -1 : event.args.microbatch, start, duration,
          busy: duration, critical: 0, exposed: 0, label: communicates ? category + " · " + at : block};
}

// Spans of one block that follow each other closely are one, so that a step of many kernels can be drawn.
function joinNear(spans) {
  spans.sort((one, other) => (one.kind === "communication") - (other.kind === "communication") || one.start - other.start);
  const joined = [];
  for (const span of spans) {
    const last = joined[joined.length - 1];
    if (last && last.kind === span.kind && last.label === span.label && last.microbatch === span.microbatch &&
        span.start - last.start - last.duration < 20000) {
      last.duration = Math.max(last.duration, span.start + span.duration - last.start);
      last.busy += span.busy;
    } else {
      joined.push(span);
    }
  }
  return joined;
}
