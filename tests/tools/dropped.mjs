// What checkpoint_file.js makes of files, from their bytes in hexadecimal, and how many bytes it read.
import { configOf, filesOf, readFiles } from "../../ropebook/figures/checkpoint_file.js";
import card from "../../ropebook/figures/model_card.js";
import { openPage, show } from "./stage.mjs";

/** { name, text, rows, notes, config, of, read } of a file, or { refused } with what is wrong; rules by family. */
export const dropped = (name, hex, rules) => folder([[name, hex]], false, rules);

/** The same of files [path, hex]; as a folder that is dropped if entries is true, a few at a time. */
export async function folder(named, entries = false, rules = {}) {
  let read = 0;
  const files = named.map(([path, hex]) => {
    const all = Uint8Array.from(Buffer.from(hex, "hex"));
    const slice = (from, to) => ({
      arrayBuffer: async () => {
        const part = all.slice(from, to);
        read += part.length;
        return part.buffer;
      },
    });
    return { name: path.split("/").at(-1), path, size: all.length, slice };
  });
  try {
    const found = await readFiles(entries ? await filesOf({ items: tops(files), files: [] }) : files);
    const { config, ...of } = configOf(found.text, rules);
    return { ...found, config, of, read };
  } catch (problem) {
    if (problem.constructor.name !== "Refused") throw problem;
    return { refused: problem.message };
  }
}

/**
 * What the card's figure shows at first, after a file with a text is dropped, and after the field is typed in
 * without a change: { says, problem, field, elsewhere, table, warnings, blocks, chips, shown }, shown what has a
 * table, a picture, or a line on it, chips what is offered for a name that is sought.
 */
export async function onto(state, text, sought = "") {
  const page = openPage();
  const { root } = await show(page, card, state);
  const field = root.querySelector("textarea");
  const look = async () => {
    await page.pass(64);
    const parts = [...root.querySelectorAll("canvas, .rope-card, .rope-blocks, .rope-warnings, .rope-elsewhere")];
    return {
      says: root.querySelector(".rope-answer").textContent,
      problem: root.querySelector(".rope-problem").textContent,
      field: field.value,
      elsewhere: root.querySelector(".rope-elsewhere summary").textContent,
      table: root.querySelector(".rope-card").textContent,
      warnings: root.querySelector(".rope-warnings").textContent,
      blocks: root.querySelector(".rope-blocks").textContent,
      chips: root.querySelector(".rope-chips").textContent,
      shown: parts.filter((part) => !part.closest("[hidden]")).map(({ className, tagName }) => className || tagName),
    };
  };
  const seek = root.querySelector("input");
  seek.value = sought;
  seek.dispatchEvent(new page.window.Event("input"));
  const seen = [await look()];
  const all = new TextEncoder().encode(text);
  const file = { name: "new.json", size: all.length, slice: (...ends) => new Blob([all.slice(...ends)]) };
  const drop = new page.window.Event("drop", { cancelable: true });
  root.dispatchEvent(Object.assign(drop, { dataTransfer: { items: [], files: [file] } }));
  seen.push(await look());
  field.dispatchEvent(new page.window.Event("input"));
  return [...seen, await look()];
}

/** The name of the model that Enter takes for a text in the field for names; null if it stays as it was. */
export async function entered(state, text) {
  const page = openPage();
  const { root } = await show(page, card, state);
  const name = () => JSON.parse(root.closest("[data-values]").dataset.values).name;
  await page.pass(64);
  const before = name();
  const seek = root.querySelector("input");
  seek.value = text;
  seek.dispatchEvent(new page.window.Event("input"));
  seek.dispatchEvent(new page.window.KeyboardEvent("keydown", { key: "Enter" }));
  await page.pass(64);
  return name() === before ? null : name();
}

/** What a browser gives of what is dropped: entries, of which a reader tells two at a time. */
function tops(files) {
  const entry = (path, inside) => {
    const name = path.split("/").at(-1);
    const own = inside.find((file) => file.path === path);
    if (own) return { name, isFile: true, isDirectory: false, fullPath: `/${path}`, file: (done) => done(own) };
    const deeper = new Set(inside.map((file) => file.path.slice(path.length + 1).split("/")[0]));
    const children = [...deeper].map((child) => `${path}/${child}`);
    const under = (one) => inside.filter((file) => file.path === one || file.path.startsWith(`${one}/`));
    const createReader = () => {
      const left = children.map((one) => entry(one, under(one)));
      return { readEntries: (done) => done(left.splice(0, 2)) };
    };
    return { name, isFile: false, isDirectory: true, fullPath: `/${path}`, createReader };
  };
  const roots = new Set(files.map(({ path }) => path.split("/")[0]));
  return [...roots].map((root) => ({
    webkitGetAsEntry: () =>
      entry(
        root,
        files.filter((file) => file.path.split("/")[0] === root),
      ),
  }));
}
