// The step from left to right, a row for ranks that do the same at the same times.
class Timeline {
  constructor(canvas, said) {
    this.canvas = canvas;
    this.said = said;
    this.bands = [];
    this.end = 1;
    this.row = 0;
    this.span = -1;
    this.labelWidth = 150;
    this.rulerHeight = 22;
    this.listen();
  }

  // bands: [{title, rows, end}], one under the other on one clock.
  show(bands) {
    this.bands = bands;
    this.rows = bands.flatMap((band, number) => band.rows.map((row, index) =>
      ({...row, title: index === 0 && bands.length > 1 ? band.title : "", band: number})));
    this.end = Math.max(1, ...bands.map(band => band.end));
    this.from = 0;
    this.to = this.end;
    this.row = 0;
    this.span = -1;
    this.rowHeight = this.rows.length > 100 ? 8 : this.rows.length > 40 ? 14 : this.rows.length > 16 ? 20 : this.rows.length > 4 ? 30 : 44;
    this.canvas.setAttribute("aria-label", "Timeline of " + this.rows.length + " rows over " + timeText(this.end));
    this.tell();
    this.draw();
  }

  top(row) {
    return this.rulerHeight + row * (this.rowHeight + 3) + 16 * (this.bands.length > 1 ? this.rows[row].band + 1 : 0);
  }
  x(time) { return this.labelWidth + (time - this.from) / (this.to - this.from) * (this.width - this.labelWidth - 4); }
  timeAt(x) { return this.from + (x - this.labelWidth) / (this.width - this.labelWidth - 4) * (this.to - this.from); }

  draw() {
    if (!this.rows || !this.rows.length) return;
    const height = this.top(this.rows.length - 1) + this.rowHeight + 6;
    const {context, width} = prepareCanvas(this.canvas, height);
    this.width = width;
    this.drawRuler(context, height);
    this.colours = Object.fromEntries(kindNames.map(name => [name, colour(name)]));
    this.rows.forEach((row, index) => this.drawRow(context, row, index));
  }

  drawRuler(context, height) {
    context.fillStyle = colour("faint");
    context.strokeStyle = colour("line");
    const marks = marksOf(this.from, this.to, 8);
    for (const mark of marks) {
      const x = Math.round(this.x(mark)) + 0.5;
      context.beginPath();
      context.moveTo(x, this.rulerHeight - 5);
      context.lineTo(x, height);
      context.stroke();
      const text = markText(mark, marks);
      if (x + 3 + context.measureText(text).width < this.width) context.fillText(text, x + 3, 13);
    }
  }

  drawRow(context, row, index) {
    const y = this.top(index), tall = this.rowHeight;
    context.fillStyle = colour("ink");
    if (row.title) context.fillText(row.title, 6, y - 4);
    context.fillStyle = colour(index === this.row ? "accent" : "faint");
    if (tall >= 14 || index % Math.ceil(14 / (tall + 3)) === 0)
      context.fillText(row.name + " · " + row.label, 6, y + Math.min(tall, 20) / 2 + 4, this.labelWidth - 10);
    context.save();
    context.beginPath();
    context.rect(this.labelWidth, y, this.width - this.labelWidth, tall);
    context.clip();
    context.fillStyle = colour("idle");
    context.fillRect(this.labelWidth, y, this.x(this.bands[row.band].end) - this.labelWidth, tall);
    row.spans.forEach((span, number) => this.drawSpan(context, span, y, tall, index === this.row && number === this.span));
    context.restore();
    if (index === this.row) {
      context.strokeStyle = colour("accent");
      context.strokeRect(this.labelWidth - 0.5, y - 0.5, this.width - this.labelWidth - 2, tall + 1);
    }
  }

  drawSpan(context, span, y, tall, chosen) {
    const left = this.x(span.start), right = this.x(span.start + span.duration);
    if (right < this.labelWidth || left > this.width) return;
    const communicates = span.kind === "communication";
    const top = communicates ? y + tall * 0.68 : y, high = communicates ? tall * 0.32 : tall * 0.66;
    context.fillStyle = this.colours[span.kind];
    context.globalAlpha = communicates && span.duration > 0 ? 0.4 + 0.6 * span.exposed / span.duration : 1;
    context.fillRect(left, top, Math.max(0.6, right - left), high);
    context.globalAlpha = 1;
    if (span.critical > 0 && this.showCritical !== false) {
      context.fillStyle = colour("critical");
      context.fillRect(left, communicates ? y + tall - 2 : y + tall * 0.66 - 2, Math.max(0.6, right - left), 2);
    }
    if (chosen) {
      context.strokeStyle = colour("ink");
      context.lineWidth = 2;
      context.strokeRect(left, top + 1, Math.max(2, right - left), high - 2);
      context.lineWidth = 1;
    }
    const text = letterOf[span.kind] + (span.microbatch >= 0 ? span.microbatch : "");
    if (!communicates && letterOf[span.kind] && tall >= 14 && right - left > 10 + 7 * text.length) {
      context.fillStyle = "#ffffff";
      context.fillText(text, Math.max(left, this.labelWidth) + 4, top + high / 2 + 4);
    }
  }

  spanAt(x, y) {
    const index = this.rows.findIndex((row, at) => y >= this.top(at) && y <= this.top(at) + this.rowHeight + 2);
    if (index < 0 || x < this.labelWidth) return {index, number: -1};
    const time = this.timeAt(x), near = (this.to - this.from) / this.width * 2;
    const under = y > this.top(index) + this.rowHeight * 0.67;
    const number = this.rows[index].spans.findIndex(span => (span.kind === "communication") === under &&
      time >= span.start - near && time <= span.start + span.duration + near);
    return {index, number};
  }

  choose(index, number) {
    this.row = Math.max(0, Math.min(this.rows.length - 1, index));
    this.span = number;
    this.tell();
    this.draw();
  }

  tell() {
    const row = this.rows && this.rows[this.row];
    if (!row) return;
    const span = row.spans[this.span];
    const place = row.name + ", " + row.label;
    if (!span) {
      this.said.textContent = place + ": compute " + timeText(row.compute) +
        (row.communication === undefined ? "" : ", exposed communication " + timeText(row.communication)) +
        (row.core ? ", waiting for a core " + timeText(row.core) : "") + ", idle " + timeText(row.idle);
      return;
    }
    this.said.textContent = place + ": " + span.kind + (span.microbatch >= 0 ? " of microbatch " + span.microbatch : "") +
      ", " + span.label + ", at " + timeText(span.start) + " for " + timeText(span.duration) +
      (span.busy < span.duration ? " (" + timeText(span.busy) + " busy)" : "") +
      (span.kind === "communication" ? ", " + timeText(span.exposed) + " beside no compute" : "") +
      (span.critical > 0 ? ", " + timeText(span.critical) + " on the longest chain" : "");
  }

  zoom(factor, centre) {
    const middle = centre === undefined ? (this.from + this.to) / 2 : centre;
    const length = Math.max(this.end / 1e5, Math.min(this.end, (this.to - this.from) * factor));
    const share = (middle - this.from) / (this.to - this.from);
    this.from = Math.max(0, Math.min(this.end - length, middle - length * share));
    this.to = this.from + length;
    this.draw();
  }
  move(by) {
    const shift = Math.max(-this.from, Math.min(this.end - this.to, by));
    this.from += shift;
    this.to += shift;
    this.draw();
  }
  nextSpan() {
    const spans = this.rows[this.row].spans;
    this.span = spans.length ? (this.span + 1) % spans.length : -1;
    const span = spans[this.span];
    if (span && (span.start < this.from || span.start > this.to)) this.move(span.start - (this.from + this.to) / 2);
    this.choose(this.row, this.span);
  }

  onKey(event) {
    const quarter = (this.to - this.from) / 4;
    const actions = {
      ArrowLeft: () => this.move(-quarter), ArrowRight: () => this.move(quarter),
      ArrowUp: () => this.choose(this.row - 1, -1), ArrowDown: () => this.choose(this.row + 1, -1),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.zoom(Infinity),
      Enter: () => this.nextSpan()};
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  listen() {
    const point = event => {
      const box = this.canvas.getBoundingClientRect();
      return {x: event.clientX - box.left, y: event.clientY - box.top};
    };
    let held = null;
    this.canvas.addEventListener("keydown", event => this.onKey(event));
    this.canvas.addEventListener("pointerdown", event => { held = {...point(event), from: this.from, moved: false}; });
    this.canvas.addEventListener("pointerup", event => {
      const {x, y} = point(event), {index, number} = this.spanAt(x, y);
      if (held && !held.moved && index >= 0) this.choose(index, number);
      held = null;
    });
    this.canvas.addEventListener("pointermove", event => {
      const {x, y} = point(event);
      if (held && event.buttons) {
        held.moved = held.moved || Math.abs(x - held.x) > 3;
        if (held.moved) this.move(held.from - this.from + (held.x - x) / (this.width - this.labelWidth) * (this.to - this.from));
        return;
      }
      const {index, number} = this.spanAt(x, y);
      if (index >= 0 && number >= 0 && (index !== this.row || number !== this.span)) this.choose(index, number);
    });
    this.canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(point(event).x));
    }, {passive: false});
  }
}
