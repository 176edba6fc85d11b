// aliasing.js: the mathematics of near repeats, position codes, rescalings and rounding.
// Pure functions. The Python twins are ropebook.aliasing and rope_minimal.frequencies;
// tests/package/test_explore_aliasing.py compares the two.
import { clamp, TURN } from "./kit/numbers.js";
import { inverseFrequencies, wavelengths } from "./rope.js";

// ---- one pair -----------------------------------------------------------------------------------

/** The first distance at which the wrapped angle falls back; infinite for a frequency of 0. */
export function angleHorizon(theta) {
  return Math.ceil(TURN / theta);
}

/**
 * The record distances at which one pair comes nearest to its start, up to maxDistance:
 * [{ distance, turns, error }], error in radians, negative short of the start. Exact: integers
 * for theta, 1100 bits for pi.
 */
export function nearRepeats(theta, maxDistance) {
  const [top, bottom] = exactFraction(theta);
  const [piTop, piBottom] = pi();
  let [p, q, pOld, qOld] = [1n, 0n, 0n, 1n];
  let [a, b] = [top * piBottom, bottom * 2n * piTop]; // theta / 2 pi
  const records = [];
  for (;;) {
    const whole = a / b;
    [p, pOld, q, qOld] = [whole * p + pOld, p, whole * q + qOld, q];
    if (q > BigInt(maxDistance)) return records;
    // distance * theta - turns * 2 pi
    const error = ratio(q * top * piBottom - p * 2n * piTop * bottom, bottom * piBottom);
    const record = { distance: Number(q), turns: Number(p), error };
    if (records.length && records.at(-1).distance === record.distance) records.pop();
    records.push(record);
    [a, b] = [b, a - whole * b];
    if (b === 0n) return records;
  }
}

function exactFraction(x) {
  let shift = 0n;
  while (!Number.isInteger(x)) {
    x *= 2;
    shift += 1n;
  }
  return [BigInt(x), 1n << shift];
}

/** The quotient of two large integers as a float, with 64 bits before its one rounding. */
function ratio(a, b) {
  const negative = a < 0n;
  if (negative) a = -a;
  if (a === 0n) return 0;
  const bits = (n) => n.toString(2).length;
  const shift = 64 - (bits(a) - bits(b));
  const scaled = shift > 0 ? (a << BigInt(shift)) / b : a / (b << BigInt(-shift));
  return ((negative ? -1 : 1) * Number(scaled)) / 2 ** shift;
}

let piParts = null;
/** Pi to 1100 bits by Machin's formula. */
function pi() {
  if (piParts) return piParts;
  const one = 1n << 1116n;
  const atanInverse = (n) => {
    let [total, power, k] = [0n, one / n, 0n];
    while (power) {
      total += (k % 2n ? -1n : 1n) * (power / (2n * k + 1n));
      power /= n * n;
      k += 1n;
    }
    return total;
  };
  piParts = [16n * atanInverse(5n) - 4n * atanInverse(239n), one];
  return piParts;
}

// ---- the bank -----------------------------------------------------------------------------------

/**
 * The first distance at which the mean cosine is larger than one position before, or Infinity.
 * cos(m t) - cos((m - 1) t) = -2 sin((m - 1/2) t) sin(t / 2): no nearly equal cosines are subtracted.
 */
export function cosineHorizon(invFreq, maxDistance = null) {
  const fastest = Math.max(...invFreq);
  if (fastest === 0) return Infinity;
  const start = Math.max(1, Math.floor(Math.PI / fastest));
  const stop = maxDistance ?? 64 * start;
  const weight = Array.from(invFreq, (theta) => Math.sin(theta / 2));
  for (let m = start; m <= stop; m++) {
    let step = 0;
    for (let i = 0; i < weight.length; i++) step += Math.sin((m - 0.5) * invFreq[i]) * weight[i];
    if (step < 0) return m;
  }
  return Infinity;
}

const BLOCK = 256; // distances after which each cosine is computed afresh

/** The sum of the pairs' cosines at the distances 0 .. last: each pair is rotated on by a complex product. */
export function cosineSums(invFreq, last) {
  const sums = new Float64Array(last + 1);
  for (let first = 0; first <= last; first += BLOCK) {
    const end = Math.min(first + BLOCK, last + 1);
    for (const theta of invFreq) {
      const [stepC, stepS] = [Math.cos(theta), Math.sin(theta)];
      let [c, s] = [Math.cos(first * theta), Math.sin(first * theta)];
      for (let m = first; m < end; m++) {
        sums[m] += c;
        const turned = c * stepC - s * stepS;
        s = s * stepC + c * stepS;
        c = turned;
      }
    }
  }
  return sums;
}

const SIGNIFICAND_BITS = { float64: 53, float32: 24, float16: 11, bfloat16: 8 };

/** Half a unit in the last place of 1: the largest relative error of one rounding. */
export function unitRoundoff(dtype) {
  return 2 ** -SIGNIFICAND_BITS[dtype];
}

/** Root mean square relative error of rounding to a number type. */
export function roundingNoise(dtype) {
  return unitRoundoff(dtype) * Math.sqrt(1 / (8 * Math.LN2));
}

/**
 * By how much the score of a one-position step exceeds the noise of storing q and k, for q and k in
 * random directions. Entries nearer than their unit in the last place are mostly rounded alike.
 */
export function neighbourSnr(invFreq, dtype) {
  const noise = roundingNoise(dtype);
  let [signal, error] = [0, 0];
  for (const theta of invFreq) {
    const step = 2 * Math.abs(Math.sin(theta / 2));
    const apart = ((2 / Math.PI) * Math.sqrt(2 / Math.LN2) * step) / noise;
    signal += step ** 2;
    error += noise ** 2 * (step ** 2 - 2 * Math.expm1(-apart));
  }
  return error ? Math.sqrt(signal / error) : 0;
}

/** Which pairs meet angles at `length` positions that `trained` positions never showed. */
export function unseenPairs(invFreq, length, trainedInvFreq, trained) {
  return Array.from(invFreq, (theta, i) => {
    const seen = trained * trainedInvFreq[i];
    return seen < TURN && length * theta > seen * (1 + 1e-9);
  });
}

// ---- rescalings ---------------------------------------------------------------------------------

const clip = (x) => clamp(x, 0, 1);
const temperature = (factor, mscale = 1) => (factor <= 1 ? 1 : 0.1 * mscale * Math.log(factor) + 1);
const plain = (invFreq, attention = 1) => ({ invFreq, attention });

function blend(invFreq, factor, keep) {
  return invFreq.map((theta, i) => ((1 - keep(i)) * theta) / factor + keep(i) * theta);
}

const RULES = {
  default: (dim, base) => plain(inverseFrequencies(dim, base)),
  linear: (dim, base, { factor }) => plain(inverseFrequencies(dim, base).map((theta) => theta / factor)),
  ntk: (dim, base, { factor }) => plain(inverseFrequencies(dim, base * factor ** (dim / (dim - 2)))),
  dynamic(dim, base, { factor, max_position_embeddings: trained, seq_len: length = trained }) {
    const stretch = Math.max(length, trained) / trained;
    return RULES.ntk(dim, base, { factor: factor * stretch - (factor - 1) });
  },
  by_parts(dim, base, { factor, original_max_position_embeddings: trained, beta_fast = 32, beta_slow = 1 }) {
    const invFreq = inverseFrequencies(dim, base);
    const turns = wavelengths(invFreq).map((wavelength) => trained / wavelength);
    const share = (i) => (turns[i] - beta_slow) / (beta_fast - beta_slow);
    const keep = beta_fast === beta_slow ? (i) => Number(turns[i] > beta_slow) : (i) => clip(share(i));
    return plain(blend(invFreq, factor, keep));
  },
  yarn_paper: (dim, base, parameters) =>
    plain(RULES.by_parts(dim, base, parameters).invFreq, temperature(parameters.factor)),
  yarn(dim, base, { factor, original_max_position_embeddings: trained, beta_fast = 32, beta_slow = 1, ...rest }) {
    const { truncate = true, mscale, mscale_all_dim: all, attention_factor: given } = rest;
    const pairWith = (turns) => (dim * Math.log(trained / (turns * TURN))) / (2 * Math.log(base));
    const ends = [pairWith(beta_fast), pairWith(beta_slow)];
    const [first, last] = truncate ? [Math.floor(ends[0]), Math.ceil(ends[1])] : ends;
    const low = Math.max(first, 0);
    const width = Math.min(last, dim - 1) - low || 0.001; // the released code's guard against 0/0
    const keep = (i) => 1 - clip((i - low) / width);
    const quotient = mscale && all ? temperature(factor, mscale) / temperature(factor, all) : temperature(factor);
    return plain(blend(inverseFrequencies(dim, base), factor, keep), given ?? quotient);
  },
  llama3: (dim, base, { low_freq_factor, high_freq_factor, ...rest }) =>
    RULES.by_parts(dim, base, { ...rest, beta_fast: high_freq_factor, beta_slow: low_freq_factor }),
  longrope(dim, base, { short_factor, long_factor, original_max_position_embeddings: trained, seq_len, ...rest }) {
    const { max_position_embeddings: longest, factor = longest / trained, attention_factor: given } = rest;
    const divisors = seq_len > trained ? long_factor : short_factor;
    const attention = factor > 1 ? Math.sqrt(1 + Math.log(factor) / Math.log(trained)) : 1;
    return plain(
      inverseFrequencies(dim, base).map((theta, i) => theta / divisors[i]),
      given ?? attention,
    );
  },
  proportional(dim, base, { partial_rotary_factor = 1, factor = 1 }) {
    const turning = Math.floor(Math.floor(partial_rotary_factor * dim) / 2);
    return plain(inverseFrequencies(dim, base).map((theta, i) => (i < turning ? theta / factor : 0)));
  },
  monotone: (dim, base, { max_positions, turns = 0.5 }) =>
    plain(inverseFrequencies(dim, base).map((theta) => theta * ((TURN * turns) / max_positions))),
};

/** A published rescaling by its kind: { invFreq, attention }, as rescaled_frequencies gives it. */
export function rescaledFrequencies(kind, dim, base, parameters = {}) {
  if (!Object.hasOwn(RULES, kind)) throw new Error(`kind must be one of ${Object.keys(RULES).join(", ")}; got ${kind}`);
  return RULES[kind](dim, base, parameters);
}

// ---- rounding -----------------------------------------------------------------------------------

// significand bits, exponent of the smallest normal number, largest finite number
const FORMATS = {
  float16: [11, -14, 65504],
  bfloat16: [8, -126, (2 - 2 ** -7) * 2 ** 127],
};

/** x rounded once, to nearest, ties to even, to a number type; too large numbers become infinite. */
export function roundTo(x, dtype) {
  if (dtype === "float32") return Math.fround(x);
  if (dtype === "float64" || x === 0 || !Number.isFinite(x)) return x;
  const [bits, lowest, largest] = FORMATS[dtype];
  const unit = 2 ** (Math.max(exponent(x), lowest) - bits + 1);
  const parts = Math.abs(x) / unit; // exact: a power of two
  let whole = Math.floor(parts);
  const rest = parts - whole;
  if (rest > 0.5 || (rest === 0.5 && whole % 2)) whole += 1;
  const rounded = whole * unit;
  return Math.sign(x) * (rounded > largest ? Infinity : rounded);
}

const cell = new DataView(new ArrayBuffer(8));
/** floor(log2 |x|) of a normal float64. */
function exponent(x) {
  cell.setFloat64(0, x);
  return ((cell.getUint16(0) >> 4) & 0x7ff) - 1023;
}

/**
 * What is computed when one stage of the table, or all of them, is in a number type:
 * { angle, cosine }. stage: "positions", "inverse frequencies", "product", "table", "everything".
 */
export function roundedEntry(position, theta, dtype, stage) {
  const at = (name, x) => (stage === name || stage === "everything" ? roundTo(x, dtype) : x);
  const angle = at("product", at("positions", position) * at("inverse frequencies", theta));
  return { angle, cosine: at("table", Math.cos(angle)) };
}

/** Computed minus true, of the angle (rad) or of the cosine; Infinity where nothing is left. */
export function roundingError(position, theta, dtype, stage, show) {
  const { angle, cosine } = roundedEntry(position, theta, dtype, stage);
  const error = show === "angle" ? angle - position * theta : cosine - Math.cos(position * theta);
  return Number.isNaN(error) ? Infinity : error;
}

/** How many different values the positions 0 .. count - 1 have in a number type. */
export function distinctPositions(count, dtype) {
  const last = count - 1;
  const [bits, , largest] = FORMATS[dtype] ?? [24, -126, Infinity]; // float32
  let held = Math.min(last, 2 ** bits) + 1;
  for (let low = 2 ** bits, gap = 2; low < last; low *= 2, gap *= 2) {
    held += Math.max(Math.floor((Math.min(2 * low, last, largest) - low) / gap), 0);
  }
  return held + (roundTo(last, dtype) > last); // a last one that is rounded upwards
}
