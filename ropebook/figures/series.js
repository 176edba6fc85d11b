// series.js: the frequencies of a part, along one axis or several; the twin of ropescope/series.py.
import { rescaledFrequencies } from "./aliasing.js";
import { get, has } from "./fields.js";
import { equal, isReal, isWhole, Real, Refused, repr, truthy } from "./published.js";

/** What Python calls a TypeError. */
export class Unfit extends Refused {}

const told = (parameters, name, otherwise) => Number(get(parameters, name, otherwise));

function checkPositive(name, value) {
  if (!isReal(value)) throw new Unfit(`${name} must be a real number, got ${repr(value)}`);
  if (!(Number(value) > 0 && Number(value) < Infinity)) {
    throw new Refused(`${name} must be finite and > 0, got ${repr(value)}`);
  }
}

function checkOrdered(lowName, low, highName, high) {
  checkPositive(lowName, low);
  checkPositive(highName, high);
  if (Number(low) > Number(high))
    throw new Refused(`${lowName} must be <= ${highName}, got ${repr(low)} and ${repr(high)}`);
}

function checkDivisors(name, values, dim) {
  if (!values.every(isReal)) throw new Refused(`${name} must be real numbers`);
  if (values.length !== dim / 2) throw new Refused(`${name} must have shape (${dim / 2},), got (${values.length},)`);
  if (!values.every((x) => Number(x) > 0 && Number(x) < Infinity)) {
    throw new Refused(`${name} must be finite and > 0 everywhere, got ${repr(values)}`);
  }
}

export const ORIGINAL_LENGTH = "original_max_position_embeddings";

/** What rescaled_frequencies of Python refuses, refused in its words. */
const CHECKS = {
  dynamic(dim, _, { factor, max_position_embeddings: longest }) {
    checkPositive("factor", factor);
    checkPositive("max_position_embeddings", longest);
    CHECKS.ntk(dim, _, { factor });
  },
  ntk(dim, _, { factor }) {
    checkPositive("factor", factor);
    if (dim <= 2) throw new Refused(`dim must be >= 4 for kind 'ntk', got ${dim}`);
  },
  yarn(_, base, given) {
    checkPositive("factor", given.factor);
    checkOrdered("beta_slow", given.beta_slow ?? new Real(1), "beta_fast", given.beta_fast ?? new Real(32));
    if (base <= 1) throw new Refused(`base must be > 1 for kind 'yarn', got ${repr(new Real(base))}`);
    if (typeof (given.truncate ?? true) !== "boolean") {
      throw new Refused(`truncate must be True or False, got ${repr(given.truncate)}`);
    }
    if (!(told(given, ORIGINAL_LENGTH) > 0)) throw new Refused("math domain error");
    for (const name of ["mscale", "mscale_all_dim"]) if (truthy(given[name])) checkPositive(name, given[name]);
    if (has(given, "attention_factor")) checkPositive("attention_factor", given.attention_factor);
  },
  llama3(_, __, given) {
    const [low, high] = [given.low_freq_factor, given.high_freq_factor];
    checkOrdered("low_freq_factor", low, "high_freq_factor", high);
    checkPositive("factor", given.factor);
    checkPositive(ORIGINAL_LENGTH, given[ORIGINAL_LENGTH]);
  },
  longrope(dim, _, given) {
    const original = given[ORIGINAL_LENGTH];
    checkPositive(ORIGINAL_LENGTH, original);
    if (!has(given, "factor")) {
      if (given.max_position_embeddings === null) {
        throw new Unfit("kind 'longrope' needs factor or max_position_embeddings");
      }
      checkPositive("max_position_embeddings", given.max_position_embeddings);
    }
    const factor = given.factor ?? given.max_position_embeddings / original;
    checkPositive("factor", factor);
    checkDivisors("short_factor", given.short_factor, dim);
    checkDivisors("long_factor", given.long_factor, dim);
    if (factor > 1 && original <= 1) throw new Refused(`${ORIGINAL_LENGTH} must be > 1, got ${repr(original)}`);
    if (has(given, "attention_factor")) checkPositive("attention_factor", given.attention_factor);
  },
  proportional(dim, _, { partial_rotary_factor: fraction, factor = 1 }) {
    checkPositive("factor", factor);
    if (!Math.floor((fraction * dim) / 2)) {
      throw new Refused(`partial_rotary_factor must leave at least one rotated pair, got ${repr(fraction)} x ${dim}`);
    }
  },
};

/** The frequencies of so many channels; keeps the factor, and whether the type changes none. */
export class Series {
  constructor(kind, base, given, longest) {
    Object.assign(this, { kind, base, factor: 1, given: { ...given } });
    if (kind === "dynamic" || kind === "longrope") this.given.max_position_embeddings = longest;
    if (kind === "ntk") this.given = { factor: given.alpha };
    if (kind === "yarn") {
      for (const name of ["beta_fast", "beta_slow"]) if (!truthy(this.given[name])) delete this.given[name];
    }
  }
  of(dim) {
    if (dim < 1) throw new Refused(`at least one pair of channels must rotate, got ${dim} channels`);
    const plain = Array.from({ length: Math.ceil(dim / 2) }, (_, i) => this.base ** ((-2 * i) / dim));
    const found = this.rescaled(dim, plain);
    this.idle = this.factor === 1 && found.every((wave, i) => Math.abs(wave - plain[i]) <= 1e-12 * plain[i]);
    return found;
  }
  rescaled(dim, plain) {
    if (this.kind === "default" || this.kind === "linear") {
      const factor = told(this.given, "factor", 1);
      return plain.map((wave) => wave / factor);
    }
    if (dim % 2) throw new Refused(`dim must be a positive even integer, got ${dim}`);
    CHECKS[this.kind]?.(dim, this.base, this.given);
    const given = Object.entries(this.given).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(Number) : typeof value === "boolean" || value === null ? value : Number(value),
    ]);
    const found = rescaledFrequencies(this.kind, dim, this.base, Object.fromEntries(given));
    if (![...found.invFreq, found.attention].every(Number.isFinite)) {
      throw new Refused(`parameters must give finite frequencies, got ${repr(this.given)}`);
    }
    this.factor = found.attention;
    return Array.from(found.invFreq);
  }
}

/** Arrangements of axes that follow from mrope_section. */
export const SECTIONED = ["chunks", "interleaved", "in turn"];

/** The frequencies of all pairs, one or a list of one per axis each, and runs [axis, pairs]. */
export function arranged(axes, dim, parameters, series) {
  if (axes === null || axes === undefined) return [series.of(dim), null];
  const { mode, count } = axes;
  let [waves, which] = [[], []];
  if (mode.endsWith("blocks") || mode.endsWith("alternating")) {
    const each = series.of(count > 2 ? 2 * Math.floor(dim / (2 * count)) : Math.floor(dim / count));
    const order = Array.from({ length: count }, (_, axis) => (mode.startsWith("reversed") ? count - 1 - axis : axis));
    if (mode.endsWith("alternating")) {
      waves = each.flatMap((wave) => order.map(() => wave));
      which = each.flatMap(() => order);
    } else {
      waves = order.flatMap(() => each);
      which = order.flatMap((axis) => each.map(() => axis));
    }
  } else if (mode === "every other") {
    const all = series.of(dim);
    waves = [0, 1].flatMap((first) => all.filter((_, i) => i % 2 === first));
    which = waves.map((_, i) => Math.floor((2 * i) / waves.length));
  } else {
    waves = series.of(dim);
    const given = get(parameters, "mrope_section", axes.sections ?? null);
    which = sectioned(axes, given, waves.length, parameters._name);
  }
  const found = waves.map((wave, i) => Array.from({ length: count }, (_, axis) => (axis === which[i] ? wave : 0)));
  const runs = [];
  for (const axis of which) {
    if (runs.at(-1)?.[0] === axis) runs.at(-1)[1] += 1;
    else runs.push([axis, 1]);
  }
  return [found, runs];
}

/** The axis of each pair, from the number of pairs of each axis. */
function sectioned({ mode, count, sums }, given, pairs, name) {
  const fine = Array.isArray(given) && given.every((n) => isWhole(n) && n >= 0);
  const sum = fine ? given.reduce((a, b) => a + b, 0) : 0;
  if (!fine || given.length !== count || ((sums || mode !== "interleaved") && sum !== pairs)) {
    const words = `${count} whole numbers that add up to the ${pairs} pairs of a head`;
    throw new Refused(`${name}.mrope_section must be ${words}, got ${repr(given)}`);
  }
  if (mode === "chunks") return given.flatMap((n, axis) => Array(n).fill(axis));
  if (mode === "in turn" && !equal(given[0], given[1])) {
    throw new Refused(`${name}.mrope_section must begin with two equal numbers, got ${repr(given)}`);
  }
  const which = Array(pairs).fill(0);
  if (mode === "interleaved") {
    for (let axis = 1; axis < given.length; axis++) {
      const end = Math.min(given.length * given[axis], pairs);
      for (let i = axis; i < end; i += given.length) which[i] = axis;
    }
  } else for (let i = 0; i < Math.min(given[0] + given[1], pairs); i++) which[i] = (i % 2) + 1;
  return which;
}
