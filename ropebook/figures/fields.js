// fields.js: the fields of one part of a configuration; the twin of ropescope/fields.py.
import { equal, isDict, isWhole, Refused, repr, truthy } from "./published.js";

export const BASE = /theta|(rope|rotary|freq)_.*base|freq_base|^base$/;
export const NAMES = /[A-Za-z_]\w*/g;

export const has = (object, name) => Object.hasOwn(object ?? {}, name);
export const get = (object, name, otherwise = null) => (has(object, name) ? object[name] : otherwise);
/** The dotted name of a field of a part. */
export const at = (path, name) => `${path}.${name}`.replace(/^\.+/, "");

/** The letters of the types of a value, of all entries of a list. */
export function typesOf(value) {
  const letter = (x) => {
    if (x === null || x === undefined) return "n";
    if (typeof x === "boolean" || typeof x === "string") return typeof x === "string" ? "s" : "b";
    if (Array.isArray(x) || isDict(x)) return isDict(x) ? "d" : "l";
    return isWhole(x) ? "i" : "f";
  };
  if (!Array.isArray(value)) return [letter(value)];
  return value.length ? [...new Set(value.map((one) => letter(one).toUpperCase()))] : ["e"];
}

/** Fields of one part: as given, in another spelling, or a default, such as a model's preset; notes reads. */
export class Fields {
  constructor(config, rule, path, preset, places) {
    this.aliases = rule.aliases ?? {};
    for (const name of rule.inner ?? []) {
      const own = get(config, name);
      for (const [key, value] of Object.entries(isDict(own) ? own : {})) {
        config = { ...config, [`${name}.${key}`]: value }; // fields of a dict, by dotted names
      }
    }
    const unset = (name) => typesOf(config[name]).every((one) => (rule.unset?.[name] ?? "").includes(one));
    const idle = Object.keys(rule.unset ?? {}).filter((name) => has(config, name) && unset(name));
    config = Object.fromEntries(Object.entries(config).filter(([name]) => !idle.includes(name))); // as if not given
    const other = (name) => Number(has(this.aliases, name));
    const names = Object.keys(config).sort((a, b) => other(a) - other(b)); // another spelling is set last
    this.given = new Map(names.map((name) => [this.plain(name), config[name]]));
    this.named = new Map(names.map((name) => [this.plain(name), name]));
    const [lists, toggle] = [rule.rope?.listed ?? [], rule.layers?.switch?.field ?? ""];
    const entryLists = BASE.test(toggle) ? [...lists, toggle] : lists;
    Object.assign(this, { path, preset, places, lists, entryLists });
    this.read = new Set(idle.map((name) => at(path, name)));
    const last = [...this.named.values()];
    this.twice = names.filter((name) => !last.includes(name)).map((name) => [name, config[name]]);
    this.defaults = { ...rule.defaults, ...preset };
    this.nullIs = rule.null_is ?? {};
  }
  plain(name) {
    return get(this.aliases, name, name);
  }
  name(name) {
    const plain = this.plain(name);
    const where = at(this.path, this.named.get(plain) ?? plain);
    return this.places.get(where) ?? where;
  }
  /** A field's value as given, or by default; that it was read is not noted. */
  known(name, otherwise = null) {
    return this.given.has(name) ? this.given.get(name) : get(this.defaults, name, otherwise);
  }
  has(name) {
    return this.given.has(this.plain(name));
  }
  get(name) {
    const plain = this.plain(name);
    if (!this.given.has(plain)) return get(this.defaults, plain);
    this.read.add(this.name(plain));
    return this.given.get(plain) ?? get(this.nullIs, plain);
  }
  /** A field's value, for this layer where it may be a list. */
  at(name, layer) {
    const value = this.get(name);
    if (!this.lists.includes(name) || !Array.isArray(value)) return value;
    if (layer >= value.length) {
      throw new Refused(`${this.name(name)} must have an entry for each layer, got ${repr(value)}`);
    }
    return value[layer];
  }
  count(name) {
    const value = this.get(name);
    if (value === null) return null;
    if (!(isWhole(value) && value > 0 && value < 2 ** 53))
      throw new Refused(`${this.name(name)} must be a positive integer, got ${repr(value)}`);
    return value;
  }
  /** Sets types of layers from windows, where they are not given. */
  madeOf(windows, field) {
    const given = this.given.get(windows.field);
    if ((this.given.get(field) ?? null) !== null || !Array.isArray(given)) return;
    this.named.set(field, windows.field);
    this.given.set(
      field,
      given.map((one) => windows[truthy(one) ? "other" : "zero"]),
    );
  }
  /** Throws where a size is none, or does not divide as its class wants. */
  check(rule) {
    const read = new Set(this.read);
    for (const [name, fine] of Object.entries(rule.refuses ?? {})) {
      if (!this.given.has(name) || fine.some((one) => equal(one, this.given.get(name)))) continue;
      const words = fine.some(truthy) ? `left out or ${repr(fine[0])}` : "left out";
      throw new Refused(`${this.name(name)} must be ${words}, got ${repr(this.given.get(name))}`);
    }
    for (const name of rule.must ?? []) {
      if ((this.given.get(name) ?? null) !== null) continue;
      throw new Refused(`${this.name(name)} must be given: its class fails without it`);
    }
    for (const [name, none] of Object.entries(rule.sizes ?? {})) {
      if (this.given.has(name) && this.count(name) === null && !none) {
        throw new Refused(`${this.name(name)} must be a positive integer, got None`);
      }
    }
    const [size, heads] = rule.divides ? ["hidden_size", "num_attention_heads"].map((name) => this.count(name)) : [];
    if (size && heads && size % heads) {
      const words = `a multiple of ${this.name("num_attention_heads")}, ${heads}`;
      throw new Refused(`${this.name("hidden_size")} must be ${words}, got ${size}`);
    }
    this.read = read;
  }
  first(expressions) {
    for (const words of expressions) {
      const value = this.value(words);
      if (value !== null) return [value, words];
    }
    throw new Refused(`${this.name(expressions.at(-1).split(" ")[0])} must be given`);
  }
  /** An expression with its fields spelt as given. */
  spelt(words) {
    return words.replace(NAMES, (name) => this.name(name));
  }
  /** Fields and integers joined by //, * and +, from left to right; null where one is unknown. */
  value(words) {
    const one = (word) => (/^\d+$/.test(word) ? Number(word) : this.count(word));
    const [first, ...rest] = words.split(" ");
    let total = one(first);
    for (let i = 0; i < rest.length; i += 2) {
      const other = one(rest[i + 1]);
      if (total === null || other === null) return null;
      total = { "//": Math.floor(total / other), "*": total * other, "+": total + other }[rest[i]];
    }
    return total;
  }
}
