// The figures' kit on a page without a browser: what runs when, what stops it, and what is left behind.
import assert from "node:assert/strict";
import { test } from "node:test";
import choice from "../../ropebook/figures/choice_question.js";
import { formatted, stops, typed } from "../../ropebook/figures/kit/controls.js";
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

/** A figure with a number, a whole number and a choice; it says them. */
async function probe(options = {}, setUp = () => {}) {
  const page = openPage(options);
  const start = { size: 0.5, m: 3, show: 1 };
  const state = {
    _anywidget_id: "ropebook.figures.PhaseDial",
    _question: "Is it <2?",
    _own_model: "Your model",
    _start: start,
    _options: { show: ["angle", "cosine"] },
    _limits: { size: [0, 3, 0], m: [0, 100, 1] },
    _controls: [
      { name: "m", label: "Distance (tokens)", every: 1 },
      { name: "show", label: "Show" },
    ],
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
  const shown = await show(page, module, { ...state, ...start });
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
  const { page, seen, box, root, answer, caption, model } = await probe();
  assert.equal(root.dataset.figure, "phase-dial");
  assert.deepEqual(seen.traits.at(-1), { size: 0.5, m: 3, show: "cosine" });
  assert.equal(answer.innerHTML, "<b>3</b> and cosine");
  assert.equal(caption.innerHTML, "and <code>numbers</code>");
  const order = [...root.children].map(({ className }) => className);
  assert.deepEqual(order, ["rope-answer", "rope-body", "rope-notes", "rope-spoken", "rope-buttons"]);
  const rows = [...box.children].map(({ className, textContent }) => [className, textContent]);
  assert.deepEqual(rows[0], ["rope-question", "Is it <2?"]);
  assert.deepEqual(rows[2], ["rope-model", "Your model"]);
  await page.pass(160);
  const before = seen.draws;
  assert.equal(before, 1, "nothing changed");
  const [folded] = root.querySelectorAll("details");
  assert.deepEqual(
    [...folded.children].map(({ textContent }) => textContent),
    ["Numbers and notes", "and numbers", ""],
  );
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

test("what is printed or shown now does not wait for a frame", async () => {
  const { page, root, seen } = await probe();
  seen.fig.set({ m: 4 });
  root.dispatchEvent(new window.Event("now"));
  assert.equal(seen.draws, 2);
  await page.pass(64);
  root.dispatchEvent(new window.Event("now"));
  assert.equal(seen.draws, 2, "nothing changed");
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
  const { page, seen, press } = await probe({}, (fig) => {
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
  const { page, press } = await probe({}, (fig) => {
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
  const { page, press } = await probe({ calm: true }, (fig) => {
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
  probe(options, (fig) => {
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
    [".rope-track", "pointerdown"],
    [".rope-value", "keydown"],
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
  const { box, root } = await probe();
  const player = makePlayer(box, root, root.querySelector(".rope-buttons"), { ended() {} });
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
  const { page, root, press } = await probe({ canvas: { point } }, (fig) => fig.showMe(() => fig.pause(100)));
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

test("a finger that goes up or down scrolls over what moves sideways, and one that goes across takes it", async () => {
  for (const sideways of [true, false]) {
    const found = [];
    const drag = ({ x, begins }) => begins || found.push(x);
    const canvas = (await probe({ canvas: { drag, sideways } })).root.querySelector("canvas");
    const finger = (type, clientX, clientY) => {
      const at = { clientX, clientY, button: 0, pointerType: "touch", bubbles: true, cancelable: true };
      canvas.dispatchEvent(new window.PointerEvent(type, at));
      const touch = new window.Event("touchmove", { cancelable: true });
      canvas.dispatchEvent(touch);
      return touch.defaultPrevented;
    };
    assert.equal(canvas.style.touchAction, sideways ? "pan-y" : "");
    assert.equal(finger("pointerdown", 20, 5), !sideways, "whether the page is kept from scrolling");
    finger("pointermove", 23, 10);
    finger("pointermove", 26, 20);
    finger("pointermove", 60, 21);
    finger("pointerup", 60, 21);
    assert.deepEqual(found.splice(0), sideways ? [] : [23, 26, 60]);
    finger("pointerdown", 20, 5);
    finger("pointermove", 30, 9);
    finger("pointermove", 31, 40);
    assert.deepEqual(found, [30, 31], "which way it goes is asked once");
  }
});

test("a picture that a pointer takes has the focus without a frame, until a key is pressed", async () => {
  const { root } = await probe({ canvas: { drag: () => true } });
  const canvas = root.querySelector("canvas");
  const pointed = () => canvas.classList.contains("rope-pointed");
  const down = () => canvas.dispatchEvent(new window.PointerEvent("pointerdown", { button: 0, cancelable: true }));
  down();
  assert.deepEqual([document.activeElement === canvas, pointed()], [true, true]);
  canvas.dispatchEvent(new window.KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
  assert.equal(pointed(), false);
  down();
  canvas.blur();
  assert.equal(pointed(), false);
});

test("what is shown comes into sight first, where its beginning is above what is seen", async () => {
  for (const [top, calm, scrolled] of [
    [-300, false, "smooth"],
    [-300, true, "instant"],
    [120, false, undefined],
  ]) {
    const { page, seen, root, press } = await playing({ calm });
    let how;
    root.getBoundingClientRect = () => ({ top });
    root.scrollIntoView = ({ behavior }) => (how = behavior);
    press("Show me");
    assert.equal(how, scrolled);
    await page.pass(400);
    assert.equal(seen.fig.traits.m, scrolled === "smooth" ? 3 : 20, "it waits until the page rests");
    await page.pass(600);
    assert.equal(seen.fig.traits.m, 20);
  }
});

// ---- themes -------------------------------------------------------------------------------------

test("the book's theme decides the colours, now and when it changes", async () => {
  const { page, seen, box } = await probe({ dark: false });
  assert.deepEqual([seen.colors.dark, seen.colors.ink, box.dataset.ropeTheme], [false, "#1d2630", "light"]);
  document.documentElement.dataset.theme = "dark";
  await page.pass();
  assert.deepEqual([seen.colors.dark, seen.colors.ink, seen.colors.paper], [true, "#dfe5ea", "#171d23"]);
  assert.equal(box.dataset.ropeTheme, "dark");
});

test("in JupyterLab its own theme decides", async () => {
  for (const dark of [true, false]) {
    const { page, seen, box } = await probe({ dark, lab: true });
    assert.deepEqual([seen.colors.dark, box.dataset.ropeTheme], [dark, dark ? "dark" : "light"]);
    document.body.dataset.jpThemeLight = String(dark);
    await page.pass();
    assert.equal(seen.colors.dark, !dark);
  }
});

// ---- controls -----------------------------------------------------------------------------------

const TRAITS = { m: 3, dim: 64, size: 0.5, show: 1, kind: 0, trail: false };
const CONTROLS = [
  { name: "m", label: "Distance (tokens)", every: 1 },
  { name: "dim", label: "Width", every: 2, fold: true },
  { name: "size", label: "Size", per_decade: 10, digits: 3 },
  { name: "show", label: "Show" },
  { name: "kind", label: "Kind" },
  { name: "trail", label: "Leave a trail" },
];

/** A figure with a control of every kind, and what a reader does to one. */
async function controlled(more = {}) {
  let fig;
  const module = figure((made) => {
    fig = made;
  });
  const shown = await show(openPage(), module, {
    _anywidget_id: "a.PhaseDial",
    _start: TRAITS,
    _limits: { size: [0.01, 1, 0], m: [0, 100, 1], dim: [2, 128, 2] },
    _options: { show: ["angle", "cosine"], kind: [..."abcde"] },
    _controls: CONTROLS,
    ...TRAITS,
    ...more,
  });
  const at = (name, what) => fig.controls[name].querySelector(what);
  const track = (name) => at(name, ".rope-track");
  const readout = (name) => at(name, ".rope-value");
  const fire = (node, type, init = {}) =>
    node.dispatchEvent(Object.assign(new window.Event(type, { bubbles: true }), init));
  const write = (name, text, key = "Enter") => {
    readout(name).value = text;
    fire(readout(name), "keydown", { key });
    return [shown.model.get(name), readout(name).value];
  };
  return { fig, at, track, readout, fire, write, ...shown };
}

test("every control has the name of its label, and says its value", async () => {
  const { at, track, readout, box, fig } = await controlled();
  assert.equal(at("m", "label").htmlFor, track("m").id);
  assert.equal(at("m", "label").textContent, "Distance (tokens)");
  assert.equal(readout("m").getAttribute("aria-label"), "Distance (tokens), value");
  assert.deepEqual([track("m").getAttribute("aria-valuetext"), readout("m").value], ["3", "3"]);
  assert.equal(track("size").getAttribute("aria-valuetext"), "0.500");
  const group = fig.controls.show;
  assert.equal(group.getAttribute("role"), "group");
  assert.equal(box.querySelector(`#${group.getAttribute("aria-labelledby")}`).textContent, "Show");
  assert.deepEqual(
    [...group.querySelectorAll("button")].map((button) => button.getAttribute("aria-pressed")),
    ["false", "true"],
  );
  assert.equal(box.querySelector(`label[for=${at("kind", "select").id}]`).textContent, "Kind");
  assert.equal(at("trail", "input").closest("label").textContent, "Leave a trail");
  const ids = [...box.querySelectorAll("[id]"), ...(await controlled()).box.querySelectorAll("[id]")].map((e) => e.id);
  assert.equal(new Set(ids).size, ids.length, "no two figures share an id");
});

test("a control moves its figure, and a figure its controls", async () => {
  const { fig, model, at, track, readout, fire } = await controlled();
  assert.deepEqual([track("dim").min, track("dim").max, track("dim").value, track("dim").step], ["0", "63", "31", "1"]);
  track("dim").value = "40";
  fire(track("dim"), "input");
  assert.deepEqual([model.get("dim"), readout("dim").value], [82, "82"]);
  at("show", "button").click();
  assert.equal(fig.traits.show, "angle");
  at("kind", "select").selectedIndex = 3;
  fire(at("kind", "select"), "change");
  assert.equal(fig.traits.kind, "d");
  at("trail", "input").checked = true;
  fire(at("trail", "input"), "change");
  assert.equal(model.get("trail"), true);
  fig.set({ m: 12, show: "cosine", kind: "b", trail: false });
  assert.deepEqual([track("m").value, readout("m").value, at("trail", "input").checked], ["12", "12", false]);
  assert.equal(at("show", "[aria-pressed=true]").textContent, "cosine");
  assert.equal(at("kind", "select").selectedIndex, 1);
});

test("a typed number counts as it is, within the limits; what is none does not", async () => {
  const { track, readout, write, fire } = await controlled();
  for (const [name, text, value, shown] of [
    ["m", "1,7", 17, "17"],
    ["m", "250", 100, "100"],
    ...["many", "", "  ", "1e999"].map((none) => ["m", none, 100, "100"]),
    ["m", "41.6", 42, "42"],
    ["dim", "7", 8, "8"], // a width is even
    ["size", "0.1234", 0.1234, "0.123"], // between two stops of the slider
    ["size", "0", 0.01, "0.0100"],
    ["size", "0.12345678", 0.12345678, "0.123"],
  ])
    assert.deepEqual(write(name, text), [value, shown], text);
  assert.equal(track("size").value, "11");
  fire(readout("size"), "change");
  assert.equal(write("size", "0.123")[0], 0.12345678, "what only shows fewer digits stays as it is");
  assert.deepEqual(write("m", "5", "Escape"), [42, "42"]);
});

test("numbers are shown whole, with digits after the point, or with significant ones", () => {
  const three = { per_decade: 10, digits: 3 };
  for (const [value, control, text] of [
    [131072, {}, "131,072"],
    [-3, {}, "−3"],
    [0.1, { digits: 3 }, "0.100"],
    [1234.5, { digits: 2 }, "1,234.50"],
    [10000, three, "10,000"],
    [0.12345, three, "0.123"],
    [1234567, three, "1,230,000"],
  ])
    assert.equal(formatted(value, control), text);
  const numbers = (texts, control) => texts.map((text) => typed(text, control));
  assert.deepEqual(numbers(["−2", " 1,000 ", "1e3", "", "128k"]), [-2, 1000, 1000, Number.NaN, Number.NaN]);
  const tokens = numbers(["128k", "1 M", "0.5M", "k", "7", "128kB"], { tokens: true });
  assert.deepEqual(tokens, [131072, 2 ** 20, 2 ** 19, Number.NaN, 7, Number.NaN]);
});

test("both ends of a slider are reached, and no stop carries the noise of binary fractions", () => {
  const log = stops([1, 131072], { per_decade: 10 });
  assert.deepEqual([log.value(0), log.value(10), log.value(log.last)], [1, 10, 131072]);
  assert.deepEqual([log.stop(131072), log.stop(1), log.stop(1e9), log.stop(0.1)], [log.last, 0, log.last, 0]);
  const fine = stops([0, 3], { every: 0.1 });
  assert.deepEqual([fine.last, fine.value(3), fine.value(30)], [30, 0.3, 3]);
  for (const one of [fine, log]) {
    for (let stop = 0; stop <= one.last; stop++) assert.equal(one.stop(one.value(stop)), stop);
  }
  const uneven = stops([1, 64], { every: 10 });
  assert.deepEqual([uneven.last, uneven.value(7)], [7, 64]);
});

test("what is seldom wanted lies in a fold that says whether it is open", async () => {
  const { box, fig } = await controlled();
  const [button] = box.querySelectorAll(".rope-unfold");
  const [more] = box.querySelectorAll(".rope-more");
  assert.ok(more.contains(fig.controls.dim));
  assert.ok(!more.contains(fig.controls.m));
  const open = () => [more.hidden, ...["expanded", "controls"].map((of) => button.getAttribute(`aria-${of}`))];
  assert.deepEqual([...open(), button.textContent], [true, "false", more.id, "More settings"]);
  button.click();
  assert.deepEqual([...open(), button.textContent], [false, "true", more.id, "Fewer settings"]);
  assert.equal((await controlled({ _controls: [] })).box.querySelectorAll(".rope-controls, .rope-unfold").length, 0);
});

test("a trait with a slider of ipywidgets has none of the kit's", async () => {
  const { fig } = await controlled({ _elsewhere: ["m", "size"] });
  assert.deepEqual(Object.keys(fig.controls), ["dim", "show", "kind", "trail"]);
});

test("a key that a control obeys does not reach the notebook, and its own commands do", async () => {
  const { track, fire } = await controlled();
  const seen = [];
  document.addEventListener("keydown", ({ key }) => seen.push(key));
  fire(track("m"), "keydown", { key: "ArrowDown" });
  fire(track("m"), "keydown", { key: "Enter", ctrlKey: true });
  assert.deepEqual(seen, ["Enter"]);
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

// ---- fingers ------------------------------------------------------------------------------------

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
