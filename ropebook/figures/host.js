// host.js: figures and their controls on a page without Jupyter, from the state that ipywidgets
// writes. It draws what controls.py makes and nothing else; another kind of widget is an error.
//
//   const host = open(state)         state: { id: { model_name, state: { ... } } }
//   host.draw(id, element)           draw a box, a figure or a control, and what it holds
//   host.start("?m=7&show=angle")    set traits of the page's first figure, before it is drawn
//   host.address()                   "m=7&show=angle": the traits that differ from the start
//   drawPage()                       draw every figure of a page of the book
//   drawAlone()                      draw the one figure of a page of its own: window.ropeHost.shown
//
// A figure's script puts its module into window.ropeFigures under its name ("clock").
import { figureName, make } from "./kit/dom.js";
import { clamp } from "./kit/numbers.js";

const REFERENCE = "IPY_MODEL_";

/** A widget's state, with what Backbone and anywidget promise of it. */
class Model {
  constructor(kind, state, formulas) {
    Object.assign(this, { kind, state, formulas, listeners: new Map() });
  }
  get(name) {
    return this.state[name];
  }
  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value;
    this.trigger(`change:${name}`, this, value);
    this.trigger("change", this);
  }
  save_changes() {} // there is no kernel
  on(event, action) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), action]);
  }
  off(event, action) {
    const left = (this.listeners.get(event) ?? []).filter((other) => other !== action);
    this.listeners.set(event, left);
  }
  trigger(event, ...content) {
    for (const action of this.listeners.get(event) ?? []) action(...content);
  }
  /** The kernel's one answer is a formula as MathML: a page of its own carries them. */
  send({ latex }) {
    const mathml = this.formulas[latex];
    if (mathml) this.trigger("msg:custom", { latex, mathml });
  }
}

// ---- numbers ------------------------------------------------------------------------------------

/** Without the noise of binary fractions. */
const clean = (value) => Number(value.toPrecision(12));

/** A number as ",d", ",.2f" and ",.3r" write it. */
export function formatted(value, format) {
  const [, digits, kind] = /^,(?:\.(\d+))?([dfr])$/.exec(format) ?? [];
  if (!kind) throw new Error(`there is no number format ${format}`);
  const limits = {
    d: { maximumFractionDigits: 0 },
    f: { minimumFractionDigits: Number(digits), maximumFractionDigits: Number(digits) },
    r: { minimumSignificantDigits: Number(digits), maximumSignificantDigits: Number(digits) },
  };
  return value.toLocaleString("en-US", limits[kind]).replace("-", "−");
}

/** The number that somebody typed; NaN if it is none. */
export function typed(text) {
  const plain = text.replace(/[,\s]/g, "").replace("−", "-");
  return plain ? Number(plain) : Number.NaN;
}

/** A slider's numbers by their stops, 0 to `last`: { last, value(stop), stop(value), within(value) }. */
export function stops({ min, max, step, base }) {
  const power = (exponent) => clean(base ? base ** exponent : exponent);
  const place = (value) => (base ? Math.log(value) / Math.log(base) : value);
  const last = Math.ceil(clean((max - min) / step));
  return {
    last,
    value: (stop) => power(Math.min(min + stop * step, max)),
    stop: (value) => (value >= power(max) ? last : clamp(Math.round((place(value) - min) / step), 0, last)),
    within: (value) => clamp(value, power(min), power(max)),
  };
}

// ---- controls -----------------------------------------------------------------------------------

let count = 0;
const label = (model, of) => make("label", { className: "widget-label", htmlFor: of }, model.get("description"));

/** A control that shows the value of its model now and after every change; show(value) writes it. */
function following(model, name, show, className, ...children) {
  const action = () => show(model.get(name));
  model.on(`change:${name}`, action);
  action();
  return make("div", { className }, ...children);
}

function slider(model) {
  const id = `rope-control-${++count}`;
  const { min, max, step, base, readout_format: format, description } = model.state;
  const steps = stops({ min, max, step, base: model.kind === "FloatLogSlider" ? base : 0 });
  const track = make("input", { type: "range", className: "rope-track", id, min: 0, max: steps.last, step: 1 });
  const readout = make("input", { type: "text", className: "widget-readout", "aria-label": `${description}, value` });
  readout.inputMode = "decimal";
  readout.autocomplete = "off";
  const widest = [0, steps.last].map((stop) => formatted(steps.value(stop), format).length);
  readout.style.width = `${Math.max(...widest) + 1}ch`;
  const show = (value) => {
    const text = formatted(value, format);
    track.value = steps.stop(value);
    track.setAttribute("aria-valuetext", text);
    readout.value = text;
  };
  track.addEventListener("input", () => model.set("value", steps.value(Number(track.value))));
  const take = () => {
    const value = typed(readout.value);
    const whole = model.kind === "IntSlider" ? Math.round(value) : value;
    if (readout.value !== formatted(model.get("value"), format) && Number.isFinite(value)) {
      model.set("value", steps.within(whole));
    }
    show(model.get("value"));
  };
  readout.addEventListener("change", take);
  readout.addEventListener("focus", () => readout.select());
  readout.addEventListener("keydown", ({ key }) => {
    if (key === "Enter") take();
    if (key === "Escape") show(model.get("value"));
  });
  return following(model, "value", show, "widget-hslider", label(model, id), readout, track);
}

function toggleButtons(model) {
  const id = `rope-control-${++count}`;
  const buttons = model.get("_options_labels").map((text, index) => {
    const button = make("button", { type: "button", className: "widget-toggle-button" }, text);
    button.addEventListener("click", () => model.set("index", index));
    return button;
  });
  const show = (chosen) => {
    buttons.forEach((button, index) => {
      button.classList.toggle("mod-active", index === chosen);
      button.setAttribute("aria-pressed", String(index === chosen));
    });
  };
  const name = make("span", { className: "widget-label", id }, model.get("description"));
  const row = make("div", {}, ...buttons);
  const group = following(model, "index", show, "widget-toggle-buttons", name, row);
  group.setAttribute("role", "group");
  group.setAttribute("aria-labelledby", id);
  return group;
}

function dropdown(model) {
  const id = `rope-control-${++count}`;
  const options = model.get("_options_labels").map((text) => make("option", {}, text));
  const select = make("select", { id }, ...options);
  select.addEventListener("change", () => model.set("index", select.selectedIndex));
  const show = (index) => {
    select.selectedIndex = index;
  };
  return following(model, "index", show, "widget-dropdown", label(model, id), select);
}

function checkbox(model) {
  const input = make("input", { type: "checkbox" });
  input.addEventListener("change", () => model.set("value", input.checked));
  const show = (value) => {
    input.checked = value;
  };
  const words = make("label", {}, input, make("span", {}, model.get("description")));
  return following(model, "value", show, "widget-checkbox", words);
}

function html(model) {
  const node = make("div", { className: "widget-html" });
  node.innerHTML = model.get("value"); // written by this package, never by a reader
  return node;
}

function box(model, draw) {
  return make("div", { className: "widget-box" }, ...model.get("children").map((id) => draw(id)));
}

function figure(model) {
  const module = window.ropeFigures?.[figureName(model)];
  if (!module) throw new Error(`there is no script of the figure ${figureName(model)}`);
  const el = make("div", { className: "rope-cell" });
  module.render({ model, el });
  return el;
}

const KINDS = {
  Any: figure,
  Box: box,
  Checkbox: checkbox,
  Dropdown: dropdown,
  FloatLogSlider: slider,
  FloatSlider: slider,
  HTML: html,
  IntSlider: slider,
  Link: null, // not drawn
  ToggleButtons: toggleButtons,
  VBox: box,
};

// ---- the state ----------------------------------------------------------------------------------

/** Make the widgets of a state; `formulas` are MathML by their LaTeX. */
export function open(state, formulas = {}) {
  const models = new Map();
  for (const [id, { model_name: name, state: values }] of Object.entries(state)) {
    const kind = name.replace(/Model$/, "");
    if (!(kind in KINDS)) throw new Error(`host.js draws no widget of the kind ${kind}`);
    models.set(id, new Model(kind, { ...values }, formulas));
  }
  const find = (id) => models.get(id.replace(REFERENCE, ""));
  for (const { kind, state: ends } of models.values()) {
    if (kind === "Link") link(find, ends.source, ends.target);
  }
  const draw = (id) => {
    const model = find(id);
    const node = KINDS[model.kind](model, draw);
    node.classList.add(...(model.get("_dom_classes") ?? []));
    return node;
  };
  const [shown] = [...models.values()].filter(({ kind }) => kind === "Any");
  const began = { ...shown?.get("_start") };
  return {
    draw: (id, element) => element.append(draw(id)),
    start: (query) => start(shown, query),
    address: () => address(shown, began),
    models,
  };
}

/** Keep two traits the same, as jslink does; the second end is the figure's, which knows its limits. */
function link(find, [from, source], [to, target]) {
  const [control, driven] = [find(from), find(to)];
  control.set(source, driven.get(target));
  driven.on(`change:${target}`, () => control.set(source, driven.get(target)));
  control.on(`change:${source}`, () => {
    driven.set(target, fitting(driven, target, control.get(source)));
    control.set(source, driven.get(target));
  });
}

/** A number within the limits of a figure's trait and on one of its steps; others as they are. */
function fitting(model, name, value) {
  const [low, high, step] = model.get("_limits")?.[name] ?? [];
  if (step === undefined) return value;
  const on = step ? Math.round(value / step) * step : value;
  return clamp(on, low ?? -Infinity, high ?? Infinity);
}

// ---- the address --------------------------------------------------------------------------------

/** The value of a trait that a text of the address means; what is wrong with it is thrown. */
function meant(model, name, text) {
  const options = model.get("_options")?.[name];
  const limits = model.get("_limits")?.[name];
  if (options) {
    if (options.includes(text)) return options.indexOf(text);
    throw new Error(`${name} must be one of ${options.join(", ")}; got ${text}`);
  }
  if (limits) {
    const value = typed(text);
    if (!Number.isFinite(value)) throw new Error(`${name} must be a number, got ${text}`);
    if (limits[2] && value % limits[2]) throw new Error(`${name} must be a multiple of ${limits[2]}, got ${text}`);
    return fitting(model, name, value);
  }
  if (typeof model.get("_start")?.[name] !== "boolean") throw new Error(`there is no ${name} to set`);
  if (text !== "true" && text !== "false") throw new Error(`${name} must be true or false, got ${text}`);
  return text === "true";
}

/** Set traits from the query of an address, and make them what "Reset" goes back to. */
function start(model, query) {
  const first = { ...model?.get("_start") };
  for (const [name, text] of new URLSearchParams(query)) {
    if (name === "theme") continue; // the page's, not the figure's
    try {
      if (!model) throw new Error("there is no figure");
      first[name] = meant(model, name, text);
      model.set(name, first[name]);
    } catch (problem) {
      console.warn(`the address was not followed: ${problem.message}`);
    }
  }
  model?.set("_start", first);
}

/** The query that leads to the present state: every trait that it can set and that has changed. */
function address(model, began) {
  const [options, limits] = [model?.get("_options") ?? {}, model?.get("_limits") ?? {}];
  const query = new URLSearchParams();
  for (const [name, first] of Object.entries(began)) {
    const value = model.get(name);
    if (value === first) continue;
    if (name in options) query.set(name, options[name][value]);
    else if (name in limits || typeof first === "boolean") query.set(name, String(value));
  }
  return query.toString();
}

// ---- pages --------------------------------------------------------------------------------------

const json = (selector) => JSON.parse(document.querySelector(selector).textContent);

const frame = () => new Promise(requestAnimationFrame);

/** Draw every figure of a page of the book in its place, once its text has been painted. */
export async function drawPage() {
  await frame();
  await frame();
  const host = open(json('script[type$="widget-state+json"]').state);
  for (const view of document.querySelectorAll('script[type$="widget-view+json"]')) {
    const place = make("div", { className: "rope-place" });
    view.after(place);
    place.style.visibility = "hidden"; // it draws once it knows its size: nothing is seen to move
    frame()
      .then(frame)
      .then(() => place.style.removeProperty("visibility"));
    try {
      host.draw(JSON.parse(view.textContent).model_id, place);
    } catch (problem) {
      window.reportError(problem); // the other figures are drawn all the same
    }
    await new Promise((go) => setTimeout(go)); // the reader may do something in between
  }
  performance.mark("figures");
}

/** Draw the figure of a page of its own, as its address says, in the theme that the reader likes. */
export function drawAlone() {
  const { root, state, formulas } = json("#rope-state");
  const theme = new URLSearchParams(window.location.search).get("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const wear = () => {
    document.documentElement.dataset.theme = theme ?? (dark.matches ? "dark" : "light");
  };
  wear();
  dark.addEventListener("change", wear);
  const host = open(state, formulas);
  host.start(window.location.search);
  const main = document.querySelector("main");
  main.replaceChildren(); // a page that a browser saved holds the figure as it was
  host.draw(root, main);
  const question = document.querySelector(".rope-question");
  question?.setAttribute("role", "heading"); // of the page
  question?.setAttribute("aria-level", "1");
  window.ropeHost.shown = host; // for what else is on the page, such as a button that copies the address
}

export default { open, drawPage, drawAlone };
