// Elements, numbers and tables.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {}))
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

const byId = id => document.getElementById(id);

function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

// 12,345
const groupedText = number => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

// "1 rank", "8 ranks"
const numberOf = (number, name, ending = "s") => groupedText(number) + " " + name + (number === 1 ? "" : ending);

function timeText(ns) {
  const size = Math.abs(ns);
  const [unit, name] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return (ns < 0 ? "-" : "") + (unit === 1 ? size.toFixed(0) : digits(size / unit)) + " " + name;
}

function bytesText(bytes) {
  const size = Math.abs(bytes);
  const [unit, name] = size >= 2 ** 40 ? [2 ** 40, "TiB"] : size >= 2 ** 30 ? [2 ** 30, "GiB"]
    : size >= 2 ** 20 ? [2 ** 20, "MiB"] : size >= 2 ** 10 ? [2 ** 10, "KiB"] : [1, "B"];
  return (bytes < 0 ? "-" : "") + (unit === 1 ? size : digits(size / unit)) + " " + name;
}

const percentText = permille => (permille / 10).toFixed(permille < 100 ? 1 : 0) + " %";

function countText(value) {
  const [unit, name] = value >= 1e9 ? [1e9, " G"] : value >= 1e6 ? [1e6, " M"] : value >= 1e3 ? [1e3, " k"] : [1, ""];
  return unit === 1 ? String(value) : digits(value / unit) + name;
}

const cellText = value => Number.isInteger(value) ? groupedText(value) : String(value ?? "");

// columns: [{name, of: row => value, text: value => string, number: bool}]. A click on a head sorts by it. Of a long
// table a button shows the rest.
function tableOf(columns, rows, label) {
  const body = element("tbody"), most = 60;
  let order = rows, shown = rows.length > most ? most - 10 : rows.length;
  const cellOf = (column, row) => column.text ? column.text(column.of(row), row) : cellText(column.of(row));
  const fill = sorted => {
    order = sorted;
    body.replaceChildren(...order.slice(0, shown).map(row => element("tr", {}, ...columns.map(column =>
      element("td", column.number ? {class: "number"} : {}, cellOf(column, row))))));
  };
  const heads = columns.map(column => {
    const sort = () => {
      const falls = head.getAttribute("aria-sort") !== "descending";
      heads.forEach(other => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      const sign = falls ? -1 : 1;
      fill([...rows].sort((one, other) => {
        const [a, b] = [column.of(one) ?? "", column.of(other) ?? ""];
        return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
      }));
    };
    const head = element("th", {tabindex: "0", "aria-sort": "none", class: column.number ? "number" : "", onclick: sort,
      onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } }}, column.name);
    return head;
  });
  fill(rows);
  const table = element("table", label ? {"aria-label": label} : {}, element("thead", {}, element("tr", {}, ...heads)), body);
  const rest = shown === rows.length ? null : element("button", {onclick: () => {
    shown = rows.length;
    fill(order);
    rest.remove();
  }}, "Show all " + numberOf(rows.length, "row"));
  return element("div", {class: "scroll"}, table, rest);
}

// Pairs of a name and a text, as a table of two columns.
function pairsOf(pairs) {
  return element("table", {}, element("tbody", {}, ...pairs.filter(([, text]) => text !== undefined && text !== "").map(
    ([name, text]) => element("tr", {}, element("th", {scope: "row"}, name), element("td", {}, cellText(text))))));
}

// texts: of names that are not their own.
function legendOf(place, names, texts = {}) {
  place.replaceChildren(...names.flatMap(name => [
    element("span", {class: "swatch", style: "background: var(--" + name + ")"}), texts[name] || name]));
}

const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// A canvas in device pixels; returns its context, in which a unit is a CSS pixel.
function prepareCanvas(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 800;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  return {context, width};
}

// A mark of a ruler, in the unit of its end: 0, 0.5 ms, 1 ms; further marks have as many digits as the step needs.
function markText(ns, marks) {
  const end = marks[marks.length - 1], step = marks.length > 1 ? marks[1] - marks[0] : end;
  const [unit, name] = end >= 1e9 ? [1e9, "s"] : end >= 1e6 ? [1e6, "ms"] : end >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const places = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  const [whole, part] = (ns / unit).toFixed(places).split(".");
  return ns === 0 ? "0" : groupedText(whole) + (part ? "." + part : "") + " " + name;
}

// Times at which a ruler of this length has marks.
function marksOf(begin, end, most) {
  const rough = (end - begin) / most, power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(candidate => candidate >= rough) || power * 10;
  const marks = [];
  for (let mark = Math.ceil(begin / step) * step; mark <= end; mark += step) marks.push(mark);
  return marks;
}
