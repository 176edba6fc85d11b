// kit.js: what every moving figure needs. A figure's own file says what to draw and what to say:
//
//   import { figure, pairColor } from "./kit.js";
//   import { inverseFrequencies } from "./rope.js";
//
//   export default figure((fig) => {
//     const plot = fig.canvas({ label: "What the picture shows", height: (width) => width / 2 });
//     fig.draw(() => {                        // after every change of a trait, size or theme
//       const { m, theta } = fig.traits;      // the values of all traits, by name
//       const { ctx, width, height } = plot.clear();   // CSS pixels; HiDPI is taken care of
//       const at = axes(plot, { x: [0, 10], y: [-1, 1], xLabel: "distance" });
//       curve(plot, xs.map(at.x), ys.map(at.y), pairColor(3, 64));
//       fig.say(`At distance **${m}** the angle is **${num(m * theta)}** rad.`);
//     });
//     fig.showMe(async () => {                // the button "Show me": plays the key moment
//       await fig.glide({ m: 40 }, 2500);     // moves traits (and, linked, their sliders)
//       await fig.pause(800);
//     });
//     fig.button("Shift both by 10", () => fig.set({ m: fig.traits.m + 10 }));
//     fig.notice("What to notice, in one sentence.");
//   });
//
// fig.canvas(options) -> plot   options: label (required); height: number or (width) => number;
//     point({ x, y, type }) on hover, drag or tap; keys({ dx, dy }) on arrow keys (times 10 with
//     Shift, -+Infinity for Home and End); help: a sentence on how to use keys and pointer.
//     plot: { canvas, ctx, width, height, clear() }
// fig.traits          values by name; a Choice trait is its option's text
// fig.set({ name: value })           a Choice trait takes its option's text
// fig.colors          { dark, ink, muted, rule, paper, accent, warm, q, k } of the page's theme
// fig.say(text)       the caption under the picture, read out politely; **bold** for numbers
// fig.notice(text)    one quiet sentence at the end
// fig.button(label, action) · fig.showMe(action)     "Reset" comes by itself
// fig.glide({ name: target }, ms) · fig.pause(ms)    stopped when the reader takes a control
//     (with motion reduced, glide goes there at once)
// fig.calm            whether the reader wants motion reduced: then jump instead of stepping
// fig.element(tag, properties) -> a DOM node added to the figure's body
// fig.formula(node, latex)           typeset LaTeX in a node
//
// Drawing: axes, curve, arrow, disc, text, paintCells, colorBar.  Colours: pairColor(i, pairs),
// phaseColor(angle), angleColor(t), cosineColor(c).  Numbers: num(x, digits).
// The figure's root element carries data-figure ("angle-heatmap"), data-drawn once it is drawn,
// data-draws (how often) and data-draw-ms (the last duration in milliseconds).

import { PALETTE } from "./palette.js";

// ---- colours ------------------------------------------------------------------------------------

const lookups = {};

function anchors(name) {
  const table = PALETTE[name];
  return name === "phase" ? [...table, table[0]] : table;
}

/** [r, g, b] in 0..255 at t in 0..1 of one of the palette's tables. */
export function paletteColor(name, t) {
  const table = anchors(name);
  const at = Math.min(Math.max(t, 0), 1) * (table.length - 1);
  const low = Math.min(Math.floor(at), table.length - 2);
  const channel = (hex, c) => parseInt(hex.slice(1 + 2 * c, 3 + 2 * c), 16);
  return [0, 1, 2].map((c) => {
    const from = channel(table[low], c);
    return Math.round(from + (channel(table[low + 1], c) - from) * (at - low));
  });
}

const css = ([r, g, b]) => `rgb(${r}, ${g}, ${b})`;
/** The hue of pair i of `pairs`: fast is warm, slow is cool. */
export const pairColor = (i, pairs) => css(paletteColor("pair", pairs > 1 ? i / (pairs - 1) : 0));
/** The cyclic colour of an angle in radians. */
export const phaseColor = (angle) => css(paletteColor("phase", turnPart(angle)));
/** The sequential colour of t in 0..1, small to large angle. */
export const angleColor = (t) => css(paletteColor("angle", t));
/** The colour of a cosine, -1..1. */
export const cosineColor = (c) => css(paletteColor("cosine", (c + 1) / 2));

function turnPart(angle) {
  const turns = angle / (2 * Math.PI);
  return turns - Math.floor(turns);
}

/** The table `name` as 256 pixels for ImageData. */
export function lookup(name) {
  lookups[name] ??= Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = paletteColor(name, name === "phase" ? i / 256 : i / 255);
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
  return lookups[name];
}

// ---- numbers ------------------------------------------------------------------------------------

/** A number for reading: `digits` after the point, groups of three, a true minus sign. */
export function num(x, digits = 2) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "not a number";
  if (x !== 0 && Math.abs(x) < 0.5 * 10 ** -digits) return small(x);
  const [whole, part] = Math.abs(x).toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  const sign = x < 0 && Number(x.toFixed(digits)) !== 0 ? "−" : "";
  return sign + grouped + (part ? `.${part}` : "");
}

function small(x) {
  const [mantissa, exponent] = Math.abs(x).toExponential(1).split("e");
  const digits = [...String(Math.abs(exponent))].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("");
  return `${x < 0 ? "−" : ""}${mantissa}·10⁻${digits}`;
}

/** Round values for the ticks of an axis, about `count` of them. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(i * step);
  return out;
}

// ---- drawing ------------------------------------------------------------------------------------

/** Write on the plot. options: color, size, align, baseline, bold, angle, halo. */
export function text(plot, content, x, y, options = {}) {
  const { ctx, colors } = plot;
  ctx.save();
  ctx.font = `${options.bold ? "600 " : ""}${options.size ?? 12}px ${colors.font}`;
  ctx.textAlign = options.align ?? "left";
  ctx.textBaseline = options.baseline ?? "middle";
  ctx.translate(x, y);
  ctx.rotate(options.angle ?? 0);
  if (options.halo !== false) {
    ctx.lineJoin = "round";
    ctx.lineWidth = 3;
    ctx.strokeStyle = colors.paper;
    ctx.strokeText(content, 0, 0);
  }
  ctx.fillStyle = options.color ?? colors.muted;
  ctx.fillText(content, 0, 0);
  ctx.restore();
}

/**
 * Draw axes and return { x, y, invX, invY, box }: data to CSS pixels and back.
 * options: x, y: [low, high]; xLabel, yLabel; xTicks, yTicks: values, or [] for none;
 * xLog, yLog; xFormat, yFormat: value to text; box: { left, top, right, bottom } margins; grid.
 */
export function axes(plot, options) {
  const { ctx, width, height, colors } = plot;
  const margin = { left: 46, top: 10, right: 10, bottom: 38, ...options.box };
  const box = { x0: margin.left, y0: margin.top, x1: width - margin.right, y1: height - margin.bottom };
  const scale = ([low, high], from, to, log) => {
    const f = log ? Math.log : (v) => v;
    const g = log ? Math.exp : (v) => v;
    const [a, b] = [f(low), f(high)];
    return [
      (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from),
      (p) => g(a + ((p - from) / (to - from || 1)) * (b - a)),
    ];
  };
  const [x, invX] = scale(options.x, box.x0, box.x1, options.xLog);
  const [y, invY] = scale(options.y, box.y1, box.y0, options.yLog);
  const decades = ([low, high]) => {
    const out = [];
    for (let e = Math.ceil(Math.log10(low) - 1e-9); 10 ** e <= high * 1.000001; e++) out.push(10 ** e);
    return out;
  };
  const plain = (v) => num(v, Math.abs(v) >= 10 || Number.isInteger(v) ? 0 : Math.abs(v) < 0.1 && v ? 3 : 2).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  const wide = box.x1 - box.x0;
  const tall = box.y1 - box.y0;
  const xTicks = options.xTicks ?? (options.xLog ? decades(options.x) : ticks(...options.x, wide / 80));
  const yTicks = options.yTicks ?? (options.yLog ? decades(options.y) : ticks(...options.y, tall / 40));
  ctx.save();
  ctx.lineWidth = 1;
  ctx.strokeStyle = colors.rule;
  for (const v of yTicks) {
    const at = Math.round(y(v)) + 0.5;
    if (options.grid !== false) line(ctx, box.x0, at, box.x1, at);
    text(plot, (options.yFormat ?? plain)(v), box.x0 - 7, at, { align: "right", size: 11.5, halo: false });
  }
  for (const v of xTicks) {
    const at = Math.round(x(v)) + 0.5;
    if (options.grid !== false) line(ctx, at, box.y1, at, box.y1 + 4);
    text(plot, (options.xFormat ?? plain)(v), at, box.y1 + 13, { align: "center", size: 11.5, halo: false });
  }
  ctx.restore();
  if (options.xLabel) text(plot, options.xLabel, (box.x0 + box.x1) / 2, box.y1 + 30, { align: "center", halo: false });
  if (options.yLabel) text(plot, options.yLabel, 9, (box.y0 + box.y1) / 2, { align: "center", angle: -Math.PI / 2, halo: false });
  return { x, y, invX, invY, box };
}

function line(ctx, x0, y0, x1, y1) {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

/** A line through pixel points. options: width, dash, alpha, fill (down to this y). */
export function curve(plot, xs, ys, color, options = {}) {
  const { ctx } = plot;
  ctx.save();
  ctx.beginPath();
  for (let i = 0; i < xs.length; i++) ctx.lineTo(xs[i], ys[i]);
  ctx.strokeStyle = color;
  ctx.globalAlpha = options.alpha ?? 1;
  ctx.lineWidth = options.width ?? 1.75;
  ctx.lineJoin = "round";
  ctx.setLineDash(options.dash ?? []);
  ctx.stroke();
  ctx.restore();
}

/** An arrow in pixels, its head at (x1, y1). options: width, label, dash, alpha. */
export function arrow(plot, x0, y0, x1, y1, color, options = {}) {
  const { ctx } = plot;
  const width = options.width ?? 2.5;
  const length = Math.hypot(x1 - x0, y1 - y0);
  const head = Math.min(6 + 2.2 * width, length);
  const angle = Math.atan2(y1 - y0, x1 - x0);
  ctx.save();
  ctx.globalAlpha = options.alpha ?? 1;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = width;
  ctx.lineCap = "round";
  ctx.setLineDash(options.dash ?? []);
  line(ctx, x0, y0, x1 - 0.8 * head * Math.cos(angle), y1 - 0.8 * head * Math.sin(angle));
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  for (const side of [-1, 1]) {
    const a = angle + side * 0.38;
    ctx.lineTo(x1 - head * Math.cos(a), y1 - head * Math.sin(a));
  }
  ctx.fill();
  ctx.restore();
  if (options.label) {
    const out = 13;
    text(plot, options.label, x1 + out * Math.cos(angle), y1 + out * Math.sin(angle), {
      color, bold: true, size: 15, align: "center",
    });
  }
}

/** A filled disc in pixels. options: ring (stroke colour). */
export function disc(plot, x, y, radius, color, options = {}) {
  const { ctx, colors } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.fillStyle = color;
  ctx.fill();
  ctx.lineWidth = 1.5;
  ctx.strokeStyle = options.ring ?? colors.paper;
  ctx.stroke();
  ctx.restore();
}

/** Paint columns x rows cells into box; index(column, row) says which of 256 colours of `name`. */
export function paintCells(plot, box, columns, rows, name, index) {
  const table = lookup(name);
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) pixels[at++] = table[index(column, row)];
  }
  plot.scratch ??= document.createElement("canvas");
  plot.scratch.width = columns;
  plot.scratch.height = rows;
  plot.scratch.getContext("2d").putImageData(image, 0, 0);
  const { ctx } = plot;
  const shrinks = columns > (box.x1 - box.x0) * plot.ratio || rows > (box.y1 - box.y0) * plot.ratio;
  ctx.imageSmoothingEnabled = shrinks;
  ctx.imageSmoothingQuality = "high";
  ctx.drawImage(plot.scratch, box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
}

/** Beside a map whose rows are pairs: their hues, the numbers of some; returns where a pair's row lies. */
export function pairAxis(plot, box, pairs, marked) {
  const rowHeight = (box.y1 - box.y0) / pairs;
  const yOf = (pair) => box.y0 + (pair + 0.5) * rowHeight;
  for (let i = 0; i < pairs; i++) {
    plot.ctx.fillStyle = pairColor(i, pairs);
    plot.ctx.fillRect(box.x0 - 8, box.y0 + i * rowHeight, 5, rowHeight + 0.5);
  }
  for (const i of marked) text(plot, String(i), box.x0 - 13, yOf(i), { align: "right", size: 11.5, halo: false });
  text(plot, "pair, fast to slow", 9, (box.y0 + box.y1) / 2, { align: "center", angle: -Math.PI / 2, halo: false });
  return yOf;
}

/** The cursor of a map: a cross over it that is seen on every colour, and a disc where it meets. */
export function crosshair(plot, box, x, y, color) {
  const { ctx } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
  ctx.clip();
  for (const [line, width] of [["rgba(0,0,0,0.55)", 3], ["#ffffff", 1.25]]) {
    curve(plot, [box.x0, box.x1], [y, y], line, { width });
    curve(plot, [x, x], [box.y0, box.y1], line, { width });
  }
  ctx.restore();
  disc(plot, x, y, 4.5, color, { ring: "#ffffff" });
}

/** A horizontal key for a palette table; marks: [[t, text], ...] with t in 0..1. */
export function colorBar(plot, x, y, width, name, marks, height = 8) {
  const { ctx, colors } = plot;
  for (let p = 0; p < width; p++) {
    ctx.fillStyle = css(paletteColor(name, p / (width - 1)));
    ctx.fillRect(x + p, y, 1.5, height);
  }
  for (const [t, label] of marks) {
    ctx.fillStyle = colors.muted;
    ctx.fillRect(x + t * (width - 1), y + height, 1, 3);
    const align = t < 0.02 ? "left" : t > 0.98 ? "right" : "center";
    text(plot, label, x + t * width, y + height + 11, { align, size: 11.5, halo: false });
  }
}

// ---- the figure ---------------------------------------------------------------------------------

const STOPPED = Symbol("stopped");
const PRIVATE = new Set(["layout", "tabbable", "tooltip"]);

/** Make the module's default export from a function that sets one figure up. */
export function figure(setUp) {
  return { render: ({ model, el }) => mount(setUp, model, el) };
}

function mount(setUp, model, el) {
  const root = document.createElement("div");
  root.className = "rope-figure";
  root.dataset.figure = figureName(model);
  const body = add(root, "div", { className: "rope-body" });
  const caption = add(root, "p", { className: "rope-caption" });
  caption.setAttribute("aria-live", "polite");
  const buttons = add(root, "div", { className: "rope-buttons" });
  el.append(root);

  const plots = [];
  const options = model.get("_options") ?? {};
  const start = model.get("_start") ?? {};
  const names = Object.keys(start).filter((name) => !PRIVATE.has(name));
  let redraw = () => {};
  let pending = 0;
  let run = 0; // the number of the play in progress; another number stops it
  let colors = themeColors(root);

  const reducedMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const value = (name) => {
    const raw = model.get(name);
    return name in options ? options[name][raw] : raw;
  };
  const rawValue = (name, wanted) => {
    if (!(name in options)) return wanted;
    const index = options[name].indexOf(wanted);
    if (index < 0) throw new Error(`${name} must be one of ${options[name].join(", ")}; got ${wanted}`);
    return index;
  };
  const schedule = () => {
    pending ||= requestAnimationFrame(() => {
      pending = 0;
      if (!plots.every((plot) => plot.fit())) return;
      const begun = performance.now();
      redraw();
      root.dataset.drawMs = (performance.now() - begun).toFixed(2);
      root.dataset.draws = Number(root.dataset.draws ?? 0) + 1;
      root.dataset.drawn = "true";
    });
  };
  const finish = (which) => {
    if (which !== run || !root.dataset.playing) return;
    delete root.dataset.playing;
    caption.setAttribute("aria-live", "polite");
    schedule();
  };
  const play = async (action) => {
    const mine = ++run;
    root.dataset.playing = "true";
    caption.setAttribute("aria-live", "off");
    try {
      await action();
    } catch (problem) {
      if (problem !== STOPPED) throw problem;
    } finally {
      finish(mine);
    }
  };
  const frame = (mine) =>
    new Promise((go, stop) => requestAnimationFrame(() => (mine === run && root.isConnected ? go() : stop(STOPPED))));

  const fig = {
    model,
    root,
    get traits() {
      return Object.fromEntries(names.map((name) => [name, value(name)]));
    },
    get colors() {
      return colors;
    },
    get calm() {
      return reducedMotion();
    },
    set(values) {
      for (const [name, wanted] of Object.entries(values)) model.set(name, rawValue(name, wanted));
      model.save_changes();
    },
    canvas(settings) {
      const plot = makePlot(fig, add(body, "canvas", { className: "rope-canvas" }), settings);
      if (settings.help) add(body, "p", { className: "rope-help", textContent: settings.help });
      plots.push(plot);
      return plot;
    },
    element: (tag, properties) => add(body, tag, properties),
    formula(node, latex) {
      if (node.dataset.latex === latex) return;
      node.dataset.latex = latex;
      const math = window.MathJax;
      if (!math?.tex2chtmlPromise) {
        node.textContent = latex;
        model.send({ latex }); // the kernel answers in MathML: see `answer`
        return;
      }
      math.tex2chtmlPromise(latex, { display: false }).then((typeset) => {
        if (node.dataset.latex !== latex) return;
        node.replaceChildren(typeset);
        math.startup.document.clear();
        math.startup.document.updateDocument();
      });
    },
    draw(action) {
      redraw = action;
      schedule();
    },
    redraw: schedule,
    say: (content) => setRich(caption, content),
    notice: (content) => setRich((fig.note ??= add(root, "p", { className: "rope-notice" })), content),
    button(label, action) {
      const node = document.createElement("button");
      node.type = "button";
      node.className = "rope-button";
      node.textContent = label;
      node.addEventListener("click", () => play(async () => action()));
      buttons.insertBefore(node, buttons.querySelector(".rope-reset"));
      return node;
    },
    showMe(action) {
      const node = fig.button("Show me", action);
      node.classList.add("rope-show");
      buttons.prepend(node);
    },
    async glide(targets, ms = 2000) {
      const mine = run;
      const from = Object.fromEntries(Object.keys(targets).map((name) => [name, model.get(name)]));
      const whole = (name) => Number.isInteger(from[name]) && Number.isInteger(targets[name]);
      const begun = performance.now();
      for (let part = 0; part < 1; ) {
        await frame(mine);
        part = reducedMotion() ? 1 : Math.min((performance.now() - begun) / ms, 1);
        const eased = part < 0.5 ? 2 * part * part : 1 - 2 * (1 - part) ** 2;
        const now = {};
        for (const name of Object.keys(targets)) {
          const at = from[name] + (targets[name] - from[name]) * eased;
          now[name] = part === 1 ? targets[name] : whole(name) ? Math.round(at) : at;
        }
        fig.set(now);
      }
    },
    async pause(ms) {
      const mine = run;
      const until = performance.now() + ms;
      while (performance.now() < until) await frame(mine);
    },
  };

  const reset = fig.button("Reset", () => {
    for (const name of names) model.set(name, start[name]);
    model.save_changes();
  });
  reset.classList.add("rope-reset");

  for (const name of names) model.on(`change:${name}`, schedule);
  const answer = ({ latex, mathml }) => {
    for (const node of body.querySelectorAll("[data-latex]")) if (node.dataset.latex === latex) node.innerHTML = mathml;
  };
  model.on("msg:custom", answer);
  const retheme = () => {
    colors = themeColors(root);
    schedule();
  };
  const sizes = new ResizeObserver(schedule);
  sizes.observe(body);
  const leaveTheme = followTheme(root, retheme);
  const unname = nameControls(root);
  const interrupt = ({ target, key }) => {
    const box = root.closest(".rope-box") ?? root;
    if (run < 0 || key === "Tab" || !box.contains(target) || buttons.contains(target)) return;
    finish(++run); // a reader who takes a control has it
  };
  document.addEventListener("pointerdown", interrupt, true);
  document.addEventListener("keydown", interrupt, true);

  setUp(fig);
  return () => {
    run = -1;
    cancelAnimationFrame(pending);
    for (const name of names) model.off(`change:${name}`, schedule);
    model.off("msg:custom", answer);
    sizes.disconnect();
    leaveTheme();
    document.removeEventListener("pointerdown", interrupt, true);
    document.removeEventListener("keydown", interrupt, true);
    unname();
  };
}

/** The figure's class as words-with-hyphens, for styles and tests: "angle-heatmap". */
export function figureName(model) {
  const name = String(model.get("_anywidget_id") ?? "").split(".").pop();
  return name.replace(/(?!^)([A-Z])/g, "-$1").toLowerCase();
}

function add(parent, tag, properties = {}) {
  const node = Object.assign(document.createElement(tag), properties);
  parent.append(node);
  return node;
}

/** Put text with **bold** and `code` into a node, never as HTML. */
export function setRich(node, content) {
  if (node.ropeContent === content) return;
  node.ropeContent = content;
  const parts = String(content).split(/(\*\*.+?\*\*|`.+?`)/);
  node.replaceChildren(
    ...parts.map((part) => {
      if (part.startsWith("**")) return Object.assign(document.createElement("b"), { textContent: part.slice(2, -2) });
      if (part.startsWith("`")) return Object.assign(document.createElement("code"), { textContent: part.slice(1, -1) });
      return document.createTextNode(part);
    }),
  );
}

/** Mark `root` with the page's theme now and whenever it changes; returns a function that stops. */
export function followTheme(root, changed = () => {}) {
  const mark = () => {
    themeColors(root);
    changed();
  };
  const themes = new MutationObserver(mark);
  const watched = { attributes: true, attributeFilter: ["data-theme", "data-jp-theme-light"] };
  themes.observe(document.documentElement, watched);
  themes.observe(document.body, watched);
  // The element is in the page, and its colours are known, only a little later.
  const timers = [0, 50, 500].map((ms) => setTimeout(mark, ms));
  return () => {
    themes.disconnect();
    timers.forEach(clearTimeout);
  };
}

function themeColors(root) {
  const { theme } = document.documentElement.dataset;
  const lab = document.body.dataset.jpThemeLight;
  const dark = theme === "dark" || (theme === undefined && lab === "false");
  root.dataset.ropeTheme = dark ? "dark" : "light";
  root.closest(".rope-box")?.setAttribute("data-rope-theme", root.dataset.ropeTheme);
  const style = getComputedStyle(root);
  const read = (name, fallback) => style.getPropertyValue(`--rope-${name}`).trim() || fallback;
  return {
    dark,
    ink: read("ink", dark ? "#dfe5ea" : "#1d2630"),
    muted: read("muted", dark ? "#a3afba" : "#52606d"),
    rule: read("rule", dark ? "#2f3a44" : "#dde2e7"),
    paper: read("paper", dark ? "#171d23" : "#ffffff"),
    accent: read("accent", dark ? "#6cc3ea" : "#0b6a92"),
    warm: read("warm", dark ? "#f3a866" : "#a84e00"),
    q: read("q", dark ? "#f3a866" : "#c2590a"),
    font: style.fontFamily || "sans-serif",
    k: read("k", dark ? "#6cb6f0" : "#1467a3"),
  };
}

function makePlot(fig, canvas, settings) {
  const plot = {
    canvas,
    ctx: canvas.getContext("2d"),
    width: 0,
    height: 0,
    ratio: 1,
    get colors() {
      return fig.colors;
    },
    fit() {
      const width = Math.floor(canvas.parentElement.clientWidth);
      if (!width) return false;
      const height = Math.round(typeof settings.height === "function" ? settings.height(width) : (settings.height ?? width / 2));
      const ratio = window.devicePixelRatio || 1;
      if (width !== plot.width || height !== plot.height || ratio !== plot.ratio) {
        Object.assign(plot, { width, height, ratio });
        canvas.style.height = `${height}px`;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      return true;
    },
    clear() {
      plot.ctx.setTransform(plot.ratio, 0, 0, plot.ratio, 0, 0);
      plot.ctx.clearRect(0, 0, plot.width, plot.height);
      return plot;
    },
  };
  canvas.setAttribute("aria-label", settings.label);
  canvas.setAttribute("role", settings.keys ? "application" : "img");
  if (settings.point) {
    canvas.classList.add("rope-touch");
    for (const type of ["pointerdown", "pointermove"]) {
      canvas.addEventListener(type, (event) => {
        if (fig.root.dataset.playing) return;
        const frame = canvas.getBoundingClientRect();
        settings.point({ x: event.clientX - frame.left, y: event.clientY - frame.top, type });
      });
    }
  }
  if (settings.keys) {
    canvas.tabIndex = 0;
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-Infinity, 0], End: [Infinity, 0], PageUp: [0, -10], PageDown: [0, 10] };
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation(); // or the notebook moves to another cell
      const [dx, dy] = steps[event.key].map((step) => (event.shiftKey ? 10 * step : step));
      settings.keys({ dx: dx || 0, dy: dy || 0 });
    });
  }
  return plot;
}

/**
 * ipywidgets gives its sliders' handles no name. Name them after their labels, wherever the figure
 * is shown, and let them speak the number that is shown instead of the handle's own.
 */
function nameControls(root) {
  const name = (box) => {
    const set = (node, attribute, wanted) => {
      if (node && node.getAttribute(attribute) !== wanted) node.setAttribute(attribute, wanted);
    };
    for (const control of box.querySelectorAll(".rope-controls > *")) {
      const label = control.querySelector(".widget-label")?.textContent.trim();
      if (!label) continue;
      const readout = control.querySelector(".widget-readout");
      for (const node of control.querySelectorAll('[title="null"]')) node.removeAttribute("title");
      for (const handle of control.querySelectorAll(".noUi-handle")) {
        set(handle, "aria-label", label);
        if (readout) set(handle, "aria-valuetext", readout.textContent);
      }
      if (readout) {
        set(readout, "role", "textbox");
        set(readout, "aria-label", `${label}, value`);
      }
      if (control.classList.contains("widget-toggle-buttons")) {
        set(control, "role", "group");
        set(control, "aria-label", label);
        for (const button of control.querySelectorAll("button")) {
          set(button, "aria-pressed", String(button.classList.contains("mod-active")));
        }
      }
    }
  };
  let observer = null;
  const watch = () => {
    const box = root.closest(".rope-box");
    if (!box || observer) return;
    observer = new MutationObserver(() => name(box));
    for (const controls of box.querySelectorAll(".rope-controls")) {
      observer.observe(controls, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["class", "aria-valuetext"] });
    }
    name(box);
  };
  // The box and the sibling views may be attached after this view.
  const timers = [0, 50, 250, 1000, 3000].map((ms) => setTimeout(watch, ms));
  return () => {
    timers.forEach(clearTimeout);
    observer?.disconnect();
  };
}
