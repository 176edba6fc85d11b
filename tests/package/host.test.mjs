// host.js on a page without a browser: the address, the formulas, and the pages that it draws.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawAlone, drawPage, hurry, open } from "../../ropebook/figures/host.js";
import { figure } from "../../ropebook/figures/kit/figure.js";
import { openPage } from "../tools/stage.mjs";

const START = { size: 0.5, m: 3, dim: 64, show: 1, trail: false, data: [1] };
const STATE = {
  ...START,
  _anywidget_id: "a.PhaseDial",
  _question: "Why?",
  _start: START,
  _limits: { size: [0, 1, 0], m: [0, null, 1], dim: [2, 256, 2] },
  _options: { show: ["angle", "cosine"] },
  _controls: [{ name: "dim", label: "Width", every: 2 }],
};

/** A figure drawn by the host; it says what the figure saw, and what was warned of. */
async function drawn({ query = "", formulas = {}, setUp = () => {} } = {}) {
  const page = openPage();
  const seen = { traits: [], warned: [] };
  const module = figure((fig) => {
    fig.draw(() => seen.traits.push(fig.traits));
    setUp(fig, seen);
  });
  Object.assign(window, { ropeFigures: { "phase-dial": module } });
  const host = open(STATE, formulas);
  const { warn } = console;
  console.warn = (text) => seen.warned.push(text.replace("the address was not followed: ", ""));
  host.start(query);
  console.warn = warn;
  host.draw(document.body);
  await page.pass();
  const track = document.querySelector(".rope-track");
  const move = async (stop) => {
    track.value = stop;
    track.dispatchEvent(new window.Event("input", { bubbles: true }));
    await page.pass();
  };
  return { page, host, seen, track, move };
}

test("the address sets traits before the first drawing, and Reset goes back to them", async () => {
  const query = "?m=7&size=0.25&dim=32&show=angle&trail=true&theme=dark";
  const { page, seen, host, track, move } = await drawn({ query });
  assert.deepEqual(seen.traits[0], { ...START, m: 7, size: 0.25, dim: 32, show: "angle", trail: true });
  assert.deepEqual(seen.warned, []);
  assert.equal(track.getAttribute("aria-valuetext"), "32");
  assert.equal(host.address(), "dim=32&m=7&show=angle&size=0.25&trail=true");
  await move(31);
  assert.equal(host.address(), "m=7&show=angle&size=0.25&trail=true", "what is as the figure came is not said");
  document.querySelector(".rope-reset").click();
  await page.pass();
  assert.equal(track.getAttribute("aria-valuetext"), "32");
  assert.equal((await drawn()).host.address(), "");
});

test("an address can be followed again, also where a text has spaces and signs", async () => {
  const { host } = await drawn({ query: `?${new URLSearchParams({ show: "cosine", m: "1,024" })}` });
  assert.equal(host.address(), "m=1024");
});

test("of an address that cannot be followed a sentence stands in the console, and the rest counts", async () => {
  const query = "?m=many&dim=7&show=sine&trail=yes&data=2&hands=4&size=";
  const { seen } = await drawn({ query: `${query}&m=12` });
  assert.deepEqual(seen.warned, [
    "m must be a number, got many",
    "dim must be a multiple of 2, got 7",
    "show must be one of angle, cosine; got sine",
    "trail must be true or false, got yes",
    "there is no data to set",
    "there is no hands to set",
    "size must be a number, got ",
  ]);
  assert.deepEqual(seen.traits[0], { ...START, m: 12, show: "cosine" });
});

test("a number of the address that is out of its range is the nearest in it", async () => {
  const { seen } = await drawn({ query: "?m=-5&size=40&dim=100000" });
  const { m, size, dim } = seen.traits[0];
  assert.deepEqual([m, size, dim], [0, 1, 256]);
});

test("a formula is answered from those that the page carries", async () => {
  const setUp = (fig, seen) => {
    seen.nodes = ["a^2", "b^2"].map((latex) => {
      const node = fig.element("div");
      fig.formula(node, latex);
      return node;
    });
  };
  const { seen } = await drawn({ formulas: { "a^2": "<math>A</math>" }, setUp });
  assert.deepEqual(
    seen.nodes.map((node) => node.innerHTML),
    ["<math>A</math>", "b^2"],
  );
});

test("a page draws every figure in its place, and one that fails leaves the others alone", async () => {
  const page = openPage();
  const view = (id) => `<script type="application/vnd.jupyter.widget-view+json">{"model_id": "${id}"}</script>`;
  document.body.innerHTML = `<script type="application/vnd.jupyter.widget-state+json"></script>${view(0)}${view(1)}`;
  const state = { 0: { _anywidget_id: "a.LostDial" }, 1: STATE };
  document.querySelector("script").textContent = JSON.stringify({ state });
  const problems = [];
  Object.assign(window, { ropeFigures: { "phase-dial": figure(() => {}) }, reportError: (one) => problems.push(one) });
  performance.mark ??= () => {};
  watch();
  drawPage();
  await page.pass(200);
  assert.equal(problems.length, 0);
  hurry();
  await page.pass(200);
  assert.match(problems[0].message, /no script of the figure lost-dial/);
  assert.equal(problems.length, 1);
  const [lost, shown] = document.querySelectorAll(".rope-place");
  assert.equal(lost.children.length, 0);
  assert.equal(shown.querySelector(".rope-question").textContent, "Why?");
});

/** Let nothing come near by itself; what tells the page that something does. */
function watch() {
  const watched = [];
  globalThis.IntersectionObserver = class {
    constructor(action) {
      watched.push((isIntersecting) => action([{ isIntersecting }]));
    }
    observe() {}
    disconnect() {}
  };
  return watched;
}

test("figures that come near at once have a frame each, and are drawn once", async () => {
  const page = openPage();
  const view = (id) => `<script type="application/vnd.jupyter.widget-view+json">{"model_id": "${id}"}</script>`;
  const views = [0, 1, 2].map(view).join("");
  document.body.innerHTML = `<script type="application/vnd.jupyter.widget-state+json"></script>${views}`;
  document.querySelector("script").textContent = JSON.stringify({ state: { 0: STATE, 1: STATE, 2: STATE } });
  let framed = false;
  const next = requestAnimationFrame;
  globalThis.requestAnimationFrame = (action) =>
    next(() => {
      framed = true;
      action();
      framed = false;
    });
  const [times, drawn] = [[], []];
  const module = figure((fig) => {
    times.push(page.time);
    fig.draw(() => drawn.push(framed || times.includes(page.time)));
  });
  Object.assign(window, { ropeFigures: { "phase-dial": module } });
  performance.mark ??= () => {};
  const watched = watch();
  drawPage();
  await page.pass(200);
  assert.deepEqual(times, []);
  for (const near of [...watched, ...watched]) near(true);
  await page.pass(200);
  assert.equal(new Set(times).size, 3);
  hurry();
  assert.equal(times.length, 3);
  assert.deepEqual(drawn, [false, false, false], "in tasks of their own, and none in a frame");
});

/** A page with one figure whose data stand elsewhere; what watches its place, and what it loads. */
async function waiting() {
  const page = openPage();
  const view = '<script type="application/vnd.jupyter.widget-view+json">{"model_id": "0"}</script>';
  document.body.innerHTML = `<script type="application/vnd.jupyter.widget-state+json"></script>${view}`;
  const state = { 0: { ...STATE, data: {}, _data: "data.js" } };
  document.querySelector("script").textContent = JSON.stringify({ state });
  const seen = [];
  const watched = watch();
  const module = figure((fig) => seen.push(fig.model.get("data")));
  Object.assign(window, { ropeFigures: { "phase-dial": module } });
  performance.mark ??= () => {};
  const append = document.body.append.bind(document.body);
  const loads = [];
  document.body.append = (...nodes) => {
    for (const node of nodes) {
      if (node.src) loads.push(node);
      else append(node);
    }
  };
  drawPage();
  await page.pass(200);
  return { page, seen, watched, loads };
}

test("data that stand elsewhere are loaded once, when their figure's place comes near", async () => {
  const { page, seen, watched, loads } = await waiting();
  watched[0](false);
  assert.deepEqual([seen, loads], [[], []]);
  watched[0](true);
  await page.pass(50);
  hurry();
  assert.equal(loads.length, 1);
  window.ropeData = { [loads[0].src]: { many: 1 } };
  loads[0].onload();
  await page.pass(100);
  assert.deepEqual(seen, [{ many: 1 }]);
});

test("a page that is printed does not wait, and data that do not come are missed in words", async () => {
  const { seen, loads } = await waiting();
  window.dispatchEvent(new window.Event("beforeprint"));
  assert.match(loads[0].src, /data\.js$/);
  loads[0].onerror();
  assert.match(document.querySelector(".rope-place").textContent, /did not come/);
  assert.deepEqual(seen, []);
});

test("on paper every figure is drawn at once and seen, though nobody came near", async () => {
  const page = openPage();
  const view = '<script type="application/vnd.jupyter.widget-view+json">{"model_id": "0"}</script>';
  document.body.innerHTML = `<script type="application/vnd.jupyter.widget-state+json"></script>${view}`;
  document.querySelector("script").textContent = JSON.stringify({ state: { 0: STATE } });
  let draws = 0;
  const module = figure((fig) => fig.draw(() => draws++));
  Object.assign(window, { ropeFigures: { "phase-dial": module } });
  performance.mark ??= () => {};
  watch();
  drawPage();
  await page.pass(200);
  window.dispatchEvent(new window.Event("beforeprint"));
  assert.equal(draws, 1);
  assert.equal(document.querySelector(".rope-place").hidden, false);
});

test("a page of its own that was saved with its figure shows it once, under the heading of the page", () => {
  const { document } = openPage();
  document.body.innerHTML = `<main>Then</main><script type="application/json" id="rope-state"></script>`;
  document.querySelector("#rope-state").textContent = JSON.stringify({ state: STATE, formulas: {} });
  const ropeFigures = { "phase-dial": figure(() => {}) };
  Object.assign(window, { ropeHost: {}, ropeFigures, matchMedia: () => new EventTarget() });
  drawAlone();
  const [heading] = document.querySelectorAll("main [role=heading]");
  assert.deepEqual([heading.textContent, heading.getAttribute("aria-level")], ["Why?", "1"]);
  assert.doesNotMatch(document.querySelector("main").textContent, /Then/);
  assert.equal(window.ropeHost.shown.address(), "");
});
