// rotated_part.js: what is known of one rotation of a model, and of its angles in a text of a length.
import { rescaledFrequencies, roundTo } from "./aliasing.js";
import { num, TURN } from "./kit/numbers.js";
import { inverseFrequencies } from "./rope.js";

export const namesIn = (path) => path.split(".").filter(Boolean);

/** The fields of a part's own configuration. */
export const fieldsOf = (part, config) => namesIn(part.path).reduce((inside, name) => inside?.[name], config) ?? {};

export const whole = (n) => num(n, 0);

/** Radians per position of each pair in a text of a length, where it has several axes along its own. */
export function speeds(part, length = 0) {
  const now = part.inv_freq.map((wave) => (Array.isArray(wave) ? Math.hypot(...wave) : wave));
  const [kind, given] = part.rescaling ?? [];
  if (kind === "longrope" && length > Number(given.original_max_position_embeddings)) {
    return now.map((theta, i) => (theta * given.short_factor[i]) / given.long_factor[i]);
  }
  if (kind === "dynamic" && part.max_length && length > part.max_length) {
    const told = { factor: Number(given.factor), max_position_embeddings: part.max_length, seq_len: length };
    return Array.from(rescaledFrequencies("dynamic", 2 * now.length, part.base, told).invFreq);
  }
  return now;
}

/** Whether layers look back by a window alone, so that a longer text brings them no new distance. */
export const near = ({ kind }) => /sliding|chunked|local/.test(kind ?? "");

/** What is known of a window of layers that are not told apart; empty where none is. */
export function windowOf(part, config, rules) {
  const own = fieldsOf(part, config);
  const byDefault = rules?.types[part.model_type]?.defaults?.use_sliding_window; // undefined: a class does not read it
  const slides = byDefault === undefined ? true : (own.use_sliding_window ?? byDefault);
  if (part.part !== "text" || part.kind || slides === false) return "";
  const fits = (size) => Number.isInteger(size) && size > 0;
  const field = ["sliding_window", "attention_chunk_size"].find((name) => fits(own[name]));
  if (!field) return "";
  const words = "layers that look back no further meet no new distance in a longer text; which do is not read";
  return `${field} is ${whole(own[field])}: ${words}`;
}

/** The rotation that is shown first: of the text, in attention that looks back all the way, and no part's if it can be. */
export function first(parts) {
  const far = parts.filter((part) => part.part === "text" && !near(part) && part.kind !== "indexer");
  const one = far.find(({ path }) => !path) ?? far[0];
  return one ? parts.indexOf(one) : 0;
}

/** The same without its rescaling. */
export function plainSpeeds(part) {
  const now = speeds(part);
  const kind = part.rescaling?.[0];
  if (!kind) return now;
  if (["linear", "proportional"].includes(kind)) {
    return now.map((theta) => theta * Number(part.rescaling[1].factor ?? 1));
  }
  return Array.from(inverseFrequencies(2 * now.length, part.base));
}

/** The longest text that the file is for: with YaRN, at most its factor times the original length. */
export function carries({ trained_length: trained, max_length: longest, rescaling }) {
  if (rescaling?.[0] !== "yarn" || !trained) return longest;
  return Math.min(longest ?? Infinity, Math.floor(trained * Math.max(1, Number(rescaling[1].factor ?? 1))));
}

/** How far YaRN goes, where that is farther than the lengths in the file; else null. */
export function reachOfYarn({ trained_length: trained, max_length: longest, rescaling }) {
  if (rescaling?.[0] !== "yarn" || !trained) return null;
  const reach = Math.floor(trained * Number(rescaling[1].factor ?? 1));
  return reach > Math.max(longest ?? 0, trained) ? reach : null;
}

/** How far each pair turned in training, in radians, as far as the file says; null where it does not. */
export function seenAngles(part) {
  const [trained, longest] = [part.trained_length, carries(part)];
  const kind = part.rescaling?.[0];
  if (!trained || part.unsure || part.part !== "text" || near(part) || ["linear", "ntk"].includes(kind)) return null;
  if (["llama3", "longrope"].includes(kind) && !longest) return null; // trained on beyond that, and how far is not told
  const now = speeds(part, longest);
  return plainSpeeds(part).map((theta, i) => Math.max(trained * theta, longest > trained ? longest * now[i] : 0));
}

/** Which pairs meet angles at so many positions that training never showed, as far as the file says. */
export function newAngles(part, wanted) {
  const then = speeds(part, wanted);
  return seenAngles(part)?.map((seen, i) => seen < TURN && wanted * then[i] > seen * (1 + 1e-9)) ?? null;
}

/** How many hands are shown at most. */
export const HANDS = 8;

/** Eight pairs, fast to slow, at the end of a text: { pair, angle, seen, fresh, longer } in radians. */
export function handsAt(part, wanted, longer) {
  const [now, seen, fresh] = [speeds(part, wanted), seenAngles(part), newAngles(part, wanted)];
  const then = longer && speeds(longer, wanted);
  const shown = Math.min(HANDS, now.length);
  return Array.from({ length: shown }, (_, k) => {
    const pair = Math.round((k * (now.length - 1)) / Math.max(shown - 1, 1));
    const turned = then && Math.abs(then[pair] / now[pair] - 1) > 1e-6;
    return {
      pair,
      angle: wanted * now[pair],
      seen: seen && Math.min(seen[pair], TURN),
      fresh: fresh?.[pair] ?? false,
      longer: turned ? wanted * then[pair] : null,
    };
  });
}

/** The mean of the cosine of a pair over the positions between two. */
export function meanCosine(theta, from, to) {
  const half = ((to - from) * theta) / 2;
  return Math.cos(((from + to) * theta) / 2) * (Math.abs(half) < 1e-6 ? 1 : Math.sin(half) / half);
}

export const count = (flags) => flags.filter(Boolean).length;

/** From which position on some pair is off by a tenth of a radian, its inverse frequency kept in 16 bits. */
export function breaksAt(part, dtype) {
  const off = Math.max(...speeds(part).map((theta) => Math.abs(roundTo(theta, dtype) - theta)));
  return off ? Math.ceil(0.1 / off) : Infinity;
}
