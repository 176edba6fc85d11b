// controls.js: the controls of a figure, native elements that follow its traits.
import { make, newId } from "./dom.js";
import { clamp, grouped } from "./numbers.js";

/** A number within a trait's limits [low, high, step], on one of its steps; a step of 0 is none. */
export function fitting(value, [low, high, step]) {
  const on = step ? Math.round(value / step) * step : value;
  return clamp(on, low ?? -Infinity, high ?? Infinity);
}

const UNITS = { k: 2 ** 10, m: 2 ** 20 };

/** The number that somebody typed, of tokens also as 128k or 1M; NaN if it is none. */
export function typed(text, { tokens } = {}) {
  const plain = text.replace(/[,\s]/g, "").replace("−", "-");
  const unit = tokens && UNITS[plain.slice(-1).toLowerCase()];
  const digits = unit ? plain.slice(0, -1) : plain;
  return digits ? Number(digits) * (unit || 1) : Number.NaN;
}

/** A number as a slider shows it: whole, or with digits after the point; on a logarithmic one, significant. */
export function formatted(value, { digits, per_decade: decade }) {
  if (!decade || !digits) return grouped(value, digits ?? 0);
  const rounded = Number(value.toPrecision(digits));
  return grouped(rounded, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded)))));
}

/** Without the noise of binary fractions. */
const clean = (value) => Number(value.toPrecision(12));

/** A slider's numbers by their stops, 0 to `last`: { last, value(stop), stop(value) }. */
export function stops([low, high], { every, per_decade: decade }) {
  const place = (value) => (decade ? decade * Math.log10(value / low) : (value - low) / every);
  const number = (stop) => (decade ? low * 10 ** (stop / decade) : low + stop * every);
  const last = Math.ceil(clean(place(high)));
  return {
    last,
    value: (stop) => clean(Math.min(number(stop), high)),
    stop: (value) => (value >= high ? last : clamp(Math.round(place(value)), 0, last)),
  };
}

// each kind returns its node, and a function that writes a value into it

const named = (label, id) => make("label", { className: "rope-label", htmlFor: id }, label);

function slider(control, change, limits) {
  const { label } = control;
  const id = newId();
  const steps = stops(limits, control);
  const track = make("input", { type: "range", className: "rope-track", id, min: 0, max: steps.last, step: 1 });
  track.setAttribute("data-lm-suppress-shortcuts", ""); // JupyterLab: arrows open headings, if one is the active cell
  const readout = make("input", { type: "text", className: "rope-value", "aria-label": `${label}, value` });
  readout.inputMode = "decimal";
  readout.autocomplete = "off";
  const widest = [0, steps.last].map((stop) => formatted(steps.value(stop), control).length);
  readout.style.width = `${Math.max(...widest) + 1}ch`;
  let shown; // the number
  const show = (value) => {
    shown = value;
    const text = formatted(value, control);
    track.value = steps.stop(value);
    track.setAttribute("aria-valuetext", text);
    readout.value = text;
  };
  const take = () => {
    const value = typed(readout.value, control);
    // a number that only shows fewer digits than it has is not changed by passing through
    if (readout.value !== formatted(shown, control) && Number.isFinite(value)) change(value);
    show(shown);
  };
  track.addEventListener("input", () => change(steps.value(Number(track.value))));
  readout.addEventListener("change", take);
  readout.addEventListener("focus", () => readout.select());
  readout.addEventListener("keydown", ({ key }) => {
    if (key === "Enter") take();
    if (key === "Escape") show(shown);
  });
  return { show, node: make("div", { className: "rope-slider" }, named(label, id), readout, track) };
}

function buttons({ label }, change, options) {
  const id = newId();
  const all = options.map((text, index) => make("button", { type: "button", onclick: () => change(index) }, text));
  const show = (chosen) =>
    all.forEach((button, index) => button.setAttribute("aria-pressed", String(index === chosen)));
  const name = make("span", { className: "rope-label", id }, label);
  const node = make("div", { className: "rope-choice", role: "group" }, name, make("div", {}, ...all));
  node.setAttribute("aria-labelledby", id);
  return { show, node };
}

function list({ label }, change, options) {
  const id = newId();
  const select = make("select", { id }, ...options.map((text) => make("option", {}, text)));
  select.addEventListener("change", () => change(select.selectedIndex));
  const show = (index) => {
    select.selectedIndex = index;
  };
  return { show, node: make("div", { className: "rope-select" }, named(label, id), select) };
}

function checkbox({ label }, change) {
  const input = make("input", { type: "checkbox" });
  input.addEventListener("change", () => change(input.checked));
  const show = (value) => {
    input.checked = value;
  };
  const words = make("label", {}, input, make("span", {}, label));
  return { show, node: make("div", { className: "rope-check" }, words) };
}

/**
 * The controls that a model's traits declare: { nodes, rows, unfold, stop() }, the nodes by the names
 * of their traits; unfold is the button of those that lie in the fold, or null. follow(names, action)
 * follows traits and returns a function that stops.
 */
export function makeControls(model, follow) {
  const [nodes, ends] = [{}, []];
  const [seen, more] = ["rope-controls", "rope-controls rope-more"].map((className) => make("div", { className }));
  const elsewhere = model.get("_elsewhere") ?? []; // these have a slider of ipywidgets
  for (const control of model.get("_controls") ?? []) {
    const { name, fold } = control;
    if (elsewhere.includes(name)) continue;
    const options = model.get("_options")[name];
    const limits = model.get("_limits")[name];
    const kind = limits ? slider : !options ? checkbox : options.length > 4 ? list : buttons;
    const change = (value) => {
      model.set(name, limits ? fitting(value, limits) : value);
      model.save_changes();
    };
    const { node, show } = kind(control, change, limits ?? options);
    const update = () => show(model.get(name));
    update();
    ends.push(follow([name], update));
    nodes[name] = node;
    (fold ? more : seen).append(node);
  }
  const rows = [seen, more].filter((row) => row.childElementCount);
  for (const row of rows) row.addEventListener("keydown", keepToItself);
  const unfold = more.childElementCount ? unfolds(more) : null;
  return { nodes, rows, unfold, stop: () => ends.forEach((end) => end()) };
}

/** A key that a control obeys does not move a notebook to another cell as well. */
function keepToItself(event) {
  if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
}

/** A button that shows and hides the controls that a reader seldom wants. */
function unfolds(more) {
  more.id = newId();
  const button = make("button", { type: "button", className: "rope-button rope-unfold", "aria-controls": more.id });
  const show = (open) => {
    button.textContent = open ? "Fewer settings" : "More settings";
    more.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => show(more.hidden));
  show(false);
  return button;
}
