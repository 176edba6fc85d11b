// The twin of ropescope.rope_of, many configurations at a time: JSON texts, as json.dumps writes them.
import { ropeOf } from "../../ropebook/figures/configuration.js";
import { parse } from "../../ropebook/figures/published.js";

const known = new Map();

/** Of each configuration { made }, or { refused } with what is wrong. */
export function ropeOfAll(texts, rules) {
  if (!known.has(rules)) known.set(rules, parse(rules));
  return texts.map((text) => {
    try {
      return { made: ropeOf(parse(text), known.get(rules)) };
    } catch (problem) {
      if (problem.constructor.name !== "Refused") throw problem;
      return { refused: problem.message };
    }
  });
}
