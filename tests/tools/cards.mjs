// What the page says of configurations at a length: the cards of all their parts, and what to write.
import { configOf } from "../../ropebook/figures/checkpoint_file.js";
import { ropeOf } from "../../ropebook/figures/configuration.js";
import { elsewhere } from "../../ropebook/figures/elsewhere.js";
import { recipe } from "../../ropebook/figures/longer_context.js";
import { choices, lines, search, words } from "../../ropebook/figures/model_card.js";
import { parse } from "../../ropebook/figures/published.js";

/**
 * Of each JSON text a list: { said, written, path, kind, wanted, blocks, longer, deaf }, written the parameters to
 * be set or null, longer the part with them, blocks [title, code], deaf the servers that turn it without a rescaling.
 */
export function cards(texts, rules, times) {
  const known = parse(rules);
  return texts.map((text) => {
    const { config, rows } = configOf(text);
    const spec = ropeOf(config, known);
    return spec.parts.map((part) => {
      const wanted = times * (Math.max(part.trained_length, part.max_length) || 4096);
      const write = recipe(spec, part, config, wanted, "owner/model", known);
      const said = [words(part, wanted, "A", rows), write.why ?? "", ...lines(part, rows).flat()];
      const code = (write.blocks ?? []).map(([title, block]) => `${title}\n${block}`);
      const { parameters: written = null, longer = null, blocks = [], deaf = [] } = write;
      const { path, kind } = part;
      return { said: [...said, ...code].join("\n"), written, path, kind, wanted, blocks, longer, deaf };
    });
  });
}

/** All that can be chosen on the page. */
export const chosen = (rows, rules) => choices(parse(rows), parse(rules));

/** Names of the public checkpoints that the page finds by each name, the best first. */
export function searched(names, rows, rules) {
  const models = choices(parse(rows), parse(rules));
  const publicly = new Set(parse(rows).map(([name]) => name));
  return names.map((name) =>
    search(models, name, models.length)
      .map((one) => one.name)
      .filter((one) => publicly.has(one)),
  );
}

/** What the page says of other runtimes, of each part of each configuration. */
export function others(texts, rules, engines) {
  const [known, runtimes] = [parse(rules), JSON.parse(engines)];
  return texts.map((text) => ropeOf(configOf(text).config, known).parts.map((part) => elsewhere(part, runtimes)));
}
