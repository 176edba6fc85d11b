// The figures on serving on a page without a browser: what a pointer takes and moves, and what keys do.
import assert from "node:assert/strict";
import { test } from "node:test";
import shelf from "../../ropebook/figures/cache_shelf.js";
import worn from "../../ropebook/figures/worn_key.js";
import { handOn, openPage, show } from "../tools/stage.mjs";

async function open(module, _options, start, width = 680, calm = false) {
  const page = openPage({ width, calm });
  const state = { _anywidget_id: "ropebook.figures.Serving", _start: start, _options, _limits: {}, ...start };
  const shown = await show(page, module, state);
  return { page, ...shown, ...handOn(page, shown.root) };
}

const openWorn = (width) =>
  open(
    worn,
    { kept: ["fp16", "bf16", "fp8", "q8_0", "q4_0"], other: ["one move", "Hadamard basis"] },
    { moves: 32, kept: 3, step: 1, other: 0, pair: 40 },
    width,
  );
const openShelf = (calm) =>
  open(
    shelf,
    {
      change: ["words dropped", "chunk spliced", "all moved"],
      cached: ["as they are", "moved", "stored raw"],
      pair: ["0", "1", "2", "3"],
    },
    { change: 0, cached: 0, words: 4, word: 8, pair: 0 },
    680,
    calm,
  );

test("the end of the curve is dragged, and a bar is pointed at", async () => {
  for (const width of [680, 334]) {
    const { point, drawn, values } = await openWorn(width);
    const handle = () => drawn().find(({ kind, arc }) => kind === "fill" && arc?.radius === 10).arc.center;
    const across = (n) => drawn().find(({ kind, text }) => kind === "text" && text === String(n)).at[0];
    const [x, y] = handle();
    await point("pointerdown", [x + 60, y]);
    assert.equal((await point("pointermove", [x + 90, y])).moves, 32, "elsewhere is no handle");
    await point("pointerup", [x + 90, y]);
    await point("pointerdown", [x + 12, y - 12]);
    for (const n of [64, 128, 256]) {
      const { moves } = await point("pointermove", [across(n), y]);
      assert.ok(Math.abs(moves - n) <= 2, `${moves} at the tick of ${n}`);
    }
    assert.equal((await point("pointermove", [9e3, y])).moves, 256);
    assert.equal((await point("pointermove", [-9e3, y])).moves, 1);
    await point("pointerup", [0, y]);
    const bars = drawn().filter(({ kind, rect }) => kind === "rect" && rect[2] > 1 && rect[2] < 8);
    const strip = bars.at(-1).rect;
    assert.equal((await point("pointermove", [strip[0] + 1, strip[1] - 4])).pair, 63);
    assert.equal(values().moves, 1, "it was let go");
  }
});

test("keys change the pair and the moves of a worn key, the word and the cut of a shelf", async () => {
  const key = await openWorn();
  assert.equal((await key.press("ArrowDown")).pair, 41);
  assert.equal((await key.press("ArrowRight", true)).moves, 42);
  const cache = await openShelf();
  assert.equal((await cache.press("ArrowUp")).word, 7);
  assert.equal((await cache.press("ArrowRight")).words, 5);
  assert.equal((await cache.press("PageUp")).word, 5, "the first word that is there");
});

test("the cut of a shelf is dragged by its handle, and a word is pointed at", async () => {
  const { point, drawn, values } = await openShelf();
  const { center } = drawn().find(({ kind, arc }) => kind === "fill" && arc?.radius === 11).arc;
  const names = Object.fromEntries(drawn().flatMap(({ kind, text, at }) => (kind === "text" ? [[text, at]] : [])));
  const slot = names.no[0] - names.and[0];
  await point("pointerdown", center);
  assert.equal((await point("pointermove", [center[0] - 2 * slot, center[1]])).words, 2);
  await point("pointerup", center);
  assert.equal((await point("pointermove", [names.no[0], 120])).word, 10);
  assert.equal(values().words, 2);
});

test("moved keys are seen to turn, then rest; where motion is reduced they are there at once", async () => {
  for (const calm of [false, true]) {
    const { page, root, model, drawn, values } = await openShelf(calm);
    const hands = () =>
      drawn()
        .filter(({ kind, width }) => kind === "stroke" && width > 2)
        .map(({ lines }) => lines[0][1]);
    model.set("cached", 1);
    await page.pass(16);
    assert.equal(values().off[0] < 1e-9, true, "what is said is said at once");
    const early = hands();
    await page.pass(1500);
    const late = hands();
    const moved = Math.max(...late.map(([x, y], i) => Math.hypot(x - early[i][0], y - early[i][1])));
    assert.equal(moved > 5, !calm);
    const { draws } = root.dataset;
    await page.pass(500);
    assert.equal(root.dataset.draws, draws);
  }
});
