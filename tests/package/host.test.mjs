// host.js on a page without a browser: its controls, what they are linked to, and the address.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawAlone, formatted, open, stops, typed } from "../../ropebook/figures/host.js";
import { figure } from "../../ropebook/figures/kit/figure.js";
import { openPage } from "../tools/stage.mjs";

const START = { size: 0.5, m: 3, dim: 64, show: 1, trail: false, data: [1] };
const LIMITS = { size: [0, 1, 0], m: [0, null, 1], dim: [2, 256, 2] };
const OPTIONS = { show: ["angle", "cosine"] };

const slider = (kind, values) => ({
  model_name: `${kind}Model`,
  state: {
    min: 0,
    max: 100,
    step: 1,
    readout_format: ",d",
    description: "Distance",
    _dom_classes: ["a-class"],
    ...values,
  },
});
const chooser = (kind, options, description) => ({
  model_name: `${kind}Model`,
  state: { index: 0, _options_labels: options, description, _dom_classes: [] },
});
const link = (from, name, trait) => ({
  model_name: "LinkModel",
  state: { source: [`IPY_MODEL_${from}`, name], target: ["IPY_MODEL_figure", trait] },
});
const box = (kind, children, ...classes) => ({
  model_name: kind,
  state: { children: children.map((id) => `IPY_MODEL_${id}`), _dom_classes: classes },
});

/** A box with a figure and a control of every kind, drawn by the host; it says what the figure saw. */
async function drawn({ query = "", formulas = {}, ask = () => {} } = {}) {
  const page = openPage();
  const { document } = page;
  const seen = { traits: null, warned: [] };
  const module = figure((fig) => {
    fig.draw(() => {
      seen.traits = fig.traits;
    });
    seen.fig = fig;
    ask(fig, seen);
  });
  Object.assign(window, { ropeFigures: { "phase-dial": module } });
  const values = { _start: START, _options: OPTIONS, _limits: LIMITS, _whole: ["m", "dim"], ...START };
  const state = {
    root: box("VBoxModel", ["title", "figure", "controls"], "rope-box"),
    title: { model_name: "HTMLModel", state: { value: "<p>Why?</p>" } },
    figure: { model_name: "AnyModel", state: { _anywidget_id: "a.PhaseDial", ...values } },
    controls: box("BoxModel", ["m", "dim", "size", "show", "list", "trail"], "rope-controls"),
    m: slider("IntSlider", { value: 3 }),
    dim: slider("IntSlider", { value: 64, min: 2, max: 128, step: 2, description: "Width" }),
    size: slider("FloatLogSlider", { value: 0.5, min: -2, max: 0, step: 0.1, base: 10, readout_format: ",.3r" }),
    show: chooser("ToggleButtons", OPTIONS.show, "Show"),
    list: chooser("Dropdown", OPTIONS.show, "List"),
    trail: { model_name: "CheckboxModel", state: { value: true, description: "Leave a trail" } },
    links: link("m", "value", "m"),
    dims: link("dim", "value", "dim"),
    sizes: link("size", "value", "size"),
    shows: link("show", "index", "show"),
    lists: link("list", "index", "show"),
    trails: link("trail", "value", "trail"),
  };
  const host = open(JSON.parse(JSON.stringify(state)), formulas);
  const { warn } = console;
  console.warn = (text) => seen.warned.push(text);
  host.start(query);
  console.warn = warn;
  host.draw("root", document.body);
  await page.pass();
  const root = document.querySelector(".rope-box");
  const sliders = Object.fromEntries(
    ["m", "dim", "size"].map((name, i) => {
      const all = root.querySelectorAll(".widget-hslider");
      const [track, readout] = ["input[type=range]", "input.widget-readout"].map((s) => all[i].querySelector(s));
      return [name, { node: all[i], track, readout }];
    }),
  );
  const fire = (node, type, init = {}) =>
    node.dispatchEvent(Object.assign(new window.Event(type, { bubbles: true }), init));
  const write = (name, text) => {
    sliders[name].readout.value = text;
    fire(sliders[name].readout, "keydown", { key: "Enter" });
  };
  const now = async () => {
    await page.pass();
    return seen.traits;
  };
  return { page, root, host, seen, sliders, fire, write, now };
}

test("the box holds its question, its figure and its controls, under the names of the style sheet", async () => {
  const { root, sliders, seen } = await drawn();
  assert.deepEqual(
    [...root.children].map((node) => node.className.split(" ").at(-1)),
    ["widget-html", "rope-cell", "rope-controls"],
  );
  assert.equal(root.querySelector("p").textContent, "Why?");
  assert.ok(root.querySelector("[data-figure='phase-dial']"));
  assert.ok(sliders.m.node.classList.contains("a-class"));
  assert.deepEqual(seen.traits, { ...START, show: "cosine" }, "a control starts where its figure is");
  assert.equal(root.querySelector("[type=checkbox]").checked, false);
});

test("every control has the name of its label, and says its value", async () => {
  const { root, sliders } = await drawn();
  const { track, readout, node } = sliders.m;
  assert.equal(node.querySelector("label").htmlFor, track.id);
  assert.equal(readout.getAttribute("aria-label"), "Distance, value");
  assert.deepEqual([track.getAttribute("aria-valuetext"), readout.value], ["3", "3"]);
  assert.equal(sliders.size.track.getAttribute("aria-valuetext"), "0.500");
  const group = root.querySelector("[role=group]");
  assert.equal(root.querySelector(`#${group.getAttribute("aria-labelledby")}`).textContent, "Show");
  const pressed = [...group.querySelectorAll("button")].map((button) => button.getAttribute("aria-pressed"));
  assert.deepEqual(pressed, ["false", "true"]);
  const select = root.querySelector("select");
  assert.equal(root.querySelector(`label[for=${select.id}]`).textContent, "List");
  assert.equal(root.querySelector("[type=checkbox]").closest("label").textContent, "Leave a trail");
});

test("a control moves its figure, and a figure its controls", async () => {
  const { root, sliders, fire, now, seen } = await drawn();
  const { track } = sliders.dim;
  assert.deepEqual([track.min, track.max, track.value, track.step], ["0", "63", "31", "1"]);
  track.value = "40";
  fire(track, "input");
  assert.equal((await now()).dim, 82);
  assert.equal(sliders.dim.readout.value, "82");
  root.querySelector("[role=group] button").click();
  assert.equal((await now()).show, "angle");
  assert.equal(root.querySelector("select").selectedIndex, 0, "two controls of one trait agree");
  root.querySelector("select").selectedIndex = 1;
  fire(root.querySelector("select"), "change");
  assert.equal((await now()).show, "cosine");
  const check = root.querySelector("[type=checkbox]");
  check.checked = true;
  fire(check, "change");
  assert.equal((await now()).trail, true);
  seen.fig.set({ m: 12, show: "angle", trail: false });
  assert.deepEqual([sliders.m.track.value, sliders.m.readout.value, check.checked], ["12", "12", false]);
  assert.equal(root.querySelector(".mod-active").textContent, "angle");
});

test("a typed number counts as it is, within the limits; what is none does not", async () => {
  const { sliders, write, now, fire } = await drawn();
  write("m", "1,7");
  assert.equal((await now()).m, 17);
  write("m", "250");
  assert.deepEqual([(await now()).m, sliders.m.readout.value], [100, "100"]);
  for (const text of ["many", "", "  ", "1e999"]) {
    write("m", text);
    assert.deepEqual([(await now()).m, sliders.m.readout.value], [100, "100"], text);
  }
  write("m", "41.6");
  assert.equal((await now()).m, 42);
  write("dim", "7");
  assert.deepEqual([(await now()).dim, sliders.dim.readout.value], [8, "8"], "a width is even");
  write("size", "0.1234");
  assert.equal((await now()).size, 0.1234, "between two stops of the slider");
  assert.equal(sliders.size.track.value, "11");
  write("size", "0");
  assert.equal((await now()).size, 0.01);
  sliders.m.readout.value = "5";
  fire(sliders.m.readout, "keydown", { key: "Escape" });
  assert.deepEqual([(await now()).m, sliders.m.readout.value], [42, "42"]);
});

test("a number that only shows fewer digits is not changed by passing through", async () => {
  const { write, now, sliders, fire } = await drawn();
  write("size", "0.12345678");
  fire(sliders.size.readout, "change");
  assert.equal((await now()).size, 0.12345678);
});

test("a figure may leave the limits of its slider, which stands at its end", async () => {
  const { sliders, seen } = await drawn();
  seen.fig.set({ m: 5000 });
  assert.deepEqual([sliders.m.track.value, sliders.m.readout.value], ["100", "5,000"]);
  assert.equal(seen.fig.traits.m, 5000);
});

test("numbers are written as d3 writes them", () => {
  assert.equal(formatted(131072, ",d"), "131,072");
  assert.equal(formatted(-3, ",d"), "−3");
  assert.equal(formatted(0.1, ",.3f"), "0.100");
  assert.equal(formatted(1234.5, ",.2f"), "1,234.50");
  assert.equal(formatted(10000, ",.3r"), "10,000");
  assert.equal(formatted(0.12345, ",.3r"), "0.123");
  assert.equal(formatted(1234567, ",.3r"), "1,230,000");
  assert.throws(() => formatted(1, "%"), /no number format %/);
  assert.deepEqual(["−2", " 1,000 ", "1e3", ""].map(typed), [-2, 1000, 1000, Number.NaN]);
});

test("both ends of a slider are reached, and no stop carries the noise of binary fractions", () => {
  const log = stops({ min: 0, max: Math.log10(131072), step: 0.1, base: 10 });
  assert.deepEqual([log.value(0), log.value(10), log.value(log.last)], [1, 10, 131072]);
  assert.deepEqual([log.stop(131072), log.stop(1), log.stop(1e9), log.stop(0.1)], [log.last, 0, log.last, 0]);
  const fine = stops({ min: 0, max: 3, step: 0.1 });
  assert.deepEqual([fine.last, fine.value(3), fine.value(30)], [30, 0.3, 3]);
  for (let stop = 0; stop <= fine.last; stop++) assert.equal(fine.stop(fine.value(stop)), stop);
  for (let stop = 0; stop <= log.last; stop++) assert.equal(log.stop(log.value(stop)), stop);
  const uneven = stops({ min: 1, max: 64, step: 10 });
  assert.deepEqual([uneven.last, uneven.value(7), uneven.within(900)], [7, 64, 64]);
});

test("the address sets traits before the first drawing, and Reset goes back to them", async () => {
  const seen = [];
  const ask = (fig) => fig.draw(() => seen.push(fig.traits));
  const query = "?m=7&size=0.25&show=angle&trail=true&theme=dark";
  const { root, sliders, host, fire, now, seen: traits } = await drawn({ query, ask });
  assert.deepEqual(seen[0], { ...START, m: 7, size: 0.25, show: "angle", trail: true });
  assert.deepEqual(traits.warned, []);
  assert.equal(sliders.m.readout.value, "7");
  assert.equal(host.address(), "size=0.25&m=7&show=angle&trail=true");
  sliders.m.track.value = "3";
  fire(sliders.m.track, "input");
  assert.equal(host.address(), "size=0.25&show=angle&trail=true", "what is as the figure came is not said");
  [...root.querySelectorAll("button")].find((button) => button.textContent === "Reset").click();
  await now();
  assert.equal(sliders.m.readout.value, "7");
  assert.equal((await drawn()).host.address(), "");
});

test("an address can be followed again, also where a text has spaces and signs", async () => {
  const { host } = await drawn({ query: `?${new URLSearchParams({ show: "cosine", m: "1,024" })}` });
  assert.equal(host.address(), "m=1024");
});

test("of an address that cannot be followed a sentence stands in the console, and the rest counts", async () => {
  const query = "?m=many&dim=7&show=sine&trail=yes&data=2&hands=4&size=";
  const { seen } = await drawn({ query: `${query}&m=12` });
  assert.deepEqual(
    seen.warned.map((text) => text.replace("the address was not followed: ", "")),
    [
      "m must be a number, got many",
      "dim must be a multiple of 2, got 7",
      "show must be one of angle, cosine; got sine",
      "trail must be true or false, got yes",
      "there is no data to set",
      "there is no hands to set",
      "size must be a number, got ",
    ],
  );
  assert.deepEqual(seen.traits, { ...START, m: 12, show: "cosine" });
});

test("a number of the address that is out of its range is the nearest in it", async () => {
  const { seen } = await drawn({ query: "?m=-5&size=40&dim=100000" });
  assert.deepEqual([seen.traits.m, seen.traits.size, seen.traits.dim], [0, 1, 256]);
});

test("a formula is answered from those that the page carries", async () => {
  const ask = (fig, seen) => {
    seen.nodes = ["a^2", "b^2"].map((latex) => {
      const node = fig.element("div");
      fig.formula(node, latex);
      return node;
    });
  };
  const { seen } = await drawn({ formulas: { "a^2": "<math>A</math>" }, ask });
  assert.deepEqual(
    seen.nodes.map((node) => node.innerHTML),
    ["<math>A</math>", "b^2"],
  );
});

test("a kind of widget that it does not know is named, and so is a figure without a script", () => {
  openPage();
  const accordion = { model_name: "AccordionModel", state: {} };
  assert.throws(() => open({ a: accordion }), /no widget of the kind Accordion/);
  const figureless = { model_name: "AnyModel", state: { _anywidget_id: "a.LostDial" } };
  assert.throws(() => open({ a: figureless }).draw("a", document.body), /no script of the figure lost-dial/);
});

test("a page of its own that was saved with its figure shows it once", () => {
  const { document } = openPage();
  const state = { root: { model_name: "HTMLModel", state: { value: "Now" } } };
  document.body.innerHTML = `<main>Then</main><script type="application/json" id="rope-state"></script>`;
  document.querySelector("#rope-state").textContent = JSON.stringify({ root: "root", state, formulas: {} });
  Object.assign(window, { ropeHost: {}, matchMedia: () => new EventTarget() });
  drawAlone();
  assert.equal(document.querySelector("main").textContent, "Now");
  assert.equal(window.ropeHost.shown.address(), "");
});
