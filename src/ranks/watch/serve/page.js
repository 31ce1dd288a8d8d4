"use strict";
// What a run says is put into the page as text only, never as HTML.
const POLL_MS = 2000, WIDTH = 320, HEIGHT = 150, LEFT = 44, RIGHT = 6, TOP = 6, BOTTOM = 18, MARKED_POINTS = 60;
const COLORS = ["#2a78c2", "#e0802b", "#3a9a4f", "#c8403d", "#8d68b8", "#8a6a4f", "#d673b4", "#7d8790", "#b3a92a", "#27a9b8"];
const points = new Map(); // metric -> its points: [iteration, value], or [iteration, mean, lowest, highest] of several
const newest = new Map(); // metric -> its newest value
const pictures = new Map(); // title -> its figure
let phases = [], phaseNames = [], next = "";

const byId = id => document.getElementById(id);
const color = i => COLORS[i % COLORS.length];

function make(tag, attributes = {}, ...children) {
  const isSvg = ["svg", "path", "line", "text", "circle", "rect"].includes(tag);
  const node = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function show(number) {
  const size = Math.abs(number);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return number.toExponential(1);
  if (size >= 1e4) return number.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 });
  return String(Number(number.toPrecision(4)));
}

function ticks(low, high, most) { // round numbers between low and high
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high && found.length < 20; at += step) found.push(at);
  return found.map(at => (Math.abs(at) < step / 1e6 ? 0 : at));
}

function range(values) { // the lowest and highest to be drawn, a little apart
  let sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (byId("cut").checked) sorted = sorted.slice(Math.floor(sorted.length / 100), Math.ceil(sorted.length * 0.99));
  let low = sorted[0] ?? 0, high = sorted.at(-1) ?? 1;
  if (low === high) [low, high] = [low - (Math.abs(low) / 10 || 0.5), high + (Math.abs(high) / 10 || 0.5)];
  return [low, high + (high - low) / 25];
}

function frame(figure, width, [firstX, lastX], [low, high]) { // an empty picture with axes; its scales
  const x = at => LEFT + (at - firstX) / (lastX - firstX) * (width - LEFT - RIGHT);
  const y = value => HEIGHT - BOTTOM - (Math.min(Math.max(value, low), high) - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
  const svg = figure.querySelector("svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.replaceChildren();
  for (const at of ticks(low, high, 5)) {
    svg.append(make("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }));
    svg.append(make("text", { x: LEFT - 4, y: y(at) + 3, "text-anchor": "end" }, show(at)));
  }
  for (const at of ticks(firstX, lastX, width / 55)) {
    svg.append(make("text", { x: Math.min(x(at), width - RIGHT - 8), y: HEIGHT - 4, "text-anchor": "middle" }, show(at)));
  }
  return { svg, x, y };
}

const path = corners => "M" + corners.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");

function drawCurves(figure, lines, xs) { // lines: [[metric, label], ...]
  const all = lines.map(([name]) => points.get(name) ?? []);
  const { svg, x, y } = frame(figure, WIDTH, xs, range(all.flat().flatMap(point => point.slice(1))));
  all.forEach((line, i) => {
    const center = line.map(([at, mean]) => [x(at), y(mean)]);
    if (lines.length === 1 && line.some(point => point.length > 2)) {
      const top = line.map(point => [x(point[0]), y(point[3] ?? point[1])]);
      const bottom = line.map(point => [x(point[0]), y(point[2] ?? point[1])]);
      svg.append(make("path", { class: "band", fill: color(i), d: path([...top, ...bottom.reverse()]) + "Z" }));
    }
    if (line.length) svg.append(make("path", { class: "curve", stroke: color(i), d: path(center) }));
    if (line.length <= MARKED_POINTS) for (const [cx, cy] of center) svg.append(make("circle", { cx, cy, r: 2, fill: color(i) }));
  });
  figure.read = at => lines.map(([, label], i) => (label ? label + " " : "") + valueAt(all[i], at)).join(", ");
  figure.scale = xs; // for the cursor
  caption(figure, lines.length === 1 && newest.has(lines[0][0]) ? show(newest.get(lines[0][0])) : "");
}

function nearest(line, at) {
  return line.reduce((best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best), line[0]);
}

function valueAt(line, at) {
  if (!line.length) return "";
  const [, mean, low, high] = nearest(line, at);
  return show(mean) + (low === undefined ? "" : ` (${show(low)} to ${show(high)})`);
}

function caption(figure, text) {
  figure.newest = text;
  if (!figure.querySelector(".cursor")) figure.querySelector(".value").textContent = text;
}

function picture(title, wide) {
  const figure = make("figure", wide ? { class: "wide" } : {});
  const value = make("span", { class: "value" });
  const svg = make("svg", { role: "img", "aria-label": title });
  figure.append(make("figcaption", {}, make("span", { title }, title), value), svg);
  const width = wide ? WIDTH * 3 : WIDTH;
  svg.addEventListener("mousemove", event => {
    if (!figure.scale) return;
    const box = svg.getBoundingClientRect(), [first, last] = figure.scale;
    const share = ((event.clientX - box.left) / box.width * width - LEFT) / (width - LEFT - RIGHT);
    const at = first + Math.min(1, Math.max(0, share)) * (last - first), px = LEFT + Math.min(1, Math.max(0, share)) * (width - LEFT - RIGHT);
    svg.querySelector(".cursor")?.remove();
    svg.append(make("line", { class: "cursor", x1: px, x2: px, y1: TOP, y2: HEIGHT - BOTTOM }));
    value.textContent = `iteration ${Math.round(at).toLocaleString("en")}: ${figure.read(at)}`;
  });
  svg.addEventListener("mouseleave", () => { svg.querySelector(".cursor")?.remove(); value.textContent = figure.newest; });
  return figure;
}

function legend(labels) {
  return make("div", { class: "legend" }, ...labels.map((label, i) => make("span", {},
    make("svg", { viewBox: "0 0 1 1" }, make("rect", { width: 1, height: 1, fill: color(i) })), label)));
}

function drawTime(xs) { // the phases of an iteration, one above the other
  const section = byId("time");
  section.hidden = phases.length === 0;
  if (section.hidden) return;
  const figure = section.querySelector("figure") ?? section.querySelector("div").appendChild(picture("seconds", true));
  const totals = phaseNames.map((_, i) => phases.reduce((sum, point) => sum + (point[i + 1] || 0), 0));
  const all = totals.reduce((a, b) => a + b, 0), used = phaseNames.map((_, i) => i).filter(i => totals[i] > 0.005 * all);
  const tops = phases.map(point => point.slice(1).reduce((a, b) => a + (b || 0), 0));
  const { svg, x, y } = frame(figure, WIDTH * 3, xs, [0, range([0, ...tops])[1]]);
  let below = phases.map(() => 0);
  used.forEach((i, at) => {
    const above = phases.map((point, k) => below[k] + (point[i + 1] || 0));
    const corners = [...phases.map((p, k) => [x(p[0]), y(above[k])]), ...phases.map((p, k) => [x(p[0]), y(below[k])]).reverse()];
    svg.append(make("path", { fill: color(at), d: path(corners) + "Z" }));
    below = above;
  });
  section.querySelector(".legend").replaceWith(legend(used.map(i => `${phaseNames[i]} ${(100 * totals[i] / all).toFixed(0)} %`)));
  figure.read = at => used.map(i => `${phaseNames[i]} ${show(nearest(phases, at)[i + 1] || 0)}`).join(", ");
  figure.scale = xs;
  caption(figure, "");
}

function arrange(layout) { // the sections and empty pictures, again where a metric is new
  pictures.clear();
  byId("curves").replaceChildren(...layout.flatMap(([heading, members]) => [
    make("h2", {}, heading),
    make("div", { class: "pictures" }, ...members.map(([title, lines]) => {
      const figure = picture(title, false);
      if (lines.length > 1) figure.append(legend(lines.map(([, label]) => label)));
      pictures.set(heading + "\n" + title, [figure, lines]);
      return figure;
    })),
  ]));
}

function draw() {
  let first = Infinity, last = -Infinity;
  for (const line of [...points.values(), phases]) {
    if (line.length) [first, last] = [Math.min(first, line[0][0]), Math.max(last, line.at(-1)[0])];
  }
  const xs = last > first ? [first, last] : [(Number.isFinite(first) ? first : 0) - 0.5, (Number.isFinite(last) ? last : 0) + 0.5];
  for (const [figure, lines] of pictures.values()) drawCurves(figure, lines, xs);
  drawTime(xs);
}

function rows(id, found) {
  byId(id).replaceChildren(...found.map(cells => make("tr", {}, ...cells.map(cell => make("td", {}, cell)))));
}

function note(data) {
  if (data.problem) return data.problem;
  if (data.unread !== null) return `reading the files of the run: ${(100 - 100 * data.unread).toFixed(0)} %`;
  if (data.state !== "running") return `This run is not running: ${data.state}. The page stays until Ctrl-C ends ranks watch.`;
  return points.size ? "" : "No iteration has ended yet.";
}

function update(data) {
  if (data.reset) {
    points.clear();
    phases = [];
  }
  for (const [name, kept, added, last] of data.curves) {
    newest.set(name, last);
    points.set(name, [...(points.get(name) ?? []).slice(0, kept), ...added]);
  }
  phases = [...phases.slice(0, data.phases[0]), ...data.phases[1]];
  phaseNames = data.phase_names;
  if (data.layout) arrange(data.layout);
  if (data.time_heading) byId("time").querySelector("h2").textContent = data.time_heading;
  if (data.history) rows("history", data.history.reverse());
  rows("table", data.table);
  byId("name").textContent = data.name;
  byId("state").textContent = data.state;
  byId("state").className = data.state.replace(/\W/g, "_");
  byId("progress").hidden = data.share === null;
  byId("done").style.width = `${100 * (data.share ?? 0)}%`;
  document.title = (data.share === null ? "" : `${Math.floor(100 * data.share)} % `) + data.name;
  byId("tiles").replaceChildren(...data.tiles.filter(([, value]) => value).map(([what, value]) =>
    make("div", {}, make("dt", {}, what), make("dd", {}, value))));
  byId("note").textContent = note(data);
  next = data.next;
  draw();
}

async function poll() {
  let wait = POLL_MS;
  try {
    const response = await fetch("/data?since=" + next);
    if (!response.ok) throw new Error(await response.text());
    const data = await response.json();
    update(data);
    if (data.unread !== null) wait = 50;
    byId("lost").textContent = "";
  } catch (error) {
    const at = new Date().toLocaleTimeString();
    byId("lost").textContent ||= `No answer since ${at} (${error.message}). Does ranks watch still run, and the tunnel to it?`;
  }
  setTimeout(poll, wait);
}

byId("cut").addEventListener("change", draw);
poll();
