// What other runtimes have to be told to rotate as a part does, and what differs there: ropescope.elsewhere.

export const VERDICTS = ["otherwise", "so", "not heard"];
const FAR = 131_071;

/** The rescalings of the record of runtimes that a part needs, by their names there. */
export function rulesOf(part) {
  const [kind, given] = part.rescaling ?? ["proportional", {}];
  if (kind === "proportional") return []; // a matter of channels
  if (kind !== "yarn") return [kind];
  const found = [];
  const own = 0.1 * Math.log(given.factor) + 1;
  const [factor, mscale, over] = ["attention_factor", "mscale", "mscale_all_dim"].map((key) => Number(given[key] ?? 0));
  if (factor && Math.abs(factor - own) > 1e-6) found.push("yarn, attention_factor 1");
  if (mscale && over) found.push(`yarn, mscale 1 over ${mscale === over ? "1" : "0.707"}`);
  else if (mscale && mscale !== 1) found.push("yarn, mscale 0.707"); // alone
  if (given.truncate === false) found.push("yarn, no truncation");
  if (Number(given.beta_fast || 32) !== 32 || Number(given.beta_slow || 1) !== 1) found.push("yarn, beta 16 and 2");
  return found.length ? found : ["yarn"];
}

/** Of each runtime { runtime, verdict, call, words, limits }: those first that were heard to turn otherwise. */
export function elsewhere(part, runtimes) {
  const axes = Array.isArray(part.inv_freq[0]) ? part.inv_freq[0].length : 1;
  if (part.part !== "text" || ![1, 3].includes(axes)) return [];
  const order = axes === 1 ? "" : part.sections.length === 3 ? "blocks" : "by turns";
  const some = ["first", "elsewhere"].includes(part.place) ? part.place : "all";
  const layout = part.layout.replace("read interleaved, written half-split", "interleaved");
  const length = Math.max(part.trained_length ?? 0, part.max_length ?? 0);
  const said = runtimes.map((one) => entry(one, [layout, some, order], part, length));
  return VERDICTS.flatMap((verdict) => said.filter((one) => one.verdict === verdict));
}

function entry(runtime, turn, part, length) {
  const told = rulesOf(part).map((rule) => [rule, runtime.rules?.[rule]]);
  const own = told.map(([, one]) => Array.isArray(one) && one[2]).find(Boolean); // the layout of this rule
  const turns = runtime.turns.map((one) => [own || one[0], ...one.slice(1)]);
  const found = turns.filter((one) => turn.every((value, i) => one[i] === value));
  const near = found.length ? found : turns.filter((one) => one[0] === turn[0]);
  let call = (near.length ? near : turns)[0][3];
  if (turn[2]) {
    // sections as this part has them
    const pairs = [0, 1, 2].map((axis) =>
      part.sections.reduce((sum, [one, count]) => sum + (Number(one) === axis ? Number(count) : 0), 0),
    );
    call = call.replace(/\d+(, | )\d+\1\d+/, (_, comma) => pairs.join(comma));
  }
  if (call.includes("rope_type")) {
    for (const one of told) one[1] = undefined; // which has one value, and that is the layout's
  } else if (told.length && told.every(([, one]) => one !== undefined)) {
    call = `${call.replace(": rope_scaling={}", "")}, with ${part.rescaling[0]}`;
  }
  const words = [];
  let verdict = "so";
  if (!near.length) {
    words.push(`heard to turn ${turns[0][0]} pairs only: move the rows`);
    verdict = "otherwise";
  } else if (!found.length) {
    const what = { first: "a part of a head", elsewhere: "such a part of a head" }[turn[1]];
    words.push(`not asked for ${[what, turn[2] && "axes so"].filter(Boolean).join(" and ")}`);
    verdict = "not heard";
  } else if (found[0][4]) {
    words.push(found[0][4]);
    verdict = "otherwise";
  }
  const trained = Number(part.rescaling?.[1].original_max_position_embeddings);
  for (const [rule, one] of told) {
    const [said, length] = Array.isArray(one) ? one : [one];
    const differs = length && length === trained ? "" : said;
    if (runtime.rules === null) words.push("the caller makes the table, rescaled or not");
    else if (differs === undefined) words.push(`not asked for ${rule}`);
    else if (differs) {
      words.push(`${rule}: ${differs}`);
      verdict = "otherwise";
    }
    if (verdict === "so" && differs !== "") verdict = "not heard";
  }
  const limits = [length > FAR ? runtime.far : "", runtime.ends].filter(Boolean).join("; ");
  return { runtime: runtime.name, verdict, call, words: words.join("; "), limits };
}
