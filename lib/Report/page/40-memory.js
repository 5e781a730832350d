// Memory of a role over the step, by purpose, under its bound.
const purposes = ["params", "states", "grads", "saved", "buffers"];

class MemoryChart {
  constructor(canvas, said) {
    this.canvas = canvas;
    this.said = said;
    this.at = -1;
    canvas.addEventListener("keydown", event => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!by || !this.role) return;
      event.preventDefault();
      this.choose(this.at + by);
    });
    canvas.addEventListener("pointermove", event => {
      if (!this.role) return;
      const time = (event.clientX - canvas.getBoundingClientRect().left - this.left) / (this.width - this.left) * this.end;
      this.choose(this.role.moments.findLastIndex(([start]) => start <= time));
    });
  }

  show(role, end, limit, other) {
    Object.assign(this, {role, end, limit, other, left: 70, at: -1});
    this.canvas.setAttribute("aria-label", "Memory of " + roleName(role.role) + " over the step, at most " + bytesText(role.peak));
    this.said.textContent = "A bound of " + bytesText(role.peak) + "; the most is live at " + timeText(role.peak_ns) + ".";
    this.draw();
  }

  choose(at) {
    this.at = Math.max(0, Math.min(this.role.moments.length - 1, at));
    const [time, ...rest] = this.role.moments[this.at];
    const values = [this.role.params, this.role.states, ...rest];
    this.said.textContent = "At " + timeText(time) + ": " + purposes.map((name, i) => name + " " + bytesText(values[i])).join(", ") +
      "; together " + bytesText(values.reduce((sum, value) => sum + value, 0)) + " of " + bytesText(this.role.peak);
    this.draw();
  }

  draw() {
    if (!this.role) return;
    const height = 220, {context, width} = prepareCanvas(this.canvas, height);
    this.width = width;
    const top = Math.max(this.role.peak, this.limit && this.limit < this.role.peak * 4 ? this.limit : 0, this.other ? this.other.peak : 0) * 1.08;
    const x = time => this.left + time / this.end * (width - this.left - 4), y = bytes => height - 20 - bytes / top * (height - 28);
    this.drawAxes(context, x, y, top, width);
    this.drawAreas(context, x, y);
    this.labels = [];
    this.drawLine(context, y, this.role.peak, "bound", "bound " + bytesText(this.role.peak), width);
    if (this.limit && this.limit < top) this.drawLine(context, y, this.limit, "ink", "limit " + bytesText(this.limit), width);
    if (this.other) this.drawLine(context, y, this.other.peak, "faint", "the other's bound " + bytesText(this.other.peak), width);
    if (this.at >= 0) {
      context.fillStyle = colour("ink");
      context.fillRect(x(this.role.moments[this.at][0]), 4, 1, height - 24);
    }
  }

  drawAxes(context, x, y, top, width) {
    context.fillStyle = colour("faint");
    context.strokeStyle = colour("line");
    for (let part = 0; part <= 4; ++part) {
      const bytes = top / 1.08 * part / 4;
      context.fillText(bytesText(bytes), 4, y(bytes) + 4);
      context.beginPath();
      context.moveTo(this.left, Math.round(y(bytes)) + 0.5);
      context.lineTo(width, Math.round(y(bytes)) + 0.5);
      context.stroke();
    }
    const marks = marksOf(0, this.end, 8);
    for (const mark of marks) {
      const text = markText(mark, marks), left = x(mark) + 2;
      if (left + context.measureText(text).width < width) context.fillText(text, left, 216);
    }
  }

  drawAreas(context, x, y) {
    const stacks = this.role.moments.map(([time, ...rest]) => {
      let sum = 0;
      return {time, tops: [this.role.params, this.role.states, ...rest].map(value => sum += value)};
    });
    purposes.forEach((name, layer) => {
      context.fillStyle = colour(name);
      context.beginPath();
      stacks.forEach(({time, tops}, i) => {
        const until = i + 1 < stacks.length ? stacks[i + 1].time : this.end;
        context.lineTo(x(time), y(tops[layer]));
        context.lineTo(x(until), y(tops[layer]));
      });
      for (let i = stacks.length - 1; i >= 0; --i) {
        const base = layer ? stacks[i].tops[layer - 1] : 0;
        context.lineTo(x(i + 1 < stacks.length ? stacks[i + 1].time : this.end), y(base));
        context.lineTo(x(stacks[i].time), y(base));
      }
      context.fill();
    });
  }

  drawLine(context, y, bytes, name, text, width) {
    context.strokeStyle = context.fillStyle = colour(name);
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(this.left, y(bytes));
    context.lineTo(width, y(bytes));
    context.stroke();
    context.setLineDash([]);
    // Lines that are near each other have their texts side by side.
    const base = y(bytes) - 3, others = this.labels.filter(label => Math.abs(label.base - base) < 14);
    const left = Math.min(width + 4, ...others.map(label => label.left)) - 12 - context.measureText(text).width;
    this.labels.push({base, left});
    context.fillText(text, left, base);
  }
}

function memoryTables(report, role) {
  const roles = report.memory ? report.memory.roles : [];
  const bytes = key => ({name: key, of: row => row[key], text: bytesText, number: true});
  const byRole = tableOf([{name: "role", of: row => roleName(row.role)}, {name: "ranks", of: row => row.ranks, number: true},
    ...[...purposes, "peak", "host"].map(bytes)], roles, "Memory by role");
  const largest = tableOf([{name: "tensor", of: row => row.name || "(no name)"}, {name: "type", of: row => row.type},
    {name: "purpose", of: row => row.purpose}, {name: "count", of: row => row.count, number: true},
    {name: "bytes", of: row => row.bytes, text: bytesText, number: true}], role ? role.largest : [], "Largest at the peak");
  return [element("h3", {}, "By role"), byRole,
          role ? element("h3", {}, "The largest at the peak of " + roleName(role.role)) : null, role ? largest : null];
}
