// checkpoint_file.js: the configuration in a file or a folder that a reader drops. Of a GGUF its header (and its
// factors of the frequencies) is read, by slices, of a safetensors file the header; weights are not. The twin of
// ropescope/files.py, gguf_file.py and safetensors_file.py; tests/package/test_explore_files.py compares the two. What a params.json and a
// GGUF say is put into other words by translation.js.
import { isDict, isWhole, kindOf, parse, Refused, repr, written } from "./published.js";
import { rounded, translated } from "./translation.js";

const WANTED = "expected config.json, Meta's params.json or a GGUF";
const INDEX = "model.safetensors.index.json";
/** What a file without a model_type is that has such a key. */
const OTHERS = {
  peft_type: "a LoRA adapter: what its base_model_name_or_path names rotates; check that",
  tokenizer_class: "a tokenizer's file",
  image_processor_type: "a preprocessor's file",
  feature_extractor_type: "a preprocessor's file",
  processor_class: "a preprocessor's file",
  _from_model_config: "a file for generation",
  do_sample: "a file for generation",
  temperature: "a file for generation",
};
const LARGEST_TEXT = 4e6;
const LARGEST_HEADER = 1e8;
const BLOCK = 2 ** 20;

/** Bytes of a file, and as little more as can be. */
const bytes = async (file, from, to) => new Uint8Array(await file.slice(from, to).arrayBuffer());
const decoded = (part) => new TextDecoder(ENCODINGS[part.subarray(0, 2).join()] ?? "utf-8").decode(part);
/** Other encodings, by the two bytes with which their files begin. */
const ENCODINGS = { "255,254": "utf-16le", "254,255": "utf-16be" };

// ---- a folder -----------------------------------------------------------------------------------

const [DEEPEST, MOST_FILES] = [6, 5000];

/** All files that are dropped, those of folders with their paths; hidden ones stay. */
export async function filesOf({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...files];
  const found = [];
  const walk = async (entry, depth) => {
    if (found.length >= MOST_FILES || entry.name.startsWith(".")) return;
    if (entry.isFile) {
      const file = await new Promise((done, fail) => entry.file(done, fail));
      const { name, size } = file;
      found.push({ name, size, path: entry.fullPath.replace(/^\//, ""), slice: (from, to) => file.slice(from, to) });
      return;
    }
    const reader = entry.createReader();
    for (let some = [entry]; depth < DEEPEST && some.length; ) {
      some = await new Promise((done, fail) => reader.readEntries(done, fail)); // a hundred at a time
      for (const one of some) await walk(one, depth + 1);
    }
  };
  for (const entry of entries) await walk(entry, 0);
  return found;
}

const pathOf = ({ path, webkitRelativePath, name }) => path || webkitRelativePath || name;
const folderOf = (file) => pathOf(file).split("/").slice(0, -1).join("/");
const KINDS = [/^config\.json$/, /^params\.json$/, /\.gguf$/, /\.json$/];

/**
 * The configuration in some files: { text, name, rows, weights, notes }, rows the layout of the query and key
 * rows where the files say so, weights what the headers beside it say, notes what was taken for granted or is
 * wrong with them. Where there is no configuration, a Refused is thrown.
 */
export async function readFiles(files) {
  const order = (file) => {
    const at = KINDS.findIndex((name) => name.test(file.name));
    return at < 0 || /index\.json$/.test(file.name) ? KINDS.length : at;
  };
  const depth = (file) => pathOf(file).split("/").length;
  const sorted = [...files].sort(
    (a, b) => order(a) - order(b) || depth(a) - depth(b) || (pathOf(a) < pathOf(b) ? -1 : 1),
  );
  const [file] = sorted;
  if (!file) throw new Refused(`${WANTED}, and no file came.`);
  const folder = folderOf(file);
  let found;
  try {
    found = { rows: "", weights: "", notes: [], ...(await readFile(file)) };
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    throw new Refused(`${file.name}: ${await wrongWith(file, problem)}`);
  }
  const others = sorted.filter((one) => one !== file && order(one) === order(file) && depth(one) === depth(file));
  if (others.length) found.notes.push(`Of ${others.length + 1} configurations ${pathOf(file)} was taken.`);
  if (order(file) < 2)
    await addWeights(
      found,
      sorted.filter((one) => folderOf(one) === folder),
    );
  return { name: folder ? folder.split("/").at(-1) : file.name, ...found };
}

/** What the headers of weights beside a configuration say: of the files of an index, or model*, or all. */
async function addWeights(found, files) {
  const attempt = async (file, read) => {
    try {
      return await read(file);
    } catch (problem) {
      if (!(problem instanceof Refused)) throw problem;
      found.notes.push(`${file.name}: ${await wrongWith(file, problem)}`);
      return null;
    }
  };
  const index = files.find(({ name }) => name === INDEX);
  const map = index && (await attempt(index, readIndex));
  const named = map && new Set(Object.values(map));
  const all = files.filter(({ name }) => name.endsWith(".safetensors"));
  const models = all.filter(({ name }) => (named ? named.has(name) : name.startsWith("model")));
  const parts = models.length || named ? models : all;
  const tensors = new Set();
  const read = new Set();
  for (const part of parts) {
    const names = await attempt(part, readSafetensors);
    for (const [name] of names ?? []) tensors.add(name);
    if (names) read.add(part.name);
  }
  const missing = [...(named ?? [])].filter((name) => !parts.some((part) => part.name === name));
  const lost = Object.keys(map ?? {}).find((name) => read.has(map[name]) && !tensors.has(name));
  if (missing.length) found.notes.push(`${missing.join(", ")}, which the index names, is not beside it.`);
  if (lost !== undefined) found.notes.push(`${lost} is not in ${map[lost]}, as the index says.`);
  if (!tensors.size) return;
  const meta = [...tensors].some((name) => name.includes(".attention.wq."));
  const whose = meta ? "in Meta's names" : "in Hugging Face's names";
  const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  found.weights = `${counted(tensors.size, "tensor")} in ${counted(read.size, "file")}, ${whose}`;
  if (meta) found.rows = "interleaved";
}

async function readIndex(file) {
  if (file.size > LARGEST_HEADER) throw new Refused(`it has ${file.size.toLocaleString("en-US")} bytes.`);
  const found = parse(decoded(await bytes(file, 0, file.size)));
  const map = isDict(found) ? found.weight_map : null;
  if (!isDict(map) || !Object.values(map).every((name) => typeof name === "string"))
    throw new Refused("expected a weight_map from tensors to file names.");
  return map;
}

// ---- a file -------------------------------------------------------------------------------------

const POINTER = /^version \S+git-lfs/; // of Git LFS, by its first line

async function wrongWith(file, { message }) {
  if (!POINTER.test(decoded(await bytes(file, 0, 30)))) return message;
  return "this is a pointer of Git LFS and not the file itself, which `git lfs pull` brings.";
}

async function readFile(file) {
  const start = await bytes(file, 0, 9);
  if (decoded(start.subarray(0, 4)) === "GGUF") return readGguf(file);
  if (start[8] === 0x7b && !file.name.endsWith(".json")) {
    const tensors = await readSafetensors(file);
    throw new Refused(
      `its header names ${tensors.length} tensors and no configuration: how they rotate stands in the config.json beside it; drop that.`,
    );
  }
  if (file.name.endsWith(".safetensors"))
    throw new Refused(`expected safetensors with a header, the file has ${file.size} bytes.`);
  if (decoded(start.subarray(0, 2)) === "PK") {
    throw new Refused(`${WANTED}; of PyTorch's weights nothing is read here: drop the config.json beside them.`);
  }
  if (file.size > LARGEST_TEXT)
    throw new Refused(`${WANTED}, which are small; it has ${file.size.toLocaleString("en-US")} bytes.`);
  const text = decoded(await bytes(file, 0, file.size));
  configOf(text); // or it is refused
  return { text };
}

/** What a text says: { config, rows, notes, said }; a params.json or a GGUF's metadata in a config.json's words. */
export function configOf(text, rules = {}) {
  const twice = [];
  let found;
  try {
    found = parse(text, twice);
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    throw new Refused(`${WANTED}. ${problem.message}`);
  }
  if (!isDict(found)) throw new Refused(`expected a JSON object, got ${kindOf(found)}.`);
  if (isDict(found.weight_map)) {
    const count = new Set(Object.values(found.weight_map)).size;
    throw new Refused(
      `this index names ${count} files of weights and no configuration: drop the config.json beside it.`,
    );
  }
  const key = Object.keys(OTHERS).find((one) => Object.hasOwn(found, one) && !Object.hasOwn(found, "model_type"));
  const base = found.base_model_name_or_path;
  const words = OTHERS[key]?.replace("names", base ? `names, ${repr(base)},` : "names");
  if (key) throw new Refused(`by its ${key} this is ${words}.`);
  const told = translated(found, rules) ?? { config: found, rows: "", notes: [], said: {} };
  const names = [...new Set(twice)].sort().join(", ");
  if (names) told.notes.push(`Twice in one object of this file: ${names}; the last counts.`);
  return told;
}

// ---- safetensors --------------------------------------------------------------------------------

const SIZES = {
  ...{ F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4, I16: 2, I8: 1, U64: 8 },
  ...{ U32: 4, U16: 2, U8: 1, BOOL: 1, F8_E4M3: 1, F8_E5M2: 1 },
};

/** The tensors that the header of a safetensors file names. */
async function readSafetensors(file) {
  if (file.size < 8) throw new Refused(`expected safetensors with a header, the file has ${file.size} bytes.`);
  const start = await bytes(file, 0, 8);
  const length = Number(new DataView(start.buffer).getBigUint64(0, true));
  if (length > Math.min(file.size - 8, LARGEST_HEADER)) {
    const sizes = [length, file.size].map((n) => n.toLocaleString("en-US"));
    throw new Refused(`expected safetensors with a header of ${sizes[0]} bytes, the file has ${sizes[1]}.`);
  }
  const broken = (what) => new Refused(`the header of this safetensors file is broken: ${what}.`);
  let header;
  try {
    header = parse(decoded(await bytes(file, 8, 8 + length)));
  } catch (problem) {
    throw broken(problem.message.replace(/\.$/, ""));
  }
  if (!isDict(header)) throw broken(`it is a ${kindOf(header)}`);
  const tensors = Object.entries(header).filter(([name]) => name !== "__metadata__");
  for (const [name, one] of tensors) {
    if (!isDict(one)) throw broken(`${name} is a ${kindOf(one)}`);
    for (const [field, least] of [
      ["data_offsets", 2],
      ["shape", 0],
    ]) {
      const list = one[field];
      const fine = Array.isArray(list) && list.length >= least && list.every(isWhole);
      if (!fine || (least && list.length !== least)) throw broken(`${name} has ${field} ${repr(list)}`);
    }
    const [begin, end] = one.data_offsets;
    const size = end - begin;
    const needed = one.shape.reduce((a, b) => a * b, 1) * (SIZES[one.dtype] ?? 0) || size;
    if (Math.min(...one.shape, begin, size) < 0 || needed !== size) {
      throw broken(`it gives ${name} ${size} bytes, which are not ${repr(one.shape)} numbers in ${one.dtype}`);
    }
    if (8 + length + end > file.size) throw new Refused(`the file ends before ${name} does.`);
  }
  return tensors;
}

// ---- GGUF ---------------------------------------------------------------------------------------

const PLAIN = { 0: 4, 1: 2, 24: 1, 25: 2, 26: 4, 27: 8, 28: 8, 30: 2 }; // bytes of a number
const BLOCKS = {
  ...{ 2: [32, 18], 3: [32, 20], 6: [32, 22], 7: [32, 24], 8: [32, 34], 10: [256, 84], 11: [256, 110] },
  ...{ 12: [256, 144], 13: [256, 176], 14: [256, 210], 20: [32, 18], 23: [256, 136], 39: [32, 17] },
};
const [TEXT, ARRAY, LONG] = [8, 9, 1024];
const WIDTHS = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

/** More of the file is wanted. */
class More extends Error {
  constructor(end) {
    super();
    this.end = end;
  }
}

/** Reads values one after another. */
class Cursor {
  constructor(part, size) {
    Object.assign(this, { part, size, view: new DataView(part.buffer, part.byteOffset, part.byteLength), at: 0 });
  }
  skip(count) {
    const from = this.at;
    const breaks = new Refused(`the GGUF breaks off at byte ${from.toLocaleString("en-US")}.`);
    if (!(count <= this.size - from)) throw breaks;
    if (from + count > this.part.length) throw new More(from + count);
    this.at += count;
    return from;
  }
  whole(width) {
    const at = this.skip(width);
    return width === 8 ? Number(this.view.getBigUint64(at, true)) : this.view.getUint32(at, true);
  }
  text() {
    const length = this.whole(8);
    const at = this.skip(length);
    return decoded(this.part.subarray(at, at + length));
  }
  number(kind) {
    const width = WIDTHS[kind];
    if (!width) throw new Refused(`the GGUF breaks off at byte ${this.at}: ${kind} is no type of a value.`);
    const at = this.skip(width);
    const { view } = this;
    const read = {
      0: () => view.getUint8(at),
      1: () => view.getInt8(at),
      2: () => view.getUint16(at, true),
      3: () => view.getInt16(at, true),
      4: () => view.getUint32(at, true),
      5: () => view.getInt32(at, true),
      6: () => rounded(view.getFloat32(at, true)),
      7: () => view.getUint8(at) !== 0,
      10: () => Number(view.getBigUint64(at, true)),
      11: () => Number(view.getBigInt64(at, true)),
      12: () => rounded(view.getFloat64(at, true)),
    };
    return read[kind]();
  }
  /** A value; null for an array longer than LONG, as no configuration has. */
  value(kind, depth = 0) {
    if (kind === TEXT) return this.text();
    if (kind !== ARRAY) return this.number(kind);
    if (depth > 50) throw new Refused(`the GGUF breaks off at byte ${this.at}: arrays in arrays.`);
    const [inner, count] = [this.whole(4), this.whole(8)];
    if (count <= LONG) return Array.from({ length: count }, () => this.value(inner, depth + 1));
    if (WIDTHS[inner]) this.skip(count * WIDTHS[inner]);
    else if (count > this.size) this.skip(count);
    else for (let i = 0; i < count; i++) inner === TEXT ? this.skip(this.whole(8)) : this.value(inner, depth + 1);
    return null;
  }
}

function headerOf(part, size) {
  const cursor = new Cursor(part, size);
  cursor.skip(4);
  const version = cursor.whole(4);
  if (version !== 2 && version !== 3)
    throw new Refused(`expected little-endian GGUF of version 2 or 3, got ${version}.`);
  const [count, keys] = [cursor.whole(8), cursor.whole(8)];
  const metadata = Object.create(null);
  for (let i = 0; i < keys; i++) {
    const name = cursor.text();
    metadata[name] = cursor.value(cursor.whole(4));
  }
  const tensors = Object.create(null);
  for (let i = 0; i < count; i++) {
    const name = cursor.text();
    const axes = cursor.whole(4);
    if (axes > 64) cursor.skip(size);
    const shape = Array.from({ length: axes }, () => cursor.whole(8));
    tensors[name] = { shape, kind: cursor.whole(4), offset: cursor.whole(8) };
  }
  return { metadata, tensors, end: cursor.at };
}

async function readGguf(file) {
  let part = await bytes(file, 0, Math.min(BLOCK, file.size));
  let header;
  while (!header) {
    try {
      header = headerOf(part, file.size);
    } catch (problem) {
      if (!(problem instanceof More)) throw problem;
      const end = Math.min(Math.max(problem.end, part.length + BLOCK), file.size);
      if (end > LARGEST_HEADER) throw new Refused("the GGUF breaks off: its header has more than 100 MB.");
      const grown = new Uint8Array(end);
      grown.set(part);
      grown.set(await bytes(file, part.length, end), part.length);
      part = grown;
    }
  }
  const { metadata, tensors, end } = header;
  const align = metadata["general.alignment"] ?? 32;
  if (!isWhole(align) || align < 1)
    throw new Refused(`general.alignment must be a positive integer, got ${repr(align)}.`);
  const begin = Math.ceil(end / align) * align;
  for (const [name, one] of Object.entries(tensors)) {
    const [numbers, size] = BLOCKS[one.kind] ?? [1, PLAIN[one.kind] ?? 0];
    const all = one.shape.reduce((a, b) => a * b, 1);
    one.start = begin + one.offset;
    one.end = one.start + size * Math.floor(all / numbers);
    if (one.end > file.size) throw new Refused(`the file ends before ${name} does.`);
  }
  const architecture = metadata["general.architecture"];
  if (typeof architecture !== "string") throw new Refused("expected a text in general.architecture.");
  const own = Object.entries(metadata).filter(([key, value]) => key.startsWith(`${architecture}.`) && value !== null);
  const found = { "general.architecture": architecture, ...Object.fromEntries(own) };
  for (const which of ["factors_long", "factors_short", "freqs"]) {
    const tensor = tensors[`rope_${which}.weight`];
    if (tensor?.kind !== 0 || tensor.shape.length !== 1 || tensor.shape[0] > LONG) continue;
    const view = new DataView((await bytes(file, tensor.start, tensor.end)).buffer);
    const list = Array.from({ length: tensor.shape[0] }, (_, i) => rounded(view.getFloat32(4 * i, true)));
    found[`rope_${which}.weight`] = list;
  }
  const text = written(found);
  configOf(text); // or it is refused
  return { text };
}
