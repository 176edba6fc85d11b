// rope.js: the mathematics of the figures. Pure functions, float64, angles in radians.
// The Python twins are rope_minimal.frequencies, .reference and .aliasing;
// tests/package/test_explore.py compares the two.
import { TURN } from "./kit/numbers.js";

export const BASE = 10000;

/** theta_i = base^(-2i/dim), i = 0 .. dim/2 - 1. */
export function inverseFrequencies(dim, base = BASE) {
  return Float64Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
}

/** The frequencies of the reader's own model that a figure was given, or null. */
export function ownFrequencies(fig) {
  const own = fig.model.get("data")?.inv_freq;
  return own ? Float64Array.from(own) : null;
}

/** Positions that each pair needs for one full turn; infinite where the frequency is 0. */
export function wavelengths(invFreq) {
  return Float64Array.from(invFreq, (theta) => TURN / theta);
}

/** The angle reduced to [0, 2 pi), never 2 pi itself. */
export function wrappedAngle(angle) {
  return ((angle % TURN) + TURN) % TURN;
}

/** The short way from the start to an angle: -pi to pi. */
export function shortWay(angle) {
  return angle - TURN * Math.round(angle / TURN);
}

/** Angles position * theta, row after row: entry [p * pairs + i] belongs to position p, pair i. */
export function angleBank(positions, invFreq) {
  const pairs = invFreq.length;
  const bank = new Float64Array(positions.length * pairs);
  for (let p = 0; p < positions.length; p++) {
    for (let i = 0; i < pairs; i++) bank[p * pairs + i] = positions[p] * invFreq[i];
  }
  return bank;
}

/** The point (x, y) turned counter-clockwise by an angle: [x', y']. */
export function rotatePair(x, y, angle) {
  const c = Math.cos(angle);
  const s = Math.sin(angle);
  return [c * x - s * y, s * x + c * y];
}

/** Channels of pair i: (i, i + dim/2) half-split, (2i, 2i + 1) interleaved. */
export function pairChannels(i, dim, interleaved = false) {
  return interleaved ? [2 * i, 2 * i + 1] : [i, i + dim / 2];
}

/** A vector of 2 * invFreq.length channels, each pair turned by position * theta_i. */
export function rotate(vector, position, invFreq, interleaved = false) {
  const dim = 2 * invFreq.length;
  const out = new Float64Array(dim);
  invFreq.forEach((theta, i) => {
    const [a, b] = pairChannels(i, dim, interleaved);
    [out[a], out[b]] = rotatePair(vector[a], vector[b], position * theta);
  });
  return out;
}

/** Re sum q_i conj(k_i) exp(i (m - n) theta_i): the score of query m and key n. */
export function score(q, k, m, n, invFreq, interleaved = false) {
  const dim = 2 * invFreq.length;
  let sum = 0;
  invFreq.forEach((theta, i) => {
    const [a, b] = pairChannels(i, dim, interleaved);
    const angle = (m - n) * theta;
    sum += (q[a] * k[a] + q[b] * k[b]) * Math.cos(angle) + (q[a] * k[b] - q[b] * k[a]) * Math.sin(angle);
  });
  return sum;
}

/** The score over the distance as waves: of pair i the height |q_i||k_i| and the start arg q_i - arg k_i. */
export function waves(q, k, interleaved = false) {
  const dim = q.length;
  const heights = new Float64Array(dim / 2);
  const starts = new Float64Array(dim / 2);
  for (let i = 0; i < dim / 2; i++) {
    const [a, b] = pairChannels(i, dim, interleaved);
    heights[i] = Math.hypot(q[a], q[b]) * Math.hypot(k[a], k[b]);
    starts[i] = Math.atan2(q[b], q[a]) - Math.atan2(k[b], k[a]);
  }
  return { heights, starts };
}

/** Sum of height_i cos(distance * theta_i + start_i): the score at that distance. */
export function waveSum({ heights, starts }, distance, invFreq) {
  let sum = 0;
  invFreq.forEach((theta, i) => (sum += heights[i] * Math.cos(distance * theta + starts[i])));
  return sum;
}

/** Mean of cos(distance * theta_i): the score of equal vectors, 1 at distance 0. */
export function meanCosine(distance, invFreq) {
  let sum = 0;
  for (const theta of invFreq) sum += Math.cos(distance * theta);
  return sum / invFreq.length;
}

/** D(m), the root mean square over the pairs of |1 - exp(i m theta)|: 0 same code, 2 opposite. */
export function codeDistance(distance, invFreq) {
  let sum = 0;
  for (const theta of invFreq) sum += Math.sin((distance * theta) / 2) ** 2;
  return 2 * Math.sqrt(sum / invFreq.length);
}

/** Independent standard normal numbers, the same for the same seed (mulberry32, Box and Muller). */
export function normals(count, seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const radius = () => Math.sqrt(-2 * Math.log(1 - uniform()));
  return Float64Array.from({ length: count }, () => radius() * Math.cos(TURN * uniform()));
}
