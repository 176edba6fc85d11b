// A page for figures without a browser: happy-dom, a canvas that writes down what is drawn on it,
// and a clock that stands until it is moved. What needs a browser's layout is here as wide as said.
import { readFileSync } from "node:fs";
import { Window } from "happy-dom";

const SHEET = readFileSync(new URL("../../ropebook/figures/figure.css", import.meta.url), "utf8");
const tasks = () => new Promise((done) => setImmediate(done));

/** What a figure knows of its Python side: anywidget's model, for a state as Python's get_state() gives it. */
export class Model {
  constructor(state) {
    this.state = { ...state };
    this.listeners = new Map();
    this.sent = [];
  }
  get(name) {
    return this.state[name];
  }
  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value;
    this.tell(`change:${name}`);
  }
  save_changes() {}
  on(event, action) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), action]);
  }
  off(event, action) {
    this.listeners.set(
      event,
      this.listeners.get(event).filter((other) => other !== action),
    );
  }
  tell(event, ...content) {
    for (const action of this.listeners.get(event) ?? []) action(...content);
  }
  send(content) {
    this.sent.push(content);
  }
  /** How many listeners there are. */
  get heard() {
    return [...this.listeners.values()].flat().length;
  }
}

/** The drawing context of a canvas: a list of what was drawn since it was cleared, in CSS pixels. */
class Recorder {
  constructor() {
    this.drawn = [];
    this.path = [];
    this.saved = [];
    this.clips = [];
    this.matrix = [1, 0, 0, 1, 0, 0];
    Object.assign(this, { globalAlpha: 1, lineWidth: 1, strokeStyle: "#000000", fillStyle: "#000000", dash: [] });
    Object.assign(this, { font: "10px sans-serif", textAlign: "start" });
  }
  at(x, y) {
    const [a, b, c, d, e, f] = this.matrix;
    const { devicePixelRatio: ratio } = window;
    return [(a * x + c * y + e) / ratio, (b * x + d * y + f) / ratio];
  }
  add(kind, values) {
    this.drawn.push({ kind, alpha: this.globalAlpha, clips: this.clips, ...values });
  }
  save() {
    const { saved, drawn, path, ...state } = this;
    saved.push({ ...state, matrix: [...this.matrix] });
  }
  restore() {
    Object.assign(this, this.saved.pop());
  }
  setTransform(...matrix) {
    this.matrix = matrix;
  }
  translate(x, y) {
    const [a, b, c, d, e, f] = this.matrix;
    this.matrix = [a, b, c, d, a * x + c * y + e, b * x + d * y + f];
  }
  rotate(angle) {
    const [a, b, c, d, e, f] = this.matrix;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    this.matrix = [a * cos + c * sin, b * cos + d * sin, c * cos - a * sin, d * cos - b * sin, e, f];
  }
  clearRect() {
    this.drawn.length = 0;
  }
  beginPath() {
    this.path = [];
  }
  moveTo(x, y) {
    this.path.push([this.at(x, y)]);
  }
  lineTo(x, y) {
    if (this.path.length) this.path.at(-1).push(this.at(x, y));
    else this.moveTo(x, y);
  }
  bezierCurveTo(_a, _b, _c, _d, x, y) {
    this.lineTo(x, y);
  }
  closePath() {}
  arc(x, y, radius, from, to, counter = false) {
    const points = [0, 0.25, 0.5, 0.75, 1].map((part) => from + (to - from) * part);
    for (const angle of points) this.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    this.path.arc = { center: this.at(x, y), radius, from, to, counter };
  }
  rect(x, y, width, height) {
    this.path.rect = [...this.at(x, y), width, height];
  }
  roundRect(x, y, width, height) {
    this.rect(x, y, width, height);
  }
  clip() {
    this.clips = [...this.clips, this.path.rect];
  }
  stroke() {
    const { path, lineWidth: width, dash } = this;
    this.add("stroke", { lines: path.map((line) => [...line]), arc: path.arc, color: this.strokeStyle, width, dash });
  }
  fill() {
    const { path } = this;
    const lines = path.map((line) => [...line]);
    this.add("fill", { lines, arc: path.arc, rect: path.rect, color: String(this.fillStyle) });
  }
  fillRect(x, y, width, height) {
    this.add("rect", { rect: [...this.at(x, y), width, height], color: this.fillStyle });
  }
  strokeRect(x, y, width, height) {
    this.add("frame", { rect: [...this.at(x, y), width, height], color: this.strokeStyle, width: this.lineWidth });
  }
  setLineDash(dash) {
    this.dash = [...dash];
  }
  strokeText() {}
  fillText(text, x, y) {
    this.add("text", { text, at: this.at(x, y), color: this.fillStyle, align: this.textAlign, font: this.font });
  }
  measureText(text) {
    return { width: 7 * text.length };
  }
  createLinearGradient() {
    return { addColorStop() {} };
  }
  putImageData({ width, data }) {
    this.image = { columns: width, pixels: [...new Uint32Array(data.buffer)] };
  }
  drawImage(canvas, x, y, width, height) {
    this.add("image", { rect: [...this.at(x, y), width, height], ...canvas.getContext("2d").image });
  }
}

class Picture {
  constructor(width, height) {
    Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
  }
}

/** Make this process a page of a width; every page is a new one. */
export function openPage({ width = 700, height = 900, dark = false, calm = false, ratio = 1, lab = false } = {}) {
  const window = new Window({ width, height });
  const { document } = window;
  const page = { window, document, width, time: 0, frames: new Map(), timers: new Map(), listened: new Map() };
  Object.assign(page, { sizes: new Set(), observers: new Set() }); // what watches
  document.head.append(Object.assign(document.createElement("style"), { textContent: SHEET }));
  if (lab) document.body.dataset.jpThemeLight = String(!dark);
  else document.documentElement.dataset.theme = dark ? "dark" : "light";
  Object.assign(window, { devicePixelRatio: ratio, matchMedia: () => ({ matches: calm }) });

  const canvas = window.HTMLCanvasElement.prototype;
  canvas.getContext = function getContext() {
    this.recorder ??= new Recorder();
    return this.recorder;
  };
  canvas.setPointerCapture = () => {};
  Object.defineProperty(window.HTMLElement.prototype, "clientWidth", {
    get() {
      return this.isConnected && !this.closest('[style*="display: none"], .rope-place[hidden]') ? page.width : 0;
    },
  });
  class ResizeObserver {
    constructor(action) {
      Object.assign(this, { action, seen: new Map() });
    }
    observe(node) {
      this.seen.set(node, 0);
      page.sizes.add(this);
    }
    disconnect() {
      page.sizes.delete(this);
    }
    look() {
      const news = [...this.seen].filter(([node, before]) => node.clientWidth !== before);
      for (const [node] of news) this.seen.set(node, node.clientWidth);
      if (news.length) this.action(news);
    }
  }
  class MutationObserver extends window.MutationObserver {
    observe(...where) {
      page.observers.add(this);
      super.observe(...where);
    }
    disconnect() {
      page.observers.delete(this);
      super.disconnect();
    }
  }
  for (const target of [document, window]) {
    const { addEventListener: add, removeEventListener: remove } = target;
    const key = (type, action) => `${type} ${action.name}`;
    target.addEventListener = (type, action, options) => {
      page.listened.set(key(type, action), action);
      add.call(target, type, action, options);
    };
    target.removeEventListener = (type, action, options) => {
      page.listened.delete(key(type, action));
      remove.call(target, type, action, options);
    };
  }
  let id = 0;
  Object.assign(globalThis, {
    window,
    document,
    ResizeObserver,
    MutationObserver,
    ImageData: Picture,
    getComputedStyle: window.getComputedStyle.bind(window),
    requestAnimationFrame(action) {
      id += 1;
      page.frames.set(id, action);
      return id;
    },
    cancelAnimationFrame: (which) => page.frames.delete(which),
    setTimeout(action, ms = 0) {
      id += 1;
      page.timers.set(id, { action, at: page.time + ms });
      return id;
    },
    clearTimeout: (which) => page.timers.delete(which),
  });
  performance.now = () => page.time;

  /** Let `ms` pass in frames of `step`; the sizes are looked at after every frame, as in a browser. */
  page.pass = async (ms = 32, step = 16) => {
    for (const end = page.time + ms; page.time < end; ) {
      page.time += step;
      const now = [...page.frames.values()];
      page.frames.clear();
      for (const action of now) action(page.time);
      for (const [which, { action, at }] of page.timers) {
        if (at <= page.time && page.timers.delete(which)) action();
      }
      await tasks();
      for (const observer of [...page.sizes]) observer.look();
      await tasks();
    }
  };
  return page;
}

/** Show a figure in its box. */
export async function show(page, module, state) {
  const cell = page.document.createElement("div");
  const model = new Model(state);
  const unmount = module.render({ model, el: cell });
  page.document.body.append(cell);
  await page.pass();
  const root = cell.querySelector(".rope-figure");
  return { box: root.closest(".rope-box"), model, unmount, root };
}

/** What a hand does to a figure with one canvas that was shown on a page. */
export function handOn(page, root) {
  const canvas = root.querySelector("canvas");
  const values = () => JSON.parse(root.dataset.values);
  const send = async (event) => {
    canvas.dispatchEvent(event);
    await page.pass();
    return values();
  };
  const bare = { bubbles: true, cancelable: true };
  return {
    values,
    drawn: () => canvas.getContext("2d").drawn,
    press: (key, shiftKey = false) => send(new page.window.KeyboardEvent("keydown", { key, shiftKey, ...bare })),
    point: (type, [clientX, clientY], pointerType = "mouse") =>
      send(new page.window.PointerEvent(type, { clientX, clientY, pointerType, button: 0, ...bare })),
    async click(label, ms) {
      [...root.querySelectorAll("button")].find((button) => button.textContent === label).click();
      await page.pass(ms);
    },
  };
}

/** What a figure shows in a state, and says: for a test in Python. */
export async function draw(url, state, options = {}, { press = [], pass = 0 } = {}) {
  const page = openPage(options);
  const { box, root } = await show(page, (await import(url)).default, state);
  for (const label of press) {
    [...root.querySelectorAll("button")].find((button) => button.textContent === label).click();
    await page.pass(pass);
  }
  await page.pass();
  const plots = [...root.querySelectorAll("canvas")].map((canvas) => ({
    label: canvas.getAttribute("aria-label"),
    width: canvas.width / window.devicePixelRatio,
    height: canvas.height / window.devicePixelRatio,
    drawn: canvas.getContext("2d").drawn,
  }));
  const style = getComputedStyle(box);
  const colors = ["ink", "muted", "rule", "paper", "accent", "warm", "q", "k"];
  return {
    plots,
    says: [".rope-answer", ".rope-caption"]
      .map((what) => root.querySelector(what).textContent)
      .join("\n")
      .trim(),
    values: JSON.parse(root.dataset.values ?? "null"),
    colors: Object.fromEntries(colors.map((name) => [name, style.getPropertyValue(`--rope-${name}`)])),
  };
}
