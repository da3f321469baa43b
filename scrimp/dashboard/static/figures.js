// Figures are drawn when they come into view, and again when the study or an option changes. Zoom, hidden legend
// entries and brushed ranges are kept. A click on a point opens its trial.
"use strict";

const visible = new Set();
const current = new WeakSet(); // figures that are up to date
const kept = new WeakMap(); // the state of each: {asked, zoom, given}

const BUTTONS = [["zoom2d", "pan2d", "autoScale2d", "resetScale2d"], ["toImage"]];
const SETTINGS = {
  responsive: true,
  displaylogo: false,
  showSendToCloud: false, // no data leaves the machine
  showEditInChartStudio: false,
  plotlyServerURL: "",
};

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Plotly's texts escape <, > and &; headings and captions do not.
function decode(words) {
  return words.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

function address(figure) {
  const narrow = figure.clientWidth < 560;
  return figure.dataset.figure + (narrow ? "&columns=1" : figure.clientWidth < 900 ? "&columns=2" : "");
}

async function draw(figure) {
  current.add(figure);
  const asked = figure.dataset.figure;
  try {
    const answer = await fetch(address(figure));
    const body = await answer.json();
    if (figure.dataset.figure !== asked) return; // another option was chosen meanwhile
    if (body.layout) await show(figure, body);
    else postpone(figure, body.message || "cannot be drawn", answer.status === 202);
  } catch (error) {
    current.delete(figure);
    figure.querySelector("figcaption").textContent = "the server is not responding";
  }
}

// A figure that cannot be drawn yet is hidden and listed below all figures.
function postpone(figure, words, soon) {
  if (soon) {
    figure.querySelector("figcaption").textContent = words;
    setTimeout(() => draw(figure), 1500);
    return;
  }
  if (figure.dataset.drawn) { // keep the previous figure and show the reason
    figure.querySelector("figcaption").textContent = words;
    return;
  }
  figure.dataset.why = words;
  figure.hidden = true;
  listPostponed();
}

function listPostponed() {
  const line = document.getElementById("later");
  if (!line) return;
  const words = [...document.querySelectorAll("figure[data-why]")].map(
    (figure) => figure.dataset.name.replaceAll("_", " ") + " (" + figure.dataset.why + ")");
  line.hidden = !words.length;
  line.textContent = words.length ? "Not drawn: " + words.join("; ") : "";
}

async function show(figure, body) {
  const place = figure.querySelector(".plot");
  if (figure.dataset.why) {
    delete figure.dataset.why;
    figure.hidden = false;
    listPostponed();
  }
  const words = decode(body.layout.meta.alternative);
  figure.querySelector("h3").textContent = decode(body.layout.title.text);
  dress(body, figure);
  keep(figure, place, body);
  place.style.height = body.layout.height + "px";
  const cartesian = body.data.some((trace) => trace.type !== "parcoords");
  const bar = { modeBarButtons: cartesian ? BUTTONS : [["toImage"]], displayModeBar: figure.clientWidth >= 560 };
  await Plotly.react(place, body.data, body.layout, { ...SETTINGS, ...bar });
  place.setAttribute("role", "group"); // not img: it contains the buttons of the mode bar
  place.setAttribute("aria-label", words);
  figure.querySelector("figcaption").textContent = words;
  if (!figure.dataset.drawn) listen(figure, place);
  figure.dataset.drawn = "yes";
  figure.dataset.draws = Number(figure.dataset.draws || 0) + 1;
}

// Use the page's heading, colours and widths.
function dress(body, figure) {
  const layout = body.layout;
  const narrow = figure.clientWidth < 560;
  layout.autosize = true;
  layout.height = layout.height || 380;
  delete layout.width;
  delete layout.title;
  layout.font = { ...layout.font, color: colour("--text"), size: narrow ? 11 : 12 };
  layout.margin = { ...layout.margin, t: Math.max((layout.margin.t || 88) - 52, 34), b: 48, l: narrow ? 52 : 64, r: narrow ? 12 : 20 };
  // Room for panel names, and for a legend of several lines below the mode bar.
  const names = [...new Set(body.data.filter((trace) => trace.showlegend !== false && trace.name).map((trace) => trace.name))];
  const widest = Math.max(0, ...names.map((name) => 52 + 6.5 * name.length));
  const lines = Math.ceil((names.length * widest) / Math.max(figure.clientWidth - (narrow ? 64 : 84), 100));
  const above = layout.showlegend !== false && names.length > 1 && (!layout.legend || layout.legend.orientation !== "v");
  if ((layout.annotations || []).length) layout.margin.t += 22;
  else if (above && (lines > 1 || names.length > 3)) layout.margin.t = Math.max(layout.margin.t, (narrow ? 12 : 34) + 20 * lines);
  if (body.data.some((trace) => trace.type === "parcoords")) layout.margin = { l: 64, r: 64, t: 74, b: 24 };
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: colour("--quiet"), activecolor: colour("--link"), orientation: "h" };
  layout.hoverlabel = { ...layout.hoverlabel, bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--text") } };
  if (narrow && layout.legend && layout.legend.orientation === "v") {
    layout.legend = { orientation: "h", y: -0.15, yanchor: "top" };
  }
  for (const trace of body.data) {
    if (trace.colorbar && narrow) trace.colorbar = { ...trace.colorbar, thickness: 10 };
  }
}

// Carry zoom and hidden entries over to the new figure, unless the options changed.
function keep(figure, place, body) {
  const asked = figure.dataset.figure;
  let state = kept.get(figure);
  if (!state || state.asked !== asked) {
    state = { asked, zoom: {}, given: {} };
    kept.set(figure, state);
  } else {
    const hidden = new Set((place._fullData || []).filter((trace) => trace.visible === "legendonly").map(entry));
    for (const trace of body.data) if (hidden.has(entry(trace))) trace.visible = "legendonly";
  }
  state.given = {};
  for (const [name, axis] of Object.entries(body.layout)) {
    if (!/^[xy]axis\d*$/.test(name)) continue;
    state.given[name] = axis.range ? [...axis.range] : null;
    const zoom = state.zoom[name];
    if (zoom === "all") {
      delete axis.range;
      axis.autorange = axis.autorange === "reversed" ? "reversed" : true;
    } else if (zoom) {
      axis.range = [...zoom];
      axis.autorange = false;
    }
  }
  body.layout.uirevision = asked; // keeps brushed ranges and the drag mode
}

function entry(trace) {
  return trace.legendgroup || trace.name || "";
}

function listen(figure, place) {
  place.on("plotly_relayout", (changes) => remember(figure, changes));
  place.on("plotly_click", (event) => {
    const number = trialOf(event.points[0]);
    const target = document.querySelector("main").dataset.trial;
    if (number === undefined || target === undefined) return;
    const to = target + encodeURIComponent(number);
    if (event.event && (event.event.ctrlKey || event.event.metaKey)) open(to, "_blank", "noopener");
    else location.assign(to);
  });
  place.on("plotly_restyle", () => brushed(place));
  place.on("plotly_hover", (event) => place.classList.toggle("leads", trialOf(event.points[0]) !== undefined));
  place.on("plotly_unhover", () => place.classList.remove("leads"));
}

// A trace of one trial has its number; a trace of many has one number per point.
function trialOf(point) {
  const meta = point.data.meta || {};
  if (meta.trial !== undefined) return meta.trial;
  if (!meta.trials) return undefined;
  const beside = point.customdata;
  const number = Array.isArray(beside) ? beside[0] : beside;
  return number === null || number === undefined || number < 0 ? undefined : number;
}

function remember(figure, changes) {
  const state = kept.get(figure);
  for (const [key, value] of Object.entries(changes)) {
    const axis = key.split(".")[0];
    if (!(axis in state.given)) continue;
    if (key.endsWith(".autorange") && value === true) {
      if (state.given[axis]) state.zoom[axis] = "all";
      else delete state.zoom[axis];
    } else if (key.endsWith(".range") && Array.isArray(value)) {
      zoomed(state, axis, value);
    } else if (key.endsWith(".range[0]")) {
      zoomed(state, axis, [value, changes[axis + ".range[1]"]]);
    }
  }
}

function zoomed(state, axis, range) {
  const given = state.given[axis];
  const same = given && given.every((end, place) => Math.abs(end - range[place]) <= 1e-9 * Math.abs(given[1] - given[0]));
  if (same) delete state.zoom[axis];
  else state.zoom[axis] = range;
}

// Turn ranges brushed on parallel coordinates into a filter of the table.
function brushed(place) {
  const axes = place.layout.meta && place.layout.meta.axes;
  if (!axes) return;
  const terms = [];
  place.data[0].dimensions.forEach((dimension, number) => {
    const given = dimension.constraintrange;
    if (!given || !given.length) return;
    const ranges = Array.isArray(given[0]) ? given : [given];
    const values = ranges.flatMap((range) => chosenOn({ ...axes[number], ends: dimension.range }, range));
    if (values.length) terms.push(quoted(axes[number].name) + "=" + values.join("|"));
  });
  document.dispatchEvent(new CustomEvent("brushed", { detail: terms.join(" ") }));
}

function chosenOn(axis, [low, high]) {
  if (axis.choices) {
    return axis.choices.filter((_, number) => low <= number && number <= high).map(quoted);
  }
  if (axis.open === "high" && high >= axis.ends[1]) high = Number.MAX_VALUE; // values beyond are drawn at the end
  if (axis.open === "low" && low <= axis.ends[0]) low = -Number.MAX_VALUE;
  const scaled = (end) => (axis.log ? 10 ** end : end).toPrecision(6).replace(/\.?0+($|e)/, "$1");
  return [scaled(low) + ".." + scaled(high)];
}

function quoted(text) {
  if (/^[^\s<>=!"|,\\]+$/.test(text) && !text.includes("..")) return text;
  return '"' + text.replaceAll("\\", "\\\\").replaceAll('"', '\\"') + '"';
}

function choose(figure, option, values) {
  const target = new URL(figure.dataset.figure, location.href);
  target.searchParams.delete(option);
  for (const value of values) target.searchParams.append(option, value);
  figure.dataset.figure = target.pathname + target.search;
  draw(figure);
}

function pressed(button) {
  const figure = button.closest("figure");
  const option = button.dataset.option;
  const group = [...figure.querySelectorAll(`button[data-option="${option}"]`)];
  const on = button.getAttribute("aria-pressed") === "true";
  if ("switch" in button.dataset || "many" in button.dataset) button.setAttribute("aria-pressed", String(!on));
  else for (const other of group) other.setAttribute("aria-pressed", String(other === button));
  const chosen = group.filter((other) => other.getAttribute("aria-pressed") === "true").map((other) => other.dataset.value);
  if (!chosen.length && "many" in button.dataset) {
    button.setAttribute("aria-pressed", "true"); // at least one stays pressed
    return;
  }
  choose(figure, option, chosen);
}

function selected(select) {
  const figure = select.closest("figure");
  for (const other of figure.querySelectorAll("select[data-option]")) {
    const pair = new Set([select.dataset.option, other.dataset.option]);
    if (other !== select && other.value === select.value && pair.has("x") && pair.has("y")) {
      other.value = select.dataset.before; // both axes cannot show one parameter: swap them
      other.dataset.before = other.value;
      const target = new URL(figure.dataset.figure, location.href);
      target.searchParams.set(other.dataset.option, other.value);
      figure.dataset.figure = target.pathname + target.search;
    }
  }
  select.dataset.before = select.value;
  choose(figure, select.dataset.option, [select.value]);
}

function drawAgain() {
  for (const figure of document.querySelectorAll("[data-figure]")) current.delete(figure);
  const waiting = [...document.querySelectorAll("figure[data-why]")].slice(0, 2);
  return [...visible, ...waiting.filter((figure) => !visible.has(figure))];
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) {
      visible.delete(entry.target);
    } else {
      visible.add(entry.target);
      if (!current.has(entry.target)) draw(entry.target);
    }
  }
}, { rootMargin: "200px" });

for (const figure of document.querySelectorAll("[data-figure]")) watcher.observe(figure);
for (const button of document.querySelectorAll("button[data-option]")) button.addEventListener("click", () => pressed(button));
for (const select of document.querySelectorAll("select[data-option]")) {
  select.dataset.before = select.value;
  select.addEventListener("change", () => selected(select));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAgain().forEach(draw));
