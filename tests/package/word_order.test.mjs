// The cards of words on a page without a browser: by keys, by pointer, on their way, and played.
import assert from "node:assert/strict";
import { test } from "node:test";
import figure, { WORDS } from "../../ropebook/figures/word_order.js";
import { handOn, openPage, show } from "../tools/stage.mjs";

const FIRST = WORDS.join(" ");
const OTHER = "from Shanghai to Beijing";
const orders = (words) =>
  words.length ? words.flatMap((word) => orders(words.filter((w) => w !== word)).map((rest) => [word, ...rest])) : [[]];

/** The figure, and what a hand does to it. */
async function open(options = { width: 680, calm: true }) {
  const page = openPage(options);
  const start = { positions: false, order: 0, word: 3 };
  const _options = { order: orders(WORDS).map((order) => order.join(" ")), word: WORDS };
  const shown = await show(page, figure, {
    _anywidget_id: "ropebook.figures.WordOrder",
    _start: start,
    _options,
    ...start,
  });
  const hand = handOn(page, shown.root);
  /** Where a word's card stands now: the first that is written of it. */
  const card = (word) => hand.drawn().find(({ kind, text }) => kind === "text" && text === word).at;
  return { page, ...shown, ...hand, card };
}

test("arrow keys move the chosen word and choose another", async () => {
  const { press } = await open();
  assert.equal((await press("ArrowRight")).order, FIRST, "the last word stays the last");
  assert.equal((await press("ArrowLeft")).order, "from Beijing Shanghai to");
  assert.equal((await press("ArrowLeft")).order, "from Shanghai Beijing to");
  assert.equal((await press("ArrowDown")).word, "Beijing");
  assert.equal((await press("ArrowRight")).order, OTHER);
  assert.equal((await press("Home")).order, "Beijing Shanghai to from");
});

test("a card that is dragged changes places with the one it comes to", async () => {
  for (const width of [680, 334])
    for (const pointer of ["mouse", "touch"]) {
      const { point, card, values } = await open({ width, calm: true });
      const [shanghai, to, beijing] = ["Shanghai", "to", "Beijing"].map(card);
      await point("pointerdown", shanghai, pointer);
      assert.equal((await point("pointermove", to, pointer)).order, "from Beijing Shanghai to");
      assert.equal((await point("pointermove", beijing, pointer)).order, OTHER);
      await point("pointerup", beijing, pointer);
      assert.deepEqual(card("Shanghai"), beijing);
      await point("pointerdown", [beijing[0], beijing[1] + 60], pointer);
      await point("pointermove", to, pointer);
      assert.equal(values().order, OTHER, "under the cards nothing is held");
    }
});

test("a word flies to its place, and jumps where motion is reduced", async () => {
  for (const calm of [false, true]) {
    const { page, press, card } = await open({ width: 680, calm });
    const [from, to] = [card("Shanghai")[0], card("to")[0]];
    await press("ArrowLeft");
    const soon = card("Shanghai")[0];
    assert.ok(calm ? soon === to : soon < from && soon > to, `${soon}`);
    await page.pass(600);
    assert.equal(card("Shanghai")[0], to);
    const before = page.frames.size;
    await page.pass(64);
    assert.equal(page.frames.size, before, "what has come to rest is drawn no more");
  }
});

test("Show me ends with positions and the words changed; Reset goes back", async () => {
  const { click, values } = await open();
  await click("Show me", 12000);
  assert.deepEqual(values(), { order: OTHER, positions: true, word: "Shanghai", numbers: 10, outputs: 4 });
  await click("Reset", 64);
  assert.equal(values().order, FIRST);
});
