// The figures on more than one axis on a page without a browser: by keys, by pointer, and from plan to plan.
import assert from "node:assert/strict";
import { test } from "node:test";
import clocks from "../../ropebook/figures/three_clocks.js";
import vectors from "../../ropebook/figures/wave_vectors.js";
import { handOn, openPage, show } from "../tools/stage.mjs";

const PLANS = ["axial", "Pixtral", "DINOv3", "mixed"];
const _controls = [{ name: "plan", label: "Plan" }];

/** A figure with its start values, and what a hand does to it. */
async function open(module, plans, start, options = { width: 680 }) {
  const page = openPage(options);
  const state = { _anywidget_id: "ropebook.figures.Axes", _start: start, _options: { plan: plans } };
  const _limits = { pair: [0, 7, 1], size: [12, 32, 1], token: [0, 46, 1] };
  const shown = await show(page, module, { ...state, _limits, _controls, ...start });
  const hand = handOn(page, shown.root);
  const set = async (changes) => {
    for (const [name, value] of Object.entries(changes)) shown.model.set(name, value);
    await page.pass();
    return hand.values();
  };
  return { page, ...shown, ...hand, set };
}

const openVectors = (options) => open(vectors, PLANS, { plan: 0, vectors: [], pair: 0, size: 16 }, options);
const openClocks = (options) => open(clocks, ["chunked", "dealt out"], { plan: 0, token: 27 }, options);

/** The centre of the chosen vector's head. */
const head = (drawn) => drawn.find(({ kind, arc }) => kind === "fill" && arc?.radius === 8).arc.center;

test("arrow keys move the chosen vector, and it stays in the half plane", async () => {
  const { press, values } = await openVectors();
  assert.deepEqual(values().vectors[0], [1, 0]);
  assert.deepEqual((await press("ArrowLeft")).vectors[0], [0.95, 0]);
  const down = await press("ArrowDown");
  assert.deepEqual([down.vectors[0], down.off], [[0.95, 0.05], 1]);
  assert.deepEqual((await press("Home")).vectors[0], [0, 0.05]);
  const end = (await press("End")).vectors[0];
  assert.ok(Math.abs(Math.hypot(...end) - 1.25) < 1e-9);
  assert.deepEqual(values().vectors.slice(1), (await openVectors()).values().vectors.slice(1), "the others rest");
});

test("a pointer takes a head and drags it, and takes nothing elsewhere", async () => {
  for (const width of [680, 334]) {
    const { point, drawn, values } = await openVectors({ width });
    const at = head(drawn());
    await point("pointerdown", [at[0] - 40, at[1] + 60]);
    await point("pointermove", [at[0] - 60, at[1] + 20]);
    assert.equal(values().off, 0, "nothing was held");
    await point("pointerdown", [at[0] + 10, at[1] - 10]);
    const now = await point("pointermove", [at[0] - 20, at[1] + 30]);
    await point("pointerup", [at[0] - 20, at[1] + 30]);
    assert.equal(now.off, 1);
    const [x, y] = head(drawn());
    assert.ok(Math.hypot(x - at[0] + 20, y - at[1] - 30) < 1e-6, "the head is where the pointer is");
  }
});

test("another plan puts all vectors back, and DINOv3's follow the size of the image", async () => {
  const { press, set, values } = await openVectors();
  await press("ArrowDown");
  assert.equal(values().off, 1);
  assert.deepEqual((await set({ plan: 3 })).off, 8);
  const near = await set({ plan: 2 });
  assert.equal(near.off, 0);
  const far = await set({ size: 32 });
  for (const [i, vector] of near.vectors.entries())
    vector.forEach((value, axis) => assert.ok(Math.abs(value - 2 * far.vectors[i][axis]) < 1e-12));
});

test("vectors of one's own are no plan's, and the plan that was left brings its own back", async () => {
  const { page, press, values, root } = await openVectors();
  const buttons = [...root.closest(".rope-box").querySelectorAll(".rope-choice button")];
  const pressed = () => PLANS.filter((_, i) => buttons[i].getAttribute("aria-pressed") === "true");
  assert.deepEqual(pressed(), ["axial"]);
  assert.equal((await press("ArrowDown")).off, 1);
  assert.deepEqual(pressed(), []);
  buttons[0].click();
  await page.pass();
  assert.equal(values().off, 0);
  assert.deepEqual(pressed(), ["axial"]);
});

test("keys walk the tokens one by one, and to both ends of the text of each plan", async () => {
  const { press, set, values } = await openClocks();
  assert.deepEqual([values().word, values().at], ["now", [9, 9, 9]]);
  assert.equal((await press("ArrowLeft")).word, "›");
  assert.deepEqual((await press("ArrowUp")).at, [2, 5, 7]);
  assert.equal((await press("ArrowDown", true)).token, 35);
  assert.equal((await press("Home")).token, 0);
  assert.equal((await press("End")).token, 42);
  assert.deepEqual((await set({ plan: 1 })).count, 47);
  assert.equal((await press("End")).token, 46);
  const back = await set({ plan: 0 });
  assert.deepEqual([back.token, back.at], [42, [15, 15, 15]], "the shorter text ends with its last word");
});

test("a mouse drags from token to token; a finger must begin at the chosen one, or tap", async () => {
  const { point, drawn, values } = await openClocks();
  const handle = () => drawn().find(({ kind, arc }) => kind === "fill" && arc?.radius === 9).arc.center;
  const [x, y] = handle();
  const step = drawn().find(({ kind }) => kind === "rect").rect[2] + 1;
  const at = (token, below = 0) => [x + step * (token - 27), y + below];
  await point("pointerdown", at(20));
  assert.deepEqual(values().at, [2, 5, 2], "a tap anywhere");
  await point("pointerup", at(20));
  await point("pointerdown", handle());
  await point("pointermove", at(21));
  assert.deepEqual(values().at, [2, 5, 3]);
  await point("pointermove", [9e3, y]);
  assert.equal(values().token, 42, "it stops at the end");
  await point("pointerup", [9e3, y]);
  await point("pointerdown", at(10, 80), "touch");
  await point("pointermove", at(10, 20), "touch");
  await point("pointercancel", at(10, 20), "touch");
  assert.equal(values().token, 42, "a finger that scrolls changes nothing");
  await point("pointerdown", at(27, 80), "touch");
  await point("pointerup", at(27, 80), "touch");
  assert.equal(values().word, "now");
});

test("a tap below finds the token of a cell, or the next word where counting puts it", async () => {
  for (const width of [680, 334]) {
    const { point, drawn, values, set } = await openClocks({ width });
    const cells = drawn().flatMap(({ kind, rect }) => (kind === "rect" ? [rect] : []));
    const tap = ([x, y, wide, high]) => point("pointerdown", [x + wide / 2, y + high / 2]);
    await tap(cells[43 + 9]); // above are 43 tokens, below those up to the chosen one
    assert.deepEqual([values().token, values().at], [9, [2, 3, 3]]);
    const dashed = drawn().findLast(({ kind, rect }) => kind === "frame" && rect[1] > 100).rect;
    await tap(dashed);
    assert.equal(values().word, "now");
    await point("pointerdown", [dashed[0] + 60, dashed[1] + 4]);
    assert.equal(values().word, "now");
    await set({ token: 2 });
    assert.equal((await tap(cells[43 + 9])).token, 2, "what is not there yet is not tapped");
  }
});

test("names over the tokens keep away from each other: a word goes before what is no word", async () => {
  for (const width of [680, 334]) {
    const { drawn, set } = await openClocks({ width });
    const names = async (plan, token) => {
      await set({ plan, token });
      return drawn().flatMap(({ kind, text, at }) => (kind === "text" && at[1] < 20 ? [text] : []));
    };
    assert.ok((await names(0, 25)).includes("same?"));
    assert.ok((await names(1, 27)).includes("0 s"));
    assert.ok(!(await names(1, 25)).includes("0 s"), "the frame of the next word is there");
  }
});

test("Show me plays the key moment, and jumps where motion is reduced", async () => {
  for (const opened of [openVectors, openClocks])
    for (const calm of [false, true]) {
      const { root, click } = await opened({ width: 680, calm });
      const before = Number(root.dataset.draws);
      await click("Show me", 2000);
      const drawn = Number(root.dataset.draws) - before;
      assert.ok(calm ? drawn <= 4 : drawn >= 8, `${drawn} pictures`);
    }
});
