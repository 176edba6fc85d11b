// layers.js: which layers turn, and which rest; the twin of ropescope/layers.py.
import { get, has } from "./fields.js";
import { equal, grouped, isWhole, Refused, repr, truthy } from "./published.js";

const MOST_LAYERS = 10_000;

/** Runs of layers by kind, null for all, and "rests" for those that do not rotate. */
export function layersOf(fields, rule, types) {
  const found = new Map([["rests", []]]);
  const [count, name] = fields.first(rule.count);
  if (count > MOST_LAYERS) {
    throw new Refused(`${fields.name(name)} must be at most ${grouped(MOST_LAYERS)}, got ${grouped(count)}`);
  }
  if (rule.types?.windows) fields.madeOf(rule.types.windows, rule.types.field);
  const given = fields.given.get(get(fields.aliases, "layer_types", "layer_types")) ?? null;
  const due = rule.types?.some_of ?? null;
  if (due !== null && given !== null && types.size && Array.isArray(given) && !given.includes(due)) {
    throw new Refused(`${fields.name("layer_types")} must have ${repr(due)}, got ${repr(given)}`);
  }
  if (rule.words) types = new Set(rule.words);
  if (given !== null && types.size) {
    if (!forEach(fields, given, count, rule.types) || !given.every((one) => types.has(one))) {
      const words = `a list with one of ${[...types].sort().join(", ")} for each of ${count} layers`;
      throw new Refused(`${fields.name("layer_types")} must be ${words}, got ${repr(given)}`);
    }
  }
  for (const [kind, wanted] of Object.entries(rule.wants ?? {})) {
    for (const one of Array.isArray(given) && given.includes(kind) ? wanted : []) {
      if (truthy(fields.get(one))) continue;
      const words = `must be set where ${fields.name("layer_types")} has ${repr(kind)}`;
      throw new Refused(`${fields.name(one)} ${words}, got ${repr(fields.get(one))}`);
    }
  }
  let kinds = rule.types ? listed(fields, rule.types, count) : Array(count).fill(null);
  const told = rule.numbers;
  const own = told && given === null ? fields.get(told.field) : null;
  if (own !== null) {
    if (!Array.isArray(own)) throw new Refused(`${fields.name(rule.numbers.field)} must be a list, got ${repr(own)}`);
    kinds = kinds.map((_, layer) => rule.numbers[own.some((one) => equal(one, layer)) ? "then" : "else"]);
  }
  const rotates = rule.switch ? listed(fields, rule.switch, count) : Array(count).fill(1);
  const active = !has(rule, "unless") || fields.get(rule.unless) !== null;
  const left = has(rule, "except") && truthy(fields.get(rule.except)) ? fields.get(rule.except) : [];
  if (!Array.isArray(left)) throw new Refused(`${fields.name(rule.except)} must be a list, got ${repr(left)}`);
  kinds.forEach((kind, layer) => {
    if ((rule.absent ?? []).includes(kind) || left.some((one) => equal(one, layer))) return;
    const rests = !truthy(rotates[layer]) || ((rule.rest ?? []).includes(kind) && active);
    const own = rests ? "rests" : truthy(kind) ? get(rule.rotation, kind) : null;
    found.set(own, [...(found.get(own) ?? []), layer]);
  });
  return new Map([...found].map(([kind, layers]) => [kind, runs(layers)]));
}

/** Whether a list has an entry for each layer, or more where its class cuts it. */
function forEach(fields, given, count, rule) {
  const more = Array.isArray(given) ? given.length - count : -1;
  if (typeof rule?.cut === "string" && more > 0) return equal(fields.get(rule.cut), more);
  return more === 0 || (rule?.cut === true && more > 0);
}

/** A field with an entry for each layer, or the pattern that its class makes. */
function listed(fields, rule, count) {
  const given = fields.get(rule.field);
  let told = null;
  if (truthy(given)) {
    if (!forEach(fields, given, count, rule)) {
      const words = `a list with an entry for each of ${count} layers`;
      throw new Refused(`${fields.name(rule.field)} must be ${words}, got ${repr(given)}`);
    }
    told = given.slice(0, count).map((one) => get(rule.old, String(one), one));
    if (rule.forced) told = [...told.slice(0, -rule.last.length), ...rule.last].slice(-count);
    if (typeof rule.every !== "string" || !isWhole(fields.given.get(rule.every))) return told;
  }
  const step = () => (told ? fields.given.get(rule.every) : fields.count(rule.every));
  const every = typeof rule.every === "string" ? step() || rule.or : rule.every;
  if (every === null || every === undefined) {
    throw new Refused(`${fields.name(rule.field)} must be given, one entry for each layer`);
  }
  const { cycle, first = [], last = [] } = rule;
  let found = Array.from({ length: count }, (_, i) => ((i + rule.offset) % every === 0 ? rule.then : rule.else));
  if (cycle) found = found.map((_, i) => cycle[i % cycle.length]);
  if (rule.backwards) found.reverse();
  found = [...first.slice(0, count), ...found.slice(first.length)];
  if (last.length) found = [...found.slice(0, -last.length), ...last].slice(-count);
  if (has(rule, "some") && !found.includes(rule.some)) found[count - 1] = rule.some;
  if (told?.every((one, i) => equal(one, found[i]))) fields.get(rule.every); // they agree
  return told ?? found;
}

export const ascending = (a, b) => a - b;

/** The numbers in runs [first, last, step]. */
export const unrolled = (given) =>
  given.flatMap(([first, last, step]) => Array.from({ length: (last - first) / step + 1 }, (_, i) => first + i * step));

/** Numbers as runs [first, last, step]. */
export function runs(layers) {
  const found = [];
  for (const layer of layers) {
    const last = found.at(-1);
    if (last && (last[0] === last[1] || layer - last[1] === last[2])) {
      [last[1], last[2]] = [layer, layer - last[1]];
    } else found.push([layer, layer, 1]);
  }
  return found;
}
