// The atlas on a page without a browser: rows are chosen, searched, filtered and sorted by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import atlas, { COLUMNS, inLines, SHOW } from "../../ropebook/figures/atlas.js";
import { handOn, openPage, show } from "../tools/stage.mjs";

const FIELDS = {
  name: "",
  family: "",
  part: "",
  head: 8,
  axes: 1,
  layout: "half-split",
  place: "all",
  width: 8,
  pairs: null,
  direction: 1,
  base: 1e4,
  bases: 1,
  scaling: null,
  factor: 1,
  series: null,
  rotation: true,
  broken: null,
  deviation: 0,
  norm: null,
  rests: null,
  heard: true,
  ran: true,
  heads: false,
  values: false,
  findings: [],
  rest: 1,
  wrong: [],
  lost: false,
};
const GIVEN = [
  { name: "beta", layout: "interleaved" },
  { name: "alpha", base: 5e5, scaling: "yarn", factor: 1.3465736 },
  { name: "gamma", direction: -1, findings: ["It is <odd>."], ran: false },
  { name: "delta", broken: "0.3", rotation: false, heard: false, ran: false },
];
const columns = Object.keys(FIELDS);
const more = Array.from({ length: 30 }, (_, i) => ({ name: `more ${i}` })); // too many to be drawn large
const packed = (given) => given.map((row) => columns.map((name) => ({ ...FIELDS, family: row.name, ...row })[name]));

async function open(options = {}) {
  const page = openPage(options);
  const start = { show: 0, sort: 0, down: false, search: "", row: 1, other: 0 };
  const state = {
    _anywidget_id: "ropebook.figures.Atlas",
    _start: start,
    _options: { show: Object.keys(SHOW), sort: Object.keys(COLUMNS) },
    data: { columns, rows: packed(options.wall ? [...GIVEN, ...more] : GIVEN), series: [] },
    ...start,
  };
  const shown = await show(page, atlas, state);
  const table = shown.root.querySelector(".rope-table");
  const open = async () => {
    table.open = true;
    table.dispatchEvent(new page.window.Event("toggle"));
    await page.pass();
  };
  if (!options.closed) await open();
  const lines = () => [...shown.root.querySelectorAll(".rope-list tbody tr")];
  const family = (line) => line.querySelector("td").textContent;
  const press = async (node, key) => {
    node.dispatchEvent(new page.window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await page.pass();
  };
  const type = async (words) => {
    const input = shown.root.querySelector("input[type=search]");
    input.value = words;
    input.dispatchEvent(new page.window.Event("input", { bubbles: true }));
    await page.pass();
    return input;
  };
  const values = () => JSON.parse(shown.root.dataset.values);
  return { open, page, ...shown, lines, names: () => lines().map(family), press, type, values };
}

test("rows stand in order, and one of them can be tabbed to", async () => {
  const { names, lines, root } = await open();
  assert.deepEqual(names(), ["alpha", "beta", "delta", "gamma"]);
  assert.deepEqual(
    lines().map((line) => line.tabIndex),
    [0, -1, -1, -1],
  );
  assert.deepEqual(
    lines().map((line) => line.getAttribute("aria-selected")),
    ["true", "false", "false", "false"],
  );
  assert.equal(root.querySelector("table").getAttribute("role"), "grid");
});

test("the wall obeys the arrow keys and a pointer, and its button shows what breaks the promise", async () => {
  const { root, page, values } = await open();
  const { press, point, drawn } = handOn(page, root);
  for (const [key, name] of [
    ["Home", "alpha"], // half-split: alpha, gamma, delta; then beta, which is interleaved
    ["ArrowRight", "beta"],
    ["End", "gamma"],
    ["ArrowLeft", "delta"],
  ]) {
    await press(key);
    assert.equal(values().row, name, key);
  }
  await point("pointerdown", ringed(drawn()).center);
  assert.equal(values().row, "delta", "where it is");
  const button = [...root.querySelectorAll(".rope-seek button")].find((b) => b.textContent === "Show the 1");
  assert.equal(button.textContent, "Show the 1");
  for (const found of [1, 4]) {
    button.click();
    await page.pass();
    assert.equal(values().found, found);
    assert.equal(button.getAttribute("aria-pressed"), String(found === 1));
  }
});

/** The ring around the chosen wheel. */
const ringed = (drawn) => drawn.filter(({ kind, arc }) => kind === "stroke" && arc).at(-1).arc;

test("what breaks the promise is filled on the wall, and says how beside its wheel and in the answer", async () => {
  const { root, page, values } = await open({ wall: true });
  const { press, drawn, point } = handOn(page, root);
  const said = () => drawn().flatMap(({ kind, text }) => (kind === "text" ? [text] : []));
  const answer = () => root.querySelector(".rope-answer").textContent;
  assert.match(answer(), /^1 of 34 do: the filled wheels/);
  assert.ok(said().includes("alpha"), "the chosen one has its name");
  const place = {};
  await press("Home");
  for (const name of ["alpha", "gamma", "delta", "more 0"]) {
    assert.equal(values().row, name);
    place[name] = ringed(drawn()).center;
    await press("ArrowRight");
  }
  await press("Home");
  const [x, y] = place.delta;
  for (const by of [18, -18]) {
    await point("pointerdown", [x + by, y]);
    assert.equal(answer(), "1 of 34 do, delta by scores that differ by 0.3.", "a thumb is wide");
    assert.ok(said().includes("scores differ"));
    await point("pointerdown", place["more 0"]);
    assert.equal(values().row, "more 0", "its neighbour is met in its middle");
  }
});

test("the question of what breaks the promise is answered by the chosen one among those, too", async () => {
  const { root, page, values, type } = await open({ wall: true });
  const { press, drawn } = handOn(page, root);
  const answer = () => root.querySelector(".rope-answer").textContent;
  const button = [...root.querySelectorAll(".rope-seek button")].find((b) => b.textContent === "Show the 1");
  button.click();
  await page.pass();
  assert.match(answer(), /^Promise broken: 1 of 34/, "one that keeps it is chosen");
  await press("Home");
  assert.equal(answer(), "1 of 34 do, delta by scores that differ by 0.3.");
  assert.ok(drawn().some(({ text }) => text === "scores differ"));
  await type("del");
  assert.equal(answer(), "Promise broken, matching “del”: 1 of 34 rotations, delta by scores that differ by 0.3.");
  await type("other");
  assert.match(answer(), /none of 34 rotations\.$/);
  assert.equal(values().broken, null, "it is not among what is shown");
});

test("names break after an underline where there is no room for them", () => {
  assert.deepEqual(inLines("wav2vec2_conformer", 16), ["wav2vec2_", "conformer"]);
  assert.deepEqual(inLines("hunyuan_v1_dense", 16), ["hunyuan_v1_dense"]);
  assert.deepEqual(inLines("text base 10,000", 9), ["text base", "10,000"]);
});

test("to compare with a wheel brings the wall back", async () => {
  const { root, page } = await open();
  let seen = 0;
  root.querySelector("canvas").scrollIntoView = () => {
    seen += 1;
  };
  const hold = [...root.querySelectorAll("button")].find((b) => b.textContent === "Compare others with this one");
  assert.equal(hold.hidden, false);
  hold.click();
  await page.pass();
  assert.equal(hold.hidden, true);
  assert.equal(seen, 1);
});

test("the table has no rows before it is opened", async () => {
  const { lines, open: unfold } = await open({ closed: true });
  assert.equal(lines().length, 0);
  await unfold();
  assert.equal(lines().length, 4);
});

test("arrow keys walk through what is shown, and stop at its ends", async () => {
  const { lines, press, values, page } = await open();
  for (const [key, name] of [
    ["ArrowUp", "alpha"],
    ["ArrowDown", "beta"],
    ["ArrowDown", "delta"],
    ["End", "gamma"],
    ["PageDown", "gamma"],
    ["Home", "alpha"],
  ]) {
    await press(
      lines().find((line) => line.tabIndex === 0),
      key,
    );
    assert.equal(values().row, name, key);
    const own = lines().find((line) => line.getAttribute("aria-selected") === "true");
    assert.equal(page.document.activeElement, own);
    assert.equal(own.tabIndex, 0);
  }
});

test("a search leaves the chosen row chosen, and its first row can be tabbed to", async () => {
  const { names, lines, type, values, press, page } = await open();
  const input = await type("clockwise");
  assert.deepEqual(names(), ["gamma"]);
  assert.equal(values().row, "alpha");
  assert.equal(lines()[0].tabIndex, 0);
  await press(input, "ArrowDown");
  assert.equal(page.document.activeElement, lines()[0]);
  await type("nothing");
  assert.deepEqual(names(), []);
});

test("a head sorts by its column, and once more the other way", async () => {
  const { names, root, page } = await open();
  const head = [...root.querySelectorAll(".rope-list thead button")].find((b) => b.textContent === "base");
  const sorted = () => head.parentElement.getAttribute("aria-sort");
  assert.equal(sorted(), "none");
  head.click();
  await page.pass();
  assert.deepEqual([sorted(), names().at(-1)], ["ascending", "alpha"]);
  head.click();
  await page.pass();
  assert.deepEqual([sorted(), names()[0]], ["descending", "alpha"]);
});

test("a filter shows its rows, and a click chooses one", async () => {
  const { names, lines, root, page, values } = await open();
  const select = root.querySelector("select");
  select.value = "promise broken";
  select.dispatchEvent(new page.window.Event("change", { bubbles: true }));
  await page.pass();
  assert.deepEqual(names(), ["delta"]);
  lines()[0].click();
  await page.pass();
  assert.equal(values().row, "delta");
  assert.match(values().bridge, /no rotation/);
});

test("the chosen row goes beside, and what is found stands as text", async () => {
  const { root, page, lines, values } = await open();
  lines().at(-1).click();
  await page.pass();
  assert.match(root.querySelector(".rope-result li").textContent, /It is <odd>\./);
  const hold = [...root.querySelectorAll("button")].find((b) => b.textContent === "Compare others with this one");
  assert.equal(hold.hidden, false);
  hold.click();
  await page.pass();
  assert.equal(hold.hidden, true);
  assert.equal(values().other, "gamma");
  assert.match(values().bridge, /^Tap a wheel/);
  const cards = [...root.querySelectorAll(".rope-cards thead th")].map((cell) => cell.textContent);
  assert.deepEqual(cards, ["gamma", "gamma"]);
});

test("a card says no more than was heard", async () => {
  const { root, lines, page, names } = await open();
  for (const [name, norm, rests] of [
    ["alpha", "none", "none that was heard"],
    ["gamma", "none", "not heard"],
    ["delta", "not heard", "not heard"],
  ]) {
    lines()[names().indexOf(name)].click();
    await page.pass();
    const found = [...root.querySelectorAll(".rope-cards tbody tr")].map((line) => line.children);
    const said = Object.fromEntries(found.map(([head, chosen]) => [head.textContent, chosen.textContent]));
    assert.deepEqual([said["norm of q"], said["at rest"]], [norm, rests], name);
  }
});

test("a factor on cos and sin is not told as that of a rescaling", async () => {
  const { root } = await open();
  const line = [...root.querySelectorAll(".rope-cards tbody tr")].find((row) => /^scaling/.test(row.textContent));
  assert.equal(line.children[1].textContent, "yarn, cos and sin × 1.34657");
});

test("in a dark notebook it is marked so", async () => {
  const { box } = await open({ dark: true, lab: true });
  assert.equal(box.dataset.ropeTheme, "dark");
});
