// figure.js: what every moving figure is. A figure's own file says what to draw and what to say:
//
//   import { axes, curve } from "./kit/draw.js";
//   import { figure } from "./kit/figure.js";
//   import { num } from "./kit/numbers.js";
//   import { pairColor } from "./kit/theme.js";
//
//   /** What is said: a pure function of what is shown, so that a test can read it. */
//   export const words = (m, angle) =>
//     `The angle is **${num(angle)} rad** at distance ${m}.\nmθ = ${num(angle, 3)}.`;
//
//   export default figure((fig) => {
//     const plot = fig.canvas({ label: "What the picture shows", height: (width) => width / 2 });
//     fig.draw(() => {                        // after every change of a trait, size or theme
//       const { m, theta } = fig.traits;      // the values of all traits, by name
//       const { ctx, width, height } = plot.clear();   // CSS pixels; HiDPI is taken care of
//       const at = axes(plot, { x: [0, 10], y: [-1, 1], xLabel: "distance" });
//       curve(plot, xs.map(at.x), ys.map(at.y), pairColor(3, 64));
//       fig.say(words(m, m * theta));
//     });
//     fig.showMe(async () => {                // the button "Show me": plays the key moment
//       await fig.glide({ m: 40 }, 2500);     // moves traits (and, linked, their sliders)
//       await fig.pause(800);
//     });
//     fig.button("Shift both by 10", () => fig.set({ m: fig.traits.m + 10 }));
//     fig.notice("What to notice, in one sentence.");
//   });
//
// fig.canvas(options) -> plot   options: label, height (required): a number or (width) => number;
//     point({ x, y, type }) on hover or tap; drag({ x, y, begins }) where the pointer is pressed,
//     true if it takes hold of something, and then wherever it moves; sideways: whether that moves
//     to the left and right alone, so that a finger can scroll over it; keys({ dx, dy }) on arrow
//     keys (times 10 with Shift, -+Infinity for Home and End); help: how to use keys and pointer.
//     plot: { canvas, ctx, width, height, clear() }
// fig.traits          values by name; a Choice trait is its option's text
// fig.set({ name: value })           a Choice trait takes its option's text
// fig.whenChanged(name, action)      something else that follows a trait, such as another trait
// fig.colors          { dark, ink, muted, rule, paper, accent, warm, q, k } of the page's theme
// fig.say(text)       up to the first line break the answer to the figure's question, large above
//     the picture and read out once the figure is quiet; the rest small beneath it; **bold**
// fig.notice(text)    a sentence or two in the same fold
// fig.button(label, action) · fig.showMe(action)     "Reset" comes by itself; what is shown comes
//     into sight first
// fig.glide({ name: target }, ms) · fig.pause(ms)    stopped when the reader takes a control
//     (with motion reduced, glide goes there at once)
// fig.reducedMotion   whether the reader wants motion reduced: then jump instead of stepping
// fig.controls        the nodes of its controls, by the names of their traits
// fig.element(tag, properties, ...children) -> a DOM node added to the figure's body
// fig.formula(node, latex)           typeset LaTeX in a node
//
// The other files of the kit: draw.js (axes, curves, maps), numbers.js (numbers as text, ticks),
// theme.js (colours), dom.js (elements), player.js (what the buttons play), controls.js (what the
// traits of the Python class declare: sliders, choices, checkboxes), plot.js.
// The figure's root element carries data-figure ("angle-heatmap"), data-drawn once it is drawn,
// data-draws (how often) and data-draw-ms (the last duration in milliseconds).
import { makeControls } from "./controls.js";
import { figureName, make, setRich } from "./dom.js";
import { makePlayer } from "./player.js";
import { makePlot } from "./plot.js";
import { followTheme, reducedMotion, themeColors } from "./theme.js";

/** Make the module's default export from a function that sets one figure up. */
export function figure(setUp) {
  return { render: ({ model, el }) => mount(setUp, model, el) };
}

function mount(setUp, model, el) {
  const body = make("div", { className: "rope-body" });
  const answer = make("p", { className: "rope-answer" });
  const spoken = make("p", { className: "rope-spoken", "aria-live": "polite" });
  const caption = make("p", { className: "rope-caption" });
  const notice = make("p", { className: "rope-notice" });
  const more = { className: "rope-notes", hidden: true };
  const notes = make("details", more, make("summary", {}, "Numbers and notes"), caption, notice);
  const buttons = make("div", { className: "rope-buttons" });
  const name = figureName(model);
  const root = make("div", { className: "rope-figure", "data-figure": name }, answer, body, notes, spoken, buttons);
  const traits = traitsOf(model);
  const controls = makeControls(model, traits.follow);
  const words = (className, text) => (text ? [make("p", { className }, text)] : []);
  const heading = words("rope-question", model.get("_question"));
  const own = words("rope-model", model.get("_own_model"));
  const box = make("div", { className: "rope-box" }, ...heading, root, ...own, ...controls.rows);
  el.append(box);

  const plots = [];
  const stops = []; // what ends when the figure leaves the page
  let colors = null; // of the theme, since they were read last
  const painter = makePainter(root, body, plots);
  const typesetter = makeTypesetter(model, root);
  const player = makePlayer(box, root, buttons, { ended: painter.schedule });
  const voice = makeVoice(root, spoken);

  const fig = {
    model,
    root,
    controls: controls.nodes,
    get traits() {
      return traits.values();
    },
    get colors() {
      colors ??= themeColors(box);
      return colors;
    },
    get reducedMotion() {
      return reducedMotion();
    },
    set: traits.set,
    whenChanged: (name, action) => stops.push(traits.follow([name], action)),
    canvas(options) {
      const plot = makePlot(fig, fig.element("canvas", { className: "rope-canvas" }), options);
      if (options.help) fig.element("p", { className: "rope-help" }, options.help);
      plots.push(plot);
      return plot;
    },
    element: (...parts) => body.appendChild(make(...parts)),
    formula: typesetter.formula,
    draw: painter.use,
    redraw: painter.schedule,
    say(content) {
      const [first, ...rest] = content.split("\n");
      setRich(answer, first);
      setRich(caption, rest.join(" "));
      notes.hidden = !notes.querySelector("p:not(:empty)");
      keepHeight(answer);
      voice.say(answer.textContent);
    },
    notice: (content) => setRich(notice, content),
    button(label, action) {
      const node = make("button", { type: "button", className: "rope-button" }, label);
      node.addEventListener("click", () => player.play(async () => action()));
      buttons.insertBefore(node, buttons.querySelector(".rope-reset"));
      return node;
    },
    showMe(action) {
      const node = fig.button("Show me", async () => {
        if (comeIntoSight(root)) await fig.pause(SCROLL);
        await action();
      });
      node.classList.add("rope-show");
      buttons.prepend(node);
    },
    glide(targets, ms = 2000) {
      const between = traits.between(targets);
      return player.tween(ms, (part) => fig.set(between(part)));
    },
    pause: player.pause,
  };
  fig.button("Reset", traits.reset).classList.add("rope-reset");
  if (controls.unfold) buttons.append(controls.unfold);

  const retheme = () => {
    colors = null;
    painter.schedule();
  };
  // a picture that makes its own place higher is not drawn again
  const sizes = new ResizeObserver(() => body.clientWidth !== painter.width && painter.schedule());
  sizes.observe(body);
  stops.push(
    traits.follow(traits.names, painter.schedule),
    followTheme(box, retheme),
    controls.stop,
    () => sizes.disconnect(),
    typesetter.stop,
    player.stop,
    painter.stop,
    voice.stop,
  );
  setUp(fig);
  return () => stops.forEach((stop) => stop());
}

/** What has been two lines high once stays so at this width, or the picture beneath would go up and down. */
function keepHeight(node) {
  const { clientWidth: width } = node;
  if (node.ropeWidth !== width) node.style.minHeight = "";
  node.style.minHeight = `${node.offsetHeight}px`;
  node.ropeWidth = width;
}

const SCROLL = 600; // ms until the page has come to rest

/** Scroll the page so that the top of a figure is in sight, below what a page keeps there; whether it must move. */
function comeIntoSight(node) {
  const kept = Number.parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
  if (node.getBoundingClientRect().top > kept - 1) return false;
  node.scrollIntoView({ block: "start", behavior: reducedMotion() ? "instant" : "smooth" });
  return !reducedMotion();
}

const QUIET = 500; // ms without a change before the answer is read out

/** { say(text), stop() }: writes the last of many answers into the node that a screen reader reads. */
function makeVoice(root, node) {
  let timer = 0;
  let said = null; // the first answer is read with the page, not after it
  const say = (text) => {
    clearTimeout(timer);
    said ??= text;
    if (text === said) return;
    timer = setTimeout(() => {
      if (root.dataset.playing) return say(text);
      node.textContent = said = text;
    }, QUIET);
  };
  return { say, stop: () => clearTimeout(timer) };
}

/**
 * { use(action), schedule(), width, stop() }: draws once a frame at most, now when it is first shown or printed,
 * and only while it has a size; width is that of the body in which it drew last.
 */
function makePainter(root, body, plots) {
  let draw = () => {};
  let pending = 0;
  const painter = { width: null };
  const paint = () => {
    pending = 0;
    painter.width = null;
    if (!body.clientWidth || !plots.every((plot) => plot.fit())) return;
    painter.width = body.clientWidth;
    const begun = performance.now();
    draw();
    root.dataset.drawMs = (performance.now() - begun).toFixed(2);
    root.dataset.draws = Number(root.dataset.draws ?? 0) + 1;
    root.dataset.drawn = "true";
  };
  const schedule = () => {
    pending ||= requestAnimationFrame(paint);
  };
  const use = (action) => {
    draw = action;
    schedule();
  };
  const now = () => {
    cancelAnimationFrame(pending);
    if (pending || painter.width === null) paint();
  };
  root.addEventListener("now", now); // from host.js
  return Object.assign(painter, { use, schedule, stop: () => cancelAnimationFrame(pending) });
}

/** The traits of a figure's model by name, where a Choice trait is the text of its option. */
function traitsOf(model) {
  const options = model.get("_options") ?? {};
  const start = model.get("_start") ?? {};
  const steps = model.get("_limits") ?? {};
  const names = Object.keys(start);
  const raw = (name, wanted) => {
    if (!(name in options)) return wanted;
    const index = options[name].indexOf(wanted);
    if (index < 0) throw new Error(`${name} must be one of ${options[name].join(", ")}; got ${wanted}`);
    return index;
  };
  const value = (name) => (name in options ? options[name][model.get(name)] : model.get(name));
  return {
    names,
    values: () => Object.fromEntries(names.map((name) => [name, value(name)])),
    set(values) {
      for (const [name, wanted] of Object.entries(values)) model.set(name, raw(name, wanted));
      model.save_changes();
    },
    reset() {
      for (const name of names) model.set(name, start[name]);
      model.save_changes();
    },
    /** From here to the targets: a function of the part of the way; whole numbers stay whole. */
    between(targets) {
      const way = Object.entries(targets).map(([name, to]) => [name, model.get(name), to]);
      return (part) =>
        Object.fromEntries(
          way.map(([name, from, to]) => {
            const at = part === 1 ? to : from + (to - from) * part;
            return [name, steps[name]?.[2] ? Math.round(at) : at];
          }),
        );
    },
    follow(some, action) {
      for (const name of some) model.on(`change:${name}`, action);
      return () => {
        for (const name of some) model.off(`change:${name}`, action);
      };
    },
  };
}

/** { formula(node, latex), stop() }: MathJax where the page has it, else the kernel's MathML. */
function makeTypesetter(model, root) {
  const answer = ({ latex, mathml }) => {
    for (const node of root.querySelectorAll("[data-latex]")) {
      if (node.dataset.latex === latex) node.innerHTML = mathml;
    }
  };
  model.on("msg:custom", answer);
  const formula = (node, latex) => {
    if (node.dataset.latex === latex) return;
    node.dataset.latex = latex;
    const math = window.MathJax;
    if (!math?.tex2chtmlPromise) {
      node.textContent = latex;
      model.send({ latex });
      return;
    }
    math.tex2chtmlPromise(latex, { display: false }).then((typeset) => {
      if (node.dataset.latex !== latex) return;
      node.replaceChildren(typeset);
      math.startup.document.clear();
      math.startup.document.updateDocument();
    });
  };
  return { formula, stop: () => model.off("msg:custom", answer) };
}
