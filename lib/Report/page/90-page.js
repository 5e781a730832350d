// The page: its report, and the report or trace that is opened beside it.
class Page {
  constructor(report) {
    this.report = report;
    this.timeline = new Timeline(byId("timeline"), byId("timeline-said"));
    this.chart = new MemoryChart(byId("memory-chart"), byId("memory-said"));
    this.beside = null; // {name, report} or {name, trace}
    this.fill();
    this.listen();
    this.showStep();
  }

  fill() {
    const {report} = this, plan = report.plan, model = report.model;
    byId("title").textContent = model ? model.name : "Par";
    document.title = (model ? model.name + " - " : "") + "Par report";
    byId("subtitle").textContent = [model ? countText(model.elements) + " elements in " + model.parameters + " parameters" : "",
      plan ? numberOf(plan.ranks, "rank") + ", " + numberOf(plan.microbatches, "microbatch", "es") + " of " + plan.microbatch_size : ""].filter(Boolean).join(" · ");
    byId("sections").replaceChildren(...[...document.querySelectorAll("main section h2")].filter(head => !head.parentElement.hidden).map(
      head => element("a", {href: "#" + head.parentElement.id}, head.textContent)));
    byId("summary").replaceChildren(summaryOf(report));
    legendOf(byId("legend"), [...kindNames, "idle"], {weight: "weight gradient",
      idle: report.prediction && report.prediction.core_permille ? "idle, or waiting for a core" : "idle"});
    legendOf(byId("memory-legend"), purposes);
    byId("communication-body").replaceChildren(communicationTable(report));
    byId("plan-body").replaceChildren(...planBody(report));
    byId("sources-body").replaceChildren(...sourcesBody(report));
    byId("proof-body").replaceChildren(...proofBody(report));
    byId("memory-role").replaceChildren(...(report.memory_over_time || []).map((role, index) =>
      element("option", {value: String(index)}, roleName(role.role))));
  }

  showStep() {
    const {report, trace} = this.beside || {}, bandOf = (title, band) => ({...band, title: title + ": " + timeText(band.end)});
    const bands = [bandOf("predicted", rowsOf(this.report))];
    if (report) bands.push(bandOf("predicted, " + this.beside.name, rowsOf(report)));
    if (trace) bands.push(bandOf("measured, step " + trace.step, trace));
    byId("step").hidden = !bands[0].rows.length;
    if (bands[0].rows.length) this.timeline.show(bands);
    this.showMemory();
  }

  showMemory() {
    const roles = this.report.memory_over_time || [], role = roles[Number(byId("memory-role").value) || 0];
    byId("memory").hidden = !role && !this.report.memory;
    byId("memory-chart").hidden = !role;
    byId("memory-tables").replaceChildren(...memoryTables(this.report, role).filter(Boolean));
    if (!role) return;
    const other = this.beside && this.beside.report && (this.beside.report.memory_over_time || []).find(one => one.role === role.role);
    this.chart.show(role, this.report.timeline.step_ns, this.report.memory && this.report.memory.limit, other);
  }

  open(name, text) {
    const problem = byId("problem");
    problem.hidden = true;
    try {
      this.beside = this.read(name, text);
    } catch (error) {
      problem.textContent = name + ": " + (error instanceof SyntaxError ? "is no JSON and no report of Par" : error.message);
      problem.hidden = false;
      return;
    }
    byId("close-other").hidden = false;
    byId("difference").hidden = false;
    byId("difference-title").textContent = (this.beside.report ? "Difference to " : "Measured in ") + name;
    byId("difference-body").replaceChildren(this.beside.report ? differenceTable(this.report, this.beside.report)
      : measuredTable(this.report, this.beside.trace));
    this.fill();
    this.showStep();
  }

  read(name, text) {
    if (text.trimStart().startsWith("<")) {
      const found = new DOMParser().parseFromString(text, "text/html").getElementById("par-report");
      if (!found) throw new Error("is a page without a report of Par");
      return {name, report: parseReport(found.textContent)};
    }
    const json = JSON.parse(text);
    if (Array.isArray(json) || json.traceEvents) return {name, trace: rowsOfTrace(json)};
    return {name, report: parseReport(text)};
  }

  closeOther() {
    this.beside = null;
    byId("close-other").hidden = byId("difference").hidden = true;
    byId("problem").hidden = true;
    byId("other").value = "";
    this.fill();
    this.showStep();
  }

  setTheme(dark) {
    document.documentElement.classList.toggle("dark", dark);
    byId("theme").setAttribute("aria-pressed", String(dark));
    byId("theme").textContent = dark ? "Light" : "Dark";
    this.redraw();
  }

  redraw() {
    this.timeline.draw();
    this.chart.draw();
  }

  listen() {
    byId("zoom-in").addEventListener("click", () => this.timeline.zoom(0.5));
    byId("zoom-out").addEventListener("click", () => this.timeline.zoom(2));
    byId("zoom-all").addEventListener("click", () => this.timeline.zoom(Infinity));
    byId("show-critical").addEventListener("change", event => {
      this.timeline.showCritical = event.target.checked;
      this.timeline.draw();
    });
    byId("memory-role").addEventListener("change", () => this.showMemory());
    byId("theme").addEventListener("click", () => this.setTheme(!document.documentElement.classList.contains("dark")));
    byId("print").addEventListener("click", () => window.print());
    byId("close-other").addEventListener("click", () => this.closeOther());
    byId("other").addEventListener("change", async event => {
      const file = event.target.files[0];
      if (!file) return;
      this.open(file.name, await file.text());
      document.body.dataset.opened = file.name;
    });
    window.addEventListener("resize", () => this.redraw());
    window.matchMedia("print").addEventListener("change", () => this.redraw());
  }
}

let page;
try {
  page = new Page(parseReport(byId("par-report").textContent));
  if (window.matchMedia("(prefers-color-scheme: dark)").matches) page.setTheme(true);
} catch (error) {
  byId("problem").textContent = "This page cannot be shown: its report " + error.message;
  byId("problem").hidden = false;
}
