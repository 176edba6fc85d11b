// The figures' kit on a page without a browser: what runs when, what stops it, and what is left behind.
import assert from "node:assert/strict";
import { test } from "node:test";
import choice from "../../ropebook/figures/choice_question.js";
import { setRich } from "../../ropebook/figures/kit/dom.js";
import { arrow, axes, cellAt, colorBar, pairAxis, scale } from "../../ropebook/figures/kit/draw.js";
import { figure } from "../../ropebook/figures/kit/figure.js";
import {
  clamp,
  decades,
  num,
  percent,
  short,
  superscript,
  ticks,
  tickText,
} from "../../ropebook/figures/kit/numbers.js";
import { makePlayer } from "../../ropebook/figures/kit/player.js";
import { lookup, paletteColor } from "../../ropebook/figures/kit/theme.js";
import number from "../../ropebook/figures/number_question.js";
import { openPage, show } from "../tools/stage.mjs";

const near = (a, b, within = 1e-9) => assert.ok(Math.abs(a - b) <= within, `${a} is not ${b}`);
const SLIDER = `<div><label class="widget-label">Distance (tokens) </label><div class="noUi-handle" title="null"></div>
  <div class="widget-readout">40</div></div>`;
const TOGGLE = `<div class="widget-toggle-buttons"><label class="widget-label">Show</label>
  <button class="mod-active">angle</button><button>cosine</button></div>`;

/** A figure with a number, a whole number and a choice; it says them. */
async function probe(options = {}, controls = SLIDER + TOGGLE, setUp = () => {}) {
  const page = openPage(options);
  const start = { size: 0.5, m: 3, show: 1 };
  const state = {
    _anywidget_id: "ropebook.figures.PhaseDial",
    _start: start,
    _options: { show: ["angle", "cosine"] },
    _whole: ["m"],
  };
  const seen = { draws: 0, traits: [] };
  const module = figure((fig) => {
    seen.fig = fig;
    seen.plot = fig.canvas({ label: "A picture", height: 100, keys: () => {}, ...options.canvas });
    fig.draw(() => {
      seen.draws += 1;
      seen.traits.push(fig.traits);
      seen.colors = fig.colors;
      fig.say(`**${fig.traits.m}** and ${fig.traits.show}\nand \`numbers\``);
    });
    setUp(fig);
  });
  const shown = await show(page, module, { ...state, ...start }, controls);
  const [answer, caption, spoken] = ["answer", "caption", "spoken"].map((name) =>
    shown.root.querySelector(`.rope-${name}`),
  );
  const press = (label) => [...shown.root.querySelectorAll("button")].find((b) => b.textContent === label).click();
  return { page, ...shown, seen, answer, caption, spoken, press };
}

// ---- numbers ------------------------------------------------------------------------------------

test("ticks are round, about as many as asked, and inside the range", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0, 4, 4), [0, 1, 2, 3, 4]);
  assert.deepEqual(ticks(0, 20, 4), [0, 5, 10, 15, 20]);
  assert.deepEqual(ticks(3, 47, 5), [10, 20, 30, 40]);
  assert.deepEqual(ticks(-10, 48, 6), [-10, 0, 10, 20, 30, 40]);
  assert.deepEqual(ticks(0, 0.5, 2), [0, 0.5]);
  assert.deepEqual(ticks(7, 7), [7]);
  for (const few of [1, 0.2, 0]) assert.deepEqual(ticks(0, 10, few), [0, 10]);
  for (const [low, high, count] of [
    [0, 1, 3],
    [-3, 900, 7],
    [0.001, 0.0171, 4],
    [1e6, 3e6, 5],
  ]) {
    const found = ticks(low, high, count);
    const step = found[1] - found[0];
    const lead = Number(step.toExponential().split("e")[0]);
    assert.ok(
      [1, 2, 5].some((round) => Math.abs(lead - round) < 1e-6),
      `a step of ${step}`,
    );
    assert.ok(found.length <= count + 1 && found.length >= count / 2.5, `${found}`);
    assert.ok(found[0] >= low - 1e-9 && found.at(-1) <= high + 1e-9);
    assert.ok(found[0] - step < low && found.at(-1) + step > high, "none is missing at the ends");
  }
});

test("powers of ten, exponents and numbers without idle zeros", () => {
  assert.deepEqual(decades(1, 100000), [1, 10, 100, 1000, 10000, 100000]);
  assert.deepEqual(decades(0.72, 11.2), [1, 10]);
  assert.equal(superscript(-24), "⁻²⁴");
  const parts = [0, 0.004, -0.004, 0.437, 0.994, 0.9959, 0.99999, 1 - 1e-12, 1, -0.9999, 1.004];
  const said = ["0%", "0%", "0%", "44%", "99%", "99.6%", "99.9%", "100%", "100%", "−99.9%", "100%"];
  assert.deepEqual(
    parts.map((part) => percent(part)),
    said,
  );
  assert.equal(percent(0.9996, 1), "99.9%");
  assert.equal(percent(0.0004, 2), "0.04%");
  assert.deepEqual(
    [0.5, 1, 100, 2.25, -0.5].map((x) => short(x)),
    ["0.5", "1", "100", "2.25", "−0.5"],
  );
  assert.deepEqual([0, 1200, 0.05, 2.5, -3, 12.4].map(tickText), ["0", "1,200", "0.05", "2.5", "−3", "12"]);
  assert.deepEqual([clamp(-1, 0, 3), clamp(2, 0, 3), clamp(9, 0, 3)], [0, 2, 3]);
});

test("a number too small for its digits is written as a power of ten, with its sign", () => {
  assert.deepEqual([num(-5e-7, 6), num(4e-5, 3), num(0, 3), num(-0.5, 0)], ["−5.0·10⁻⁷", "4.0·10⁻⁵", "0.000", "−1"]);
  assert.deepEqual([num(Infinity), num(-Infinity), num(Number.NaN)], ["∞", "−∞", "not a number"]);
});

// ---- colours ------------------------------------------------------------------------------------

test("a palette ends at its ends", () => {
  for (const name of ["pair", "angle", "cosine"]) {
    assert.deepEqual(paletteColor(name, -3), paletteColor(name, 0), name);
    assert.deepEqual(paletteColor(name, 1.5), paletteColor(name, 1), name);
    assert.notDeepEqual(paletteColor(name, 0), paletteColor(name, 1), name);
  }
  assert.deepEqual(paletteColor("phase", 0), paletteColor("phase", 1), "one turn later");
  const [low, high] = [lookup("angle")[0], lookup("angle")[255]];
  const pixel = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  assert.deepEqual([low, high], [pixel(paletteColor("angle", 0)), pixel(paletteColor("angle", 1))]);
});

// ---- axes ---------------------------------------------------------------------------------------

const onPlot = (options) => {
  openPage();
  const canvas = document.createElement("canvas");
  const plot = { ctx: canvas.getContext("2d"), width: 400, height: 300, colors: { rule: "rule", muted: "muted" } };
  return { at: axes(plot, options), drawn: plot.ctx.drawn };
};

test("x grows to the right, y grows upwards, and a pixel leads back to its x", () => {
  const { at } = onPlot({ x: [0, 10], y: [-1, 1], box: { left: 40, top: 10, right: 20, bottom: 30 } });
  assert.deepEqual(at.box, { x0: 40, y0: 10, x1: 380, y1: 270 });
  assert.deepEqual([at.x(0), at.x(10), at.x(5)], [40, 380, 210]);
  assert.deepEqual([at.y(-1), at.y(1), at.y(0)], [270, 10, 140]);
  near(at.invX(at.x(3.25)), 3.25);
});

test("on logarithmic axes equal factors are equal steps", () => {
  const { at } = onPlot({
    x: [1, 1000],
    xLog: true,
    y: [0.01, 100],
    yLog: true,
    box: { left: 0, top: 0, right: 0, bottom: 0 },
  });
  for (const [i, value] of [1, 10, 100, 1000].entries()) near(at.x(value), (400 * i) / 3);
  for (const [i, value] of [0.01, 0.1, 1, 10, 100].entries()) near(at.y(value), 300 - 75 * i);
  near(at.invX(at.x(37)), 37);
});

test("every tick has its number beside it, and its line at its height", () => {
  const { at, drawn } = onPlot({
    x: [0, 10],
    y: [0, 100],
    xTicks: [0, 5],
    yTicks: [0, 50, 100],
    xLabel: "x",
    yLabel: "y",
  });
  const texts = Object.fromEntries(
    drawn.filter(({ kind }) => kind === "text").map(({ text, at: place }) => [text, place]),
  );
  for (const value of [50, 100]) near(texts[value][1], at.y(value), 1);
  near(texts[5][0], at.x(5), 1);
  assert.ok(texts.x[1] > at.box.y1 && texts.y[0] < at.box.x0);
  const lines = drawn.filter(({ kind }) => kind === "stroke").map(({ lines: [line] }) => line);
  assert.deepEqual(lines[2], [
    [at.box.x0, Math.round(at.y(100)) + 0.5],
    [at.box.x1, Math.round(at.y(100)) + 0.5],
  ]);
});

test("an empty range does not divide by zero", () => {
  const [f, g] = scale([5, 5], 0, 100, false);
  assert.deepEqual([f(5), g(40)], [0, 5]);
});

test("the key of a palette runs from its first colour to its last", () => {
  openPage();
  const canvas = document.createElement("canvas");
  const plot = { ctx: canvas.getContext("2d"), colors: { muted: "muted" } };
  colorBar(plot, 10, 20, 101, "angle", [
    [0, "low"],
    [0.5, "middle"],
    [1, "high"],
  ]);
  const { drawn } = plot.ctx;
  const bars = drawn.filter(({ kind, color }) => kind === "rect" && color !== "muted");
  assert.equal(bars[0].color, `rgb(${paletteColor("angle", 0).join(", ")})`);
  assert.equal(bars.at(-1).color, `rgb(${paletteColor("angle", 1).join(", ")})`);
  const labels = drawn.filter(({ kind }) => kind === "text");
  assert.deepEqual(
    labels.map(({ text, align }) => [text, align]),
    [
      ["low", "left"],
      ["middle", "center"],
      ["high", "right"],
    ],
  );
  assert.deepEqual(cellAt(10, 20, { x0: 10, y0: 20, x1: 110, y1: 30 }, 4, 2), { column: 0, row: 0 });
  assert.deepEqual(cellAt(34.9, 24.9, { x0: 10, y0: 20, x1: 110, y1: 30 }, 4, 2), { column: 0, row: 0 });
  assert.deepEqual(cellAt(999, 29, { x0: 10, y0: 20, x1: 110, y1: 30 }, 4, 2), { column: 3, row: 1 });
});

test("an arrow's head lies behind its tip, and its label beyond", () => {
  for (const [dx, dy] of [
    [0, 60],
    [40, -30],
    [-50, 0],
  ]) {
    openPage();
    const plot = { ctx: document.createElement("canvas").getContext("2d"), colors: { paper: "paper" } };
    arrow(plot, 100, 100, 100 + dx, 100 + dy, "red", { label: "q" });
    const along = ([x, y]) => ((x - 100) * dx + (y - 100) * dy) / Math.hypot(dx, dy);
    const [tip, ...ends] = plot.ctx.drawn.find(({ kind }) => kind === "fill").lines[0];
    assert.deepEqual(tip, [100 + dx, 100 + dy]);
    assert.equal(ends.length, 2);
    for (const end of ends) assert.ok(along(end) < along(tip) - 5);
    near(along(plot.ctx.drawn.find(({ text }) => text === "q").at), along(tip) + 13);
  }
});

test("the number of a pair stands in the middle of its row", () => {
  openPage();
  const plot = { ctx: document.createElement("canvas").getContext("2d"), colors: {} };
  const yOf = pairAxis(plot, { x0: 50, y0: 10, x1: 90, y1: 50 }, 4, [0, 3]);
  assert.deepEqual([0, 1, 2, 3].map(yOf), [15, 25, 35, 45]);
  const numbers = plot.ctx.drawn.filter(({ text }) => text === "0" || text === "3");
  assert.deepEqual(
    numbers.map(({ at }) => at[1]),
    [15, 45],
  );
});

// ---- text ---------------------------------------------------------------------------------------

test("rich text is bold and code, and never HTML", () => {
  openPage();
  const node = document.createElement("p");
  setRich(node, "a **b** and `c` <i>d</i>");
  assert.equal(node.innerHTML, "a <b>b</b> and <code>c</code> &lt;i&gt;d&lt;/i&gt;");
  const [first] = node.childNodes;
  setRich(node, "a **b** and `c` <i>d</i>");
  assert.equal(node.childNodes[0], first, "what is said already is not said again");
  setRich(node, "no more");
  assert.equal(node.innerHTML, "no more");
});

// ---- the figure ---------------------------------------------------------------------------------

test("a figure is drawn once its box has a width, once a frame, and again after every change", async () => {
  const { page, seen, root, answer, caption, model } = await probe();
  assert.equal(root.dataset.figure, "phase-dial");
  assert.deepEqual(seen.traits.at(-1), { size: 0.5, m: 3, show: "cosine" });
  assert.equal(answer.innerHTML, "<b>3</b> and cosine");
  assert.equal(caption.innerHTML, "and <code>numbers</code>");
  const order = [...root.children].map(({ className }) => className);
  assert.deepEqual(order, ["rope-answer", "rope-body", "rope-caption", "rope-spoken", "rope-buttons"]);
  const before = seen.draws;
  await page.pass(160);
  assert.equal(seen.draws, before, "nothing changed");
  seen.fig.set({ m: 4, show: "angle" });
  seen.fig.set({ size: 1 });
  assert.equal(model.get("show"), 0);
  await page.pass();
  assert.equal(seen.draws, before + 1, "three changes, one picture");
  assert.throws(() => seen.fig.set({ show: "sine" }), /show must be one of angle, cosine; got sine/);
  page.width = 350;
  await page.pass();
  assert.equal(seen.plot.width, 350);
  assert.equal(seen.draws, before + 2);
});

test("a canvas is as sharp as the screen, and its height may follow its width", async () => {
  const { seen } = await probe({ width: 500, ratio: 2, canvas: { height: (width) => width / 4 } });
  assert.deepEqual([seen.plot.width, seen.plot.height], [500, 125]);
  assert.deepEqual([seen.plot.canvas.width, seen.plot.canvas.height], [1000, 250]);
  assert.equal(seen.plot.canvas.style.height, "125px");
});

test("nothing is drawn where there is no room", async () => {
  const { page, seen } = await probe({ width: 0 });
  await page.pass(100);
  assert.equal(seen.draws, 0);
  page.width = 300;
  await page.pass();
  assert.equal(seen.draws > 0, true);
});

test("glide moves slowly at both ends, keeps whole numbers whole and ends where it should", async () => {
  const seenAt = [];
  const { page, seen, press } = await probe({}, "", (fig) => {
    fig.button("go", () => fig.glide({ m: 13, size: 0.1 }, 160));
    fig.whenChanged("size", () => seenAt.push([fig.model.get("m"), fig.model.get("size")]));
  });
  press("go");
  await page.pass(80);
  const [m, size] = seenAt.at(-1);
  assert.ok(m > 5 && m < 11, `half way at ${m}`);
  near(size, 0.3, 0.06);
  await page.pass(160);
  assert.deepEqual([seen.fig.traits.m, seen.fig.traits.size], [13, 0.1]);
  assert.ok(
    seenAt.every(([whole]) => Number.isInteger(whole)),
    `${seenAt}`,
  );
  const steps = seenAt.map(([, value]) => value);
  const jumps = steps.slice(1).map((value, i) => steps[i] - value);
  assert.ok(jumps[0] < jumps[4] && jumps.at(-1) < jumps[4], `${jumps}`);
});

test("a real number glides between two that happen to be whole", async () => {
  const seenAt = [];
  const { page, press } = await probe({}, "", (fig) => {
    fig.button("go", () => fig.glide({ size: 3 }, 160));
    fig.whenChanged("size", () => seenAt.push(fig.model.get("size")));
    fig.set({ size: 1 });
  });
  press("go");
  await page.pass(320);
  assert.equal(seenAt.at(-1), 3);
  assert.ok(seenAt.filter((size) => !Number.isInteger(size)).length > 4, `${seenAt}`);
});

test("with motion reduced a glide is a jump", async () => {
  const seenAt = [];
  const { page, press } = await probe({ calm: true }, "", (fig) => {
    assert.equal(fig.reducedMotion, true);
    fig.button("go", () => fig.glide({ m: 13 }, 10_000));
    fig.whenChanged("m", () => seenAt.push(fig.model.get("m")));
  });
  press("go");
  await page.pass(32);
  assert.deepEqual(seenAt, [13]);
});

/** A figure whose "Show me" pauses, moves m to 10, pauses, and moves it to 20. */
const playing = (options) =>
  probe(options, SLIDER + TOGGLE, (fig) => {
    fig.showMe(async () => {
      await fig.pause(100);
      fig.set({ m: 10 });
      await fig.pause(100);
      fig.set({ m: 20 });
    });
    fig.button("other", async () => {
      await fig.pause(50);
      fig.set({ size: 0.9 });
    });
  });

test("a play waits as long as it says, and is silent until it ends", async () => {
  const { page, seen, root, spoken, press } = await playing();
  press("Show me");
  assert.equal(root.dataset.playing, "true");
  assert.equal(spoken.getAttribute("aria-live"), "polite");
  await page.pass(90);
  assert.equal(seen.fig.traits.m, 3);
  await page.pass(40);
  assert.equal(seen.fig.traits.m, 10);
  await page.pass(160);
  assert.equal(seen.fig.traits.m, 20);
  assert.equal(root.dataset.playing, undefined);
  assert.equal(spoken.textContent, "", "nothing is read out while it moves");
  await page.pass(600);
  assert.equal(spoken.textContent, "20 and cosine");
});

test("of many changes a screen reader hears the last answer, once, and nothing of the start", async () => {
  const { page, seen, spoken } = await probe();
  await page.pass(2000);
  assert.equal(spoken.textContent, "", "the answer at the start is read with the page");
  for (const m of [4, 5, 6, 7]) {
    seen.fig.set({ m });
    await page.pass(160);
    assert.equal(spoken.textContent, "");
  }
  await page.pass(600);
  assert.equal(spoken.textContent, "7 and cosine");
});

test("a reader who takes a control has it: the play stops and does not come back", async () => {
  for (const [what, event] of [
    [".noUi-handle", "pointerdown"],
    [".noUi-handle", "keydown"],
    ["canvas", "pointerdown"],
  ]) {
    const { page, seen, root, box, press } = await playing();
    press("Show me");
    await page.pass(130);
    box.querySelector(what).dispatchEvent(new window.Event(event, { bubbles: true }));
    assert.equal(root.dataset.playing, undefined, what);
    const { draws } = seen;
    await page.pass(300);
    assert.equal(seen.fig.traits.m, 10, what);
    assert.equal(seen.draws, draws + 1, "drawn once more, as it stands");
  }
});

test("the Tab key, the figure's own buttons and the rest of the page leave a play alone", async () => {
  const { page, seen, root, box, press } = await playing();
  press("Show me");
  await page.pass(32);
  const tab = new window.KeyboardEvent("keydown", { key: "Tab", bubbles: true });
  box.querySelector("canvas").dispatchEvent(tab);
  root.querySelector(".rope-buttons").dispatchEvent(new window.Event("pointerdown", { bubbles: true }));
  document.body.dispatchEvent(new window.Event("pointerdown", { bubbles: true }));
  await page.pass(300);
  assert.equal(seen.fig.traits.m, 20);
});

test("another button takes over, and Reset goes back to the start", async () => {
  const { page, seen, root, press } = await playing();
  press("Show me");
  await page.pass(130);
  press("other");
  await page.pass(300);
  assert.deepEqual([seen.fig.traits.m, seen.fig.traits.size], [10, 0.9], "the first play moved m no further");
  assert.equal(root.dataset.playing, undefined);
  press("Reset");
  assert.deepEqual(seen.fig.traits, { size: 0.5, m: 3, show: "cosine" });
});

test("an action that fails is not swallowed, and ends its play", async () => {
  const { root } = await probe();
  const player = makePlayer(root, root.querySelector(".rope-buttons"), { ended() {} });
  const fail = async () => {
    throw new Error("on purpose");
  };
  await assert.rejects(player.play(fail), /on purpose/);
  assert.equal(root.dataset.playing, undefined);
});

test("nothing is left behind: no listener, no observer, no frame, no play", async () => {
  const { page, seen, model, unmount, press } = await playing();
  press("Show me");
  await page.pass(32);
  assert.ok(page.listened.size > 0 && page.frames.size > 0 && model.heard > 0);
  seen.fig.redraw();
  const waiting = page.frames.size;
  unmount();
  assert.deepEqual([...page.listened.keys()], [], "on document and window");
  assert.deepEqual([page.sizes.size, page.observers.size], [0, 0], "observers");
  assert.equal(model.heard, 0, "listeners of the model");
  assert.equal(page.frames.size, waiting - 1, "the picture that was to be drawn");
  await page.pass(64);
  assert.equal(page.frames.size, 0, "frames");
  const { draws } = seen;
  document.documentElement.dataset.theme = "dark";
  await page.pass(300);
  assert.equal(seen.draws, draws);
  assert.equal(model.get("m"), 3, "the play moved nothing");
});

test("a play ends where its figure is taken out of the page", async () => {
  const { page, box, seen, press } = await playing();
  press("Show me");
  await page.pass(32);
  box.remove();
  await page.pass(300);
  assert.equal(seen.fig.traits.m, 3);
});

test("a figure that goes before it was shown leaves nothing behind either", async () => {
  const { page, seen, model, unmount } = await probe({ width: 0 });
  unmount();
  assert.deepEqual([page.sizes.size, page.observers.size, model.heard], [0, 0, 0]);
  page.width = 300;
  await page.pass(64);
  assert.equal(seen.draws, 0);
});

test("while nothing plays, a figure listens to nothing outside itself", async () => {
  const { page, press } = await playing();
  assert.equal(page.listened.size, 0);
  press("Show me");
  await page.pass(400);
  assert.equal(page.listened.size, 0);
});

test("arrow keys are read with Shift and to both ends, and other keys are left to the page", async () => {
  const [found, heard] = [[], []];
  const { root } = await probe({ canvas: { keys: (step) => found.push(step) } });
  const canvas = root.querySelector("canvas");
  document.addEventListener("keydown", ({ key }) => heard.push(key));
  const press = (key, more = {}) => {
    const event = new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
    canvas.dispatchEvent(event);
    return event.defaultPrevented;
  };
  assert.deepEqual(
    ["ArrowRight", "ArrowUp", "End", "PageDown"].map((key) => press(key)),
    [true, true, true, true],
  );
  assert.equal(press("ArrowLeft", { shiftKey: true }), true);
  assert.deepEqual([press("a"), press("Tab"), press("ArrowLeft", { ctrlKey: true })], [false, false, false]);
  assert.deepEqual(found, [
    { dx: 1, dy: 0 },
    { dx: 0, dy: -1 },
    { dx: Infinity, dy: 0 },
    { dx: 0, dy: 10 },
    { dx: -10, dy: 0 },
  ]);
  assert.deepEqual(heard, ["a", "Tab", "ArrowLeft"], "the notebook hears the others only");
  assert.deepEqual([canvas.tabIndex, canvas.getAttribute("role")], [0, "application"]);
});

test("a pointer over the picture is told where it is, unless something plays", async () => {
  const found = [];
  const point = ({ x, y, type }) => found.push([x, y, type]);
  const { page, root, press } = await probe({ canvas: { point } }, "", (fig) => fig.showMe(() => fig.pause(100)));
  const canvas = root.querySelector("canvas");
  const move = (type) => canvas.dispatchEvent(new window.PointerEvent(type, { clientX: 30, clientY: 5 }));
  move("pointermove");
  move("pointerdown");
  press("Show me");
  move("pointermove");
  await page.pass(200);
  assert.deepEqual(found, [
    [30, 5, "pointermove"],
    [30, 5, "pointerdown"],
  ]);
});

test("a mouse that rests while the page moves under it points at nothing new", async () => {
  const found = [];
  const { root } = await probe({ canvas: { point: ({ x }) => found.push(x) } });
  const canvas = root.querySelector("canvas");
  const move = (clientX, clientY) => canvas.dispatchEvent(new window.PointerEvent("pointermove", { clientX, clientY }));
  move(40, 5);
  move(40, 5); // as browsers tell a mouse that rests when the page has scrolled
  move(40, 6);
  move(20, 6);
  move(40, 5);
  assert.deepEqual(found, [40, 40, 20, 40]);
});

test("a pointer that takes hold of something keeps it until it lets go", async () => {
  const found = [];
  const drag = ({ x, begins }) => {
    found.push([x, begins]);
    return x > 10;
  };
  const { root } = await probe({ canvas: { drag } });
  const canvas = root.querySelector("canvas");
  const point = (type, clientX, button = 0) =>
    canvas.dispatchEvent(
      new window.PointerEvent(type, { clientX, clientY: 5, button, bubbles: true, cancelable: true }),
    );
  point("pointermove", 50);
  point("pointerdown", 5);
  point("pointermove", 60);
  point("pointerdown", 20, 2);
  assert.deepEqual(found, [[5, true]], "nothing is held yet");
  point("pointerdown", 20);
  point("pointermove", 30);
  point("pointerup", 40);
  point("pointermove", 50);
  assert.deepEqual(found.slice(1), [
    [20, true],
    [30, false],
  ]);
});

// ---- themes -------------------------------------------------------------------------------------

test("the book's theme decides the colours, now and when it changes", async () => {
  const { page, seen, root, box } = await probe({ dark: false });
  assert.deepEqual([seen.colors.dark, seen.colors.ink, root.dataset.ropeTheme], [false, "#1d2630", "light"]);
  document.documentElement.dataset.theme = "dark";
  await page.pass();
  assert.deepEqual([seen.colors.dark, seen.colors.ink, seen.colors.paper], [true, "#dfe5ea", "#171d23"]);
  assert.deepEqual([root.dataset.ropeTheme, box.getAttribute("data-rope-theme")], ["dark", "dark"]);
});

test("in JupyterLab its own theme decides", async () => {
  for (const dark of [true, false]) {
    const { page, seen, root, box } = await probe({ dark, lab: true });
    assert.deepEqual([seen.colors.dark, root.dataset.ropeTheme], [dark, dark ? "dark" : "light"]);
    assert.equal(box.getAttribute("data-rope-theme"), dark ? "dark" : "light");
    document.body.dataset.jpThemeLight = String(dark);
    await page.pass();
    assert.equal(seen.colors.dark, !dark);
  }
});

// ---- controls -----------------------------------------------------------------------------------

test("controls get the names of their labels, and speak the number that is shown", async () => {
  const { page, box } = await probe();
  const [handle, readout, toggle] = [".noUi-handle", ".widget-readout", ".widget-toggle-buttons"].map((s) =>
    box.querySelector(s),
  );
  const read = (node, ...names) => names.map((name) => node.getAttribute(name));
  assert.deepEqual(read(handle, "aria-label", "aria-valuetext", "title"), ["Distance (tokens)", "40", null]);
  assert.deepEqual(read(readout, "role", "aria-label"), ["textbox", "Distance (tokens), value"]);
  assert.deepEqual(read(toggle, "role", "aria-label"), ["group", "Show"]);
  const pressed = () => [...toggle.querySelectorAll("button")].map((button) => button.getAttribute("aria-pressed"));
  assert.deepEqual(pressed(), ["true", "false"]);
  readout.textContent = "41";
  const [first, second] = toggle.querySelectorAll("button");
  first.classList.remove("mod-active");
  second.classList.add("mod-active");
  await page.pass();
  assert.equal(handle.getAttribute("aria-valuetext"), "41");
  assert.deepEqual(pressed(), ["false", "true"]);
});

test("a control that comes after the figure is named too", async () => {
  const { page, box } = await probe({}, "");
  box.querySelector(".rope-controls").innerHTML = SLIDER;
  await page.pass();
  assert.equal(box.querySelector(".noUi-handle").getAttribute("aria-label"), "Distance (tokens)");
});

// ---- formulas -----------------------------------------------------------------------------------

test("where there is no MathJax, the kernel's answer goes into its own formula", async () => {
  const { seen, model } = await probe();
  const [one, two] = [seen.fig.element("div"), seen.fig.element("div")];
  seen.fig.formula(one, "a^2");
  seen.fig.formula(two, "b^2");
  seen.fig.formula(two, "b^2");
  assert.deepEqual(model.sent, [{ latex: "a^2" }, { latex: "b^2" }]);
  assert.deepEqual([one.textContent, two.textContent], ["a^2", "b^2"]);
  model.tell("msg:custom", { latex: "b^2", mathml: "<math>B</math>" });
  assert.deepEqual([one.innerHTML, two.innerHTML], ["a^2", "<math>B</math>"]);
  seen.fig.formula(one, "b^2");
  model.tell("msg:custom", { latex: "a^2", mathml: "<math>A</math>" });
  assert.equal(one.textContent, "b^2", "an answer that comes too late is for another formula");
});

test("MathJax typesets where the page has it", async () => {
  const { page, seen, model } = await probe();
  const asked = [];
  window.MathJax = {
    tex2chtmlPromise: async (latex) => {
      asked.push(latex);
      return document.createTextNode(`typeset ${latex}`);
    },
    startup: { document: { clear() {}, updateDocument() {} } },
  };
  const node = seen.fig.element("div");
  seen.fig.formula(node, "a");
  seen.fig.formula(node, "b");
  await page.pass();
  assert.equal(node.textContent, "typeset b");
  assert.deepEqual([asked, model.sent], [["a", "b"], []]);
});

// ---- questions ----------------------------------------------------------------------------------

/** A question with its verdict and a way to press its buttons. */
async function ask(module, state) {
  const page = openPage({ dark: true });
  const shown = await show(page, module, {
    _anywidget_id: "a.ChoiceQuestion",
    prompt: "**Which?**",
    why: "Look.",
    ...state,
  });
  const verdict = shown.root.querySelector(".rope-verdict");
  const press = (label) => [...shown.root.querySelectorAll("button")].find((b) => b.textContent === label).click();
  return { page, verdict, press, inputs: [...shown.root.querySelectorAll("input")], ...shown };
}

test("a question names its inputs and its buttons, and no two share a name", async () => {
  const names = new Set();
  for (const [module, state] of [
    [choice, { options: ["one", "two"], answer: 1 }],
    [number, { answer: 0.5, tolerance: 0 }],
  ]) {
    const { root, inputs } = await ask(module, state);
    const legend = root.querySelector("fieldset > legend");
    names.add(legend.id);
    for (const button of root.querySelectorAll("button")) {
      assert.equal(button.getAttribute("aria-describedby"), legend.id);
    }
    if (module === number) assert.equal(inputs[0].getAttribute("aria-labelledby"), legend.id);
    else assert.deepEqual(new Set(inputs.map(({ name }) => name)), new Set([legend.id]));
  }
  assert.equal(names.size, 2);
});

test("a choice is graded, and may be tried again", async () => {
  const { root, verdict, press, inputs } = await ask(choice, { options: ["one", "`two`"], answer: 1 });
  assert.equal(root.dataset.ropeTheme, "dark");
  assert.equal(root.querySelector("legend").innerHTML, "<b>Which?</b>");
  press("Check");
  assert.equal(verdict.textContent, "Choose an answer first.");
  inputs[0].checked = true;
  press("Check");
  assert.deepEqual([root.dataset.verdict, verdict.className], ["wrong", "rope-verdict rope-wrong"]);
  inputs[1].checked = true;
  press("Check");
  assert.deepEqual([root.dataset.verdict, verdict.innerHTML], ["right", "<b>Yes.</b> Look."]);
  press("Show the answer");
  assert.equal(root.dataset.verdict, "shown");
});

test("a number is graded with its tolerance, by the Enter key too, which the notebook does not hear", async () => {
  const { page, root, verdict, press, inputs, unmount } = await ask(number, {
    answer: 0.5,
    tolerance: 0.01,
    unit: "rad",
  });
  const heard = [];
  document.addEventListener("keydown", ({ key }) => heard.push(key));
  const enter = () => inputs[0].dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  enter();
  assert.equal(root.dataset.verdict, "missing");
  for (const [given, state] of [
    ["0,505", "right"],
    ["0.52", "wrong"],
    ["1/2", "right"],
  ]) {
    inputs[0].value = given;
    enter();
    assert.equal(root.dataset.verdict, state, given);
  }
  press("Show the answer");
  assert.equal(verdict.innerHTML, "<b>0.5 rad.</b> Look.");
  assert.deepEqual(heard, []);
  unmount();
  assert.deepEqual([page.sizes.size, page.observers.size], [0, 0]);
});

// ---- fingers, and the fold ----------------------------------------------------------------------

test("a mouse points where it is, a finger where it taps and not where it scrolls by", async () => {
  const points = [];
  const { seen } = await probe({ canvas: { point: ({ type }) => points.push(type) } });
  const send = (type, pointerType, clientX = 1) =>
    seen.plot.canvas.dispatchEvent(Object.assign(new window.Event(type), { pointerType, clientX, clientY: 1 }));
  for (const type of ["pointerdown", "pointermove", "pointerup"]) send(type, "mouse");
  assert.deepEqual(points.splice(0), ["pointerdown", "pointermove"]);
  for (const type of ["pointerdown", "pointermove", "pointercancel"]) send(type, "touch");
  assert.deepEqual(points, [], "it scrolls");
  ["pointerdown", "pointermove", "pointerup"].forEach((type, i) => send(type, "touch", 1 + 40 * i));
  assert.deepEqual(points, [], "it swipes across");
  for (const type of ["pointerdown", "pointerup"]) send(type, "touch");
  assert.deepEqual(points, ["pointerdown"]);
});

test("what is seldom wanted lies in a fold that says whether it is open", async () => {
  const page = openPage();
  const state = { _anywidget_id: "ropebook.figures.PhaseDial", _start: {}, _options: {} };
  const module = figure((fig) => fig.draw(() => {}));
  const { box } = await show(page, module, state, "");
  const more = Object.assign(document.createElement("div"), { className: "rope-controls rope-more" });
  box.append(more); // ipywidgets puts the controls in after the figure
  await page.pass();
  const [button] = box.querySelectorAll(".rope-unfold");
  assert.equal(button.nextSibling, more);
  const open = () => [
    more.hidden,
    button.getAttribute("aria-expanded"),
    button.getAttribute("aria-controls") === more.id,
  ];
  assert.deepEqual(open(), [true, "false", true]);
  button.click();
  assert.deepEqual(open(), [false, "true", true]);
  await page.pass();
  assert.equal(box.querySelectorAll(".rope-unfold").length, 1);
});
