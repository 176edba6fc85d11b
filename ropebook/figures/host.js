// host.js: figures on a page without Jupyter, from the state that ipywidgets writes.
//
//   const host = open(state)         state: the values of a figure's traits
//   host.draw(element)               draw the figure
//   host.start("?m=7&show=angle")    set traits, before it is drawn
//   host.address()                   "m=7&show=angle": the traits that differ from the start
//   drawPage()                       draw the figures of a page of the book, as its reader comes near
//   hurry()                          draw those, too, that wait until the reader comes near
//   drawAlone()                      draw the one figure of a page of its own: window.ropeHost.shown
//
// A figure's script puts its module into window.ropeFigures under its name ("clock").
import { fitting, typed } from "./kit/controls.js";
import { figureName, make } from "./kit/dom.js";

/** A figure's state, with the interface of Backbone's and anywidget's model. */
class Model {
  constructor(state, formulas) {
    Object.assign(this, { state: { ...state }, formulas, listeners: new Map() });
  }
  get(name) {
    return this.state[name];
  }
  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value;
    this.trigger(`change:${name}`, this, value);
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

/** Make a figure of its state; `formulas` are MathML by their LaTeX. */
export function open(state, formulas = {}) {
  const model = new Model(state, formulas);
  const began = { ...model.get("_start") };
  return {
    draw(el) {
      const module = window.ropeFigures?.[figureName(model)];
      if (!module) throw new Error(`there is no script of the figure ${figureName(model)}`);
      module.render({ model, el });
    },
    start: (query) => start(model, query),
    address: () => address(model, began),
  };
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
    return fitting(value, limits);
  }
  if (typeof model.get("_start")?.[name] !== "boolean") throw new Error(`there is no ${name} to set`);
  if (text !== "true" && text !== "false") throw new Error(`${name} must be true or false, got ${text}`);
  return text === "true";
}

/** Set traits from the query of an address, and make them what "Reset" goes back to. */
function start(model, query) {
  const first = { ...model.get("_start") };
  for (const [name, text] of new URLSearchParams(query)) {
    if (name === "theme") continue; // the page's, not the figure's
    try {
      first[name] = meant(model, name, text);
      model.set(name, first[name]);
    } catch (problem) {
      console.warn(`the address was not followed: ${problem.message}`);
    }
  }
  model.set("_start", first);
}

/** The query that leads to the present state: every trait that it can set and that has changed. */
function address(model, began) {
  const [options, limits] = [model.get("_options") ?? {}, model.get("_limits") ?? {}];
  const query = new URLSearchParams();
  for (const [name, first] of Object.entries(began)) {
    const value = model.get(name);
    if (value === first) continue;
    if (name in options) query.set(name, options[name][value]);
    else if (name in limits || typeof first === "boolean") query.set(name, String(value));
  }
  query.sort(); // a build from a cache has another order
  return query.toString();
}

// ---- pages --------------------------------------------------------------------------------------

const json = (selector) => JSON.parse(document.querySelector(selector).textContent);

const frame = () => new Promise(requestAnimationFrame);
const task = () => new Promise((go) => setTimeout(go));

/** Hold a place for every figure of a page of the book, and draw those that its reader comes near. */
export async function drawPage() {
  await frame();
  await frame(); // its text has been painted
  const { state } = json('script[type$="widget-state+json"]');
  window.addEventListener("beforeprint", print);
  for (const view of document.querySelectorAll('script[type$="widget-view+json"]')) {
    const place = make("div", { className: "rope-place" });
    view.after(place);
    const figure = state[JSON.parse(view.textContent).model_id];
    whenNear(place, () => (figure?._data ? drawLoaded(place, figure) : drawIn(place, figure)));
  }
}

/** Set a figure of a page up and draw it, each in a task of its own; the others are drawn, too, if it fails. */
async function drawIn(place, figure) {
  place.hidden = true; // a frame between the two has nothing to lay out
  try {
    open(figure).draw(place);
  } catch (problem) {
    window.reportError(problem);
  }
  await task();
  show(place);
  performance.mark("figures");
}

/** Let the figure of a place be seen: it is drawn now, and not in the frame that lays it out. */
function show(place) {
  place.hidden = false;
  place.querySelector(".rope-figure")?.dispatchEvent(new window.Event("now"));
}

/** Draw a figure whose data stand in a script of their own, when they have come. */
function drawLoaded(place, figure) {
  const script = make("script", { src: figure._data });
  script.onload = () => drawIn(place, { ...figure, data: window.ropeData[script.src] });
  script.onerror = () => place.append("The data of this figure did not come. Load the page again to try once more.");
  document.body.append(script);
}

const NEAR = "800px"; // below the screen, and above
const waiting = new Set();
let turn = Promise.resolve();

/** Draw what stands in a place when the reader comes near: what is near at once has a frame each, and tasks of its own. */
function whenNear(place, draw) {
  const come = () => {
    if (!waiting.delete(come)) return null;
    seen.disconnect();
    return draw();
  };
  const inTurn = () => {
    if (waiting.has(come)) turn = turn.then(task).then(come).then(frame);
  };
  const seen = new IntersectionObserver((all) => all.some((one) => one.isIntersecting) && inTurn(), {
    rootMargin: NEAR,
  });
  waiting.add(come);
  seen.observe(place);
}

/** Draw what waits, as for a program that does not scroll. */
export function hurry() {
  for (const come of waiting) come();
}

/** Draw all that has no data to wait for, at once: paper shows no later frame. */
function print() {
  hurry();
  document.querySelectorAll(".rope-place").forEach(show);
}

/** Draw the figure of a page of its own, as its address says, in the theme that the reader likes. */
export function drawAlone() {
  const { state, formulas } = json("#rope-state");
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
  host.draw(main);
  const question = document.querySelector(".rope-question");
  question?.setAttribute("role", "heading"); // of the page
  question?.setAttribute("aria-level", "1");
  window.ropeHost.shown = host; // for what else is on the page, such as a button that copies the address
}

export default { open, drawPage, hurry, drawAlone };
