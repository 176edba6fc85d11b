// The figures on serving on a page without a browser: what a pointer takes and moves, and what keys do.
import assert from "node:assert/strict";
import { test } from "node:test";
import shelf from "../../ropebook/figures/cache_shelf.js";
import worn from "../../ropebook/figures/worn_key.js";
import { handOn, openPage, show } from "../tools/stage.mjs";

async function open(module, _options, start, width = 680) {
  const page = openPage({ width });
  const state = { _anywidget_id: "ropebook.figures.Serving", _start: start, _options, _limits: {}, ...start };
  const shown = await show(page, module, state);
  return { page, ...shown, ...handOn(page, shown.root) };
}

const openWorn = () =>
  open(
    worn,
    { kept: ["fp16", "bf16", "fp8", "q8_0", "q4_0"], other: ["one move", "Hadamard basis"] },
    { moves: 32, kept: 3, step: 1, other: 0, pair: 40 },
  );
const openShelf = () =>
  open(
    shelf,
    {
      change: ["words dropped", "chunk spliced", "all moved"],
      cached: ["left", "moved", "stored raw"],
      pair: ["0", "1", "2", "3"],
    },
    { change: 0, cached: 0, words: 4, word: 8, pair: 0 },
  );

test("the dashed hand is dragged to where a key should be, and the key is moved as often as that takes", async () => {
  const { point, drawn, values } = await openWorn();
  const handle = () => drawn().find(({ kind, arc }) => kind === "fill" && arc?.radius === 5).arc.center;
  const [x, y] = handle();
  const { center, radius } = drawn().find(({ kind, arc }) => kind === "stroke" && arc).arc;
  await point("pointerdown", center);
  assert.equal((await point("pointermove", [center[0], center[1] - radius])).moves, 32, "the middle is no handle");
  await point("pointerup", center);
  const start = Math.atan2(center[1] - y, x - center[0]);
  await point("pointerdown", [x, y]);
  assert.equal(values().moves, 32);
  const theta = 10000 ** (-40 / 64);
  for (const turn of [0.3, 0.6, 3, 0.1]) {
    const angle = start + turn;
    const now = await point("pointermove", [center[0] + 60 * Math.cos(angle), center[1] - 60 * Math.sin(angle)]);
    assert.equal(now.moves, Math.min(512, Math.round(32 + turn / theta)), `${turn} rad on`);
  }
  await point("pointerup", [x, y]);
  assert.equal((await point("pointermove", [x, y])).moves, Math.round(32 + 0.1 / theta), "it was let go");
});

test("keys change the pair and the moves of a worn key, the word and the cut of a shelf", async () => {
  const key = await openWorn();
  assert.equal((await key.press("ArrowRight")).pair, 41);
  assert.equal((await key.press("ArrowUp", true)).moves, 42);
  const cache = await openShelf();
  assert.equal((await cache.press("ArrowLeft")).word, 7);
  assert.equal((await cache.press("ArrowUp")).words, 5);
  assert.equal((await cache.press("Home")).word, 5, "the first word that is there");
});

test("the cut of a shelf is dragged by its handle, and a word is pointed at", async () => {
  const { point, drawn, values } = await openShelf();
  const { center } = drawn().find(({ kind, arc }) => kind === "fill" && arc?.radius === 9).arc;
  const names = Object.fromEntries(drawn().flatMap(({ kind, text, at }) => (kind === "text" ? [[text, at]] : [])));
  const slot = names.no[0] - names.and[0];
  await point("pointerdown", center);
  assert.equal((await point("pointermove", [center[0] - 2 * slot, center[1]])).words, 2);
  await point("pointerup", center);
  assert.equal((await point("pointermove", [names.no[0], 120])).word, 10);
  assert.equal(values().words, 2);
});
