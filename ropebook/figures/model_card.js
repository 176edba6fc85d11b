// A model's rotary embedding from its configuration, and what a longer context asks for.
import { configOf, filesOf, readFiles } from "./checkpoint_file.js";
import { ropeOf } from "./configuration.js";
import { elsewhere, VERDICTS } from "./elsewhere.js";
import { drawDial, drawFullTurn } from "./hands.js";
import { make, setRich } from "./kit/dom.js";
import { axes, disc, level, paintCells, pairAxis, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { decades, num, short, superscript, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { deafWords, recipe } from "./longer_context.js";
import { nearest, parse, Refused, truthy, written } from "./published.js";
import {
  breaksAt,
  carries,
  count,
  first,
  HANDS,
  handsAt,
  meanCosine,
  near,
  newAngles,
  plainSpeeds,
  reachOfYarn,
  seenAngles,
  speeds,
  whole,
  windowOf,
} from "./rotated_part.js";
import { renamed } from "./translation.js";

// ---- in words -----------------------------------------------------------------------------------

const ends = (list) => `${short(Number(list[0]), 3)} to ${short(Number(list.at(-1)), 3)}`;
const runs = (layers) =>
  layers
    .map(([a, b, step]) => {
      if (a === b || b - a === step) return a === b ? `${a}` : step > 1 ? `${a}, ${b}` : `${a} to ${b}`;
      return step > 1 ? `${a} to ${b} in steps of ${step}` : `${a} to ${b}`;
    })
    .join(", ");

/** How many pairs each axis has: of axes that take turns, counted. */
function axesWords(sections) {
  const all = [...new Set(sections.map(([axis]) => axis))].sort();
  if (sections.length === all.length)
    return sections.map(([axis, pairs]) => `${pairs} pairs of axis ${axis}`).join(", ");
  const sums = all.map((one) => sections.reduce((sum, [axis, pairs]) => sum + (axis === one ? pairs : 0), 0));
  return `axes ${all.join(", ")} in turn: ${sums.join(", ")} pairs`;
}

/** How many pairs keep their frequency, and how many are divided by the whole factor. */
function moved(part, factor) {
  const plain = plainSpeeds(part);
  const ratios = speeds(part).map((theta, i) => plain[i] / theta);
  if (factor === 1) return "its factor is 1, and all pairs keep their frequency";
  const keep = count(ratios.map((r) => Math.abs(r - 1) < 1e-6));
  const all = count(ratios.map((r) => Math.abs(r / factor - 1) < 1e-6));
  const between = ratios.length - keep - all;
  const pairs = `${keep} of ${ratios.length} pairs keep their frequency, ${all} are divided by ${short(factor)}`;
  return pairs + (between > 0 ? `, ${between} lie between` : "");
}

/** A rescaling in words. */
export function rescalingWords(part) {
  if (!part.rescaling) return part.unsure ? "none, but for what the warning names" : "none";
  const [kind, given] = part.rescaling;
  const factor = Number(given.factor ?? 1);
  const original = Number(given.original_max_position_embeddings ?? 0);
  const words = {
    linear: () => `position interpolation: every frequency is divided by ${short(factor)}`,
    dynamic: () =>
      `dynamic NTK: beyond ${part.max_length ? `${whole(part.max_length)} tokens` : "its class’s length"} the base grows with the text`,
    ntk: () => "NTK: a larger base",
    yarn: () => `YaRN from ${whole(original)} tokens: ${moved(part, factor)}`,
    llama3: () => `Llama 3's, from ${whole(original)} tokens: ${moved(part, factor)}`,
    longrope: () =>
      `LongRoPE: a divisor for each pair, ${ends(given.short_factor)} up to ${whole(original)} tokens and ` +
      `${ends(given.long_factor)} beyond`,
    proportional: () => "p-RoPE: the slowest pairs of the head do not rotate",
  };
  return words[kind]?.() ?? kind;
}

/** The lines of a card: a name and what is known. */
export function lines(part, rows) {
  const now = speeds(part);
  const turns = now.map((theta) => TURN / theta);
  const { head_dim: head, width, place, trained_length: trained, max_length: longest } = part;
  const which =
    width === head
      ? `all ${head}`
      : `${place === "last" ? "the last " : place === "first" ? "the first " : ""}${width} of ${head}`;
  const reach = reachOfYarn(part);
  const far = [
    longest && longest !== trained && `${whole(longest)} tokens, ${part.taken ?? "as the file says"}`,
    reach && `${whole(reach)} by its YaRN`,
  ].filter(Boolean);
  const found = [
    ["layers", (runs(part.layers) || "not told") + (part.kind ? ` (${part.kind})` : "")],
    part.without.length && ["at rest", `layers ${runs(part.without)} do not rotate`],
    ["layout", otherRows(rows, part) ? `${rows} in this file; ${part.layout} in Hugging Face's` : rows || part.layout],
    ["channels", `${which}, from ${part.width_from}`],
    ["base", `${num(part.base, Number.isInteger(part.base) ? 0 : 3)}, from ${part.base_from}`],
    ["rescaling", rescalingWords(part)],
    Math.abs(part.attention_factor - 1) > 1e-9 && [
      "factor",
      `${num(part.attention_factor, 4)} on rotated queries and keys`,
    ],
    part.sections && ["axes", axesWords(part.sections)],
    [
      "wavelengths",
      `${short(Math.min(...turns))} to ${whole(Math.max(...turns))} ${part.part === "text" ? "tokens" : "positions"}, ${now.length} pairs`,
    ],
    [
      "trained for",
      trained
        ? `${whole(trained)} tokens${part.rescaling?.[1].original_max_position_embeddings ? " before the rescaling" : ""}`
        : part.unseen
          ? "not seen"
          : "not told",
    ],
    part.window && ["window", part.window],
    far.length > 0 && ["may reach", far.join("; ")],
    ["16 bits", sixteen(part)],
  ];
  return found.filter(Boolean);
}

function sixteen(part) {
  const at = (dtype) => {
    const from = breaksAt(part, dtype);
    return `${Number.isFinite(from) ? `from position ${whole(from)}` : "nowhere"} in ${dtype}`;
  };
  return (
    "positions are exact to 256 in bfloat16, to 2,048 in float16; rounded inverse frequencies put a pair off by " +
    `0.1 rad ${at("bfloat16")}, ${at("float16")}; a table of cosines rounded to bfloat16 is off by ${num(2 ** (Math.ceil(Math.log2(part.table_factor)) - 9), 3)} at most`
  );
}

const placeOf = ({ kind }) => (kind === "indexer" ? "its indexer" : `${kind} layers`);

/** What is said of a part: the answer first. */
export function words(part, wanted, name, rows) {
  const fresh = newAngles(part, wanted);
  const which = part.width === part.head_dim ? "all" : `${part.width} of`;
  const where =
    part.part === "text" ? (part.kind ? ` in ${placeOf(part)}` : "") : ` in its part ${part.path || part.part}`;
  const layout = otherRows(rows, part) ? `${rows} (${part.layout} at Hugging Face)` : rows || part.layout;
  const turns = `turns ${which} ${part.head_dim} channels${where}, ${layout}, base ${whole(part.base)}`;
  const start = `**${name || "Your model"}** ${turns}.`;
  if (near(part)) return `${start} They see a window: a longer text brings them **no new distance**.`;
  if (part.part !== "text") {
    const axes = Array.isArray(part.inv_freq[0]) ? part.inv_freq[0].length : 1;
    return `${start} A position there is **${axes === 1 ? "one number" : `${axes} numbers`}**.`;
  }
  if (!fresh) {
    if (part.unsure)
      return `${start} **Not all is known** of how it turns: the card is without what the warning names.`;
    if (part.unseen) {
      const far = part.trained_length ? `How far beyond ${whole(part.trained_length)} tokens` : "For what length";
      return `${start} ${far} it was trained was not seen.`;
    }
    const of = !part.trained_length
      ? "For what length it was trained"
      : ["llama3", "longrope"].includes(part.rescaling[0])
        ? `How far beyond ${whole(part.trained_length)} tokens it was trained`
        : `Whether ${whole(part.trained_length)} tokens are before or after the rescaling`;
    return `${start} ${of}, the file does not say.`;
  }
  const some = count(fresh);
  const pairs = fresh.length;
  const beyond = Math.max(carries(part) ?? 0, part.trained_length);
  const end = some
    ? `**${some} of ${pairs}** pairs meet angles that training to ${whole(beyond)} never showed${part.window ? ", where a layer looks so far back" : ""}.`
    : "**no pair** meets a new angle.";
  return `${start} At ${whole(wanted)} tokens ${end}`;
}

/** What is said where there is no part that rotates. */
export function wordsWithout({ family, known, warnings = [] }) {
  if (known && !warnings.some(({ code }) => code === "no-rule"))
    return warnings.some(({ code }) => code === "none-rotates")
      ? `As this file has it, nothing in **${family}** rotates.`
      : `**${family}** has no rotary embedding: nothing in it rotates.`;
  return `Of **${family ?? "this configuration"}** it is not known how it rotates: the sentence below says why.`;
}

// ---- names --------------------------------------------------------------------------------------

const bare = (name) => name.toLowerCase().replace(/[-_.\s]/g, "");

/** The best matches of a name: [title, config text, what was not seen], public checkpoints before families. */
export function search(models, wanted, most = 8) {
  const word = bare(wanted);
  const rank = ({ keys }) => {
    if (keys.includes(word)) return 0;
    if (keys.some((key) => key.startsWith(word))) return 1;
    return keys.some((key) => key.includes(word)) ? 2 : 9;
  };
  const found = models.map((one) => [rank(one), one]).filter(([at]) => at < 9);
  if (!found.length && wanted.includes("/")) {
    const end = wanted.split("/").at(-1); // with an owner, it is no family
    return search(models, end, models.length)
      .filter(({ name }) => name.includes("/"))
      .slice(0, most);
  }
  return found
    .sort((a, b) => a[0] - b[0])
    .slice(0, most)
    .map(([, one]) => one);
}

/** Ends of names that say how a model was trained further. */
const TUNED = /(instruct|chat|base|it)$/;

/** Up to three public checkpoints whose names are like one that none has. */
export function alike(models, wanted) {
  const plain = TUNED.test(bare(wanted)) ? search(models, bare(wanted).replace(TUNED, "")) : [];
  const some = plain.filter(({ name }) => name.includes("/")).slice(0, 3);
  if (some.length) return some;
  const left = new Map(models.filter(({ name }) => name.includes("/")).map((one) => [one.keys[0], one]));
  const found = [];
  while (found.length < 3) {
    const key = nearest(bare(wanted), [...left.keys()]);
    if (key === null) break;
    found.push(left.get(key));
    left.delete(key);
  }
  return found;
}

/** What is said of what public sources do not show of a checkpoint. */
function notShown(unseen) {
  const names = unseen.join(" or ").replace("config.json", "the whole config.json");
  return (
    `Public sources quote this checkpoint and do not show ${names}. What is missing is left out or taken from its ` +
    "class; to be sure, give its own config.json in place of its name."
  );
}

/** All that can be chosen: public checkpoints, then families as their classes are by default. */
export function choices(rows, rules) {
  const checkpoints = rows.map(([name, aliases, config, unseen]) => {
    const [, end] = name.split("/");
    return {
      name,
      text: written(config),
      unseen: unseen ?? [],
      notes: unseen?.length ? [notShown(unseen)] : [],
      keys: [end, name, ...aliases].map(bare),
    };
  });
  const families = Object.entries(rules.types).filter(([, rule]) => !rule.null && (rule.rotations || rule.parts));
  return [
    ...checkpoints,
    ...families.map(([type]) => ({
      name: `${type}, as its class is by default`,
      text: written({ model_type: type }),
      notes: [],
      keys: [bare(type)],
    })),
  ];
}

// ---- the figure ---------------------------------------------------------------------------------

const POPULAR = [
  "Qwen/Qwen2.5-7B-Instruct",
  "meta-llama/Meta-Llama-3.1-8B",
  "zai-org/GLM-4.5",
  "google/gemma-3-27b-it",
];
const NOTICE =
  "Nothing that you bring leaves this page; of weights the headers alone are read. Pairs go from rose (fast) to " +
  "violet (slow), and red are new angles; rings and dashed hands are what the lines below would make of them. In " +
  "the map, a column is the mean over its positions, so that fast pairs are grey there; the dashed line is each " +
  "pair’s first full turn.";
const SEVERITY = ["Note", "Warning", "Wrong"];
const KEPT = ["wanted", "part", "text", "name", "rows", "weights", "notes"];

export default figure((fig) => {
  const { rules: rulesText, rows, engines } = fig.model.get("data");
  const rules = parse(rulesText);
  const runtimes = JSON.parse(engines);
  const models = choices(parse(rows), rules);
  const bring = makeBring(fig, models);
  const problem = fig.element("p", { className: "rope-problem", role: "alert" });
  const warnings = fig.element("ul", { className: "rope-warnings" });
  const unused = makeUnused(fig);
  const parts = makeParts(fig);
  const down = fig.element("button", { type: "button", className: "rope-button rope-down" }, "For a longer text ↓");
  down.addEventListener("click", () => blocks.scrollIntoView({ behavior: fig.reducedMotion ? "auto" : "smooth" }));
  const plot = fig.canvas({
    label: "Wavelength of each pair beside the trained length and the one that is wanted",
    height: (width) => (width > 560 ? 270 : 230),
  });
  fig.element("div", { className: "rope-controls" }, fig.controls.wanted);
  const turning = fig.canvas({
    label: "Cosine of each pair over the positions up to the length that is wanted, and eight hands there",
    height: (width) => (wide(width) ? 214 : 304),
  });
  const table = fig.element("table", { className: "rope-card" });
  const others = makeElsewhere(fig, runtimes);
  const blocks = fig.element("div", { className: "rope-blocks" });
  const link = makeLink(fig, models);

  let known = null; // of the text that was evaluated last
  const evaluate = (content) => {
    if (known?.content === content) return known;
    let told = { said: {} };
    try {
      told = configOf(content, rules.types);
      const heard = ropeOf(told.config, rules);
      for (const part of heard.parts) part.window = windowOf(part, told.config, rules);
      const spec = renamed(heard, told.said);
      const row = models.find(({ text: own }) => own === content);
      const unseen = row?.unseen?.includes("max_position_embeddings");
      const taken = told.said.max_position_embeddings === "use_scaled_rope" && "as assumed of Llama 3.1";
      const unsure = spec.warnings.some(({ code }) => code === "not-known");
      const more = { ...(unseen && { unseen }), ...(taken && { taken }), ...(unsure && { unsure }) };
      spec.parts = spec.parts.map((part) => ({ ...part, ...more }));
      known = { content, ...told, spec, wrong: "" };
    } catch (wrong) {
      if (!(wrong instanceof Refused)) throw wrong;
      const type = models.find(({ name, text: own }) => own === content && !name.includes("/"));
      const start = type ? `${type.name}, has no card: ` : "";
      known = { content, wrong: start + renamed(wrong.message, told.said) };
    }
    return known;
  };

  fig.draw(() => {
    const { traits } = fig;
    const found = evaluate(traits.text);
    const refused = bring.refused();
    const spec = refused ? null : found.spec; // the card of what stands in the field is not that file's
    const rows = traits.rows || found.rows;
    const shown = spec && (traits.part < 0 ? first(spec.parts) : Math.min(traits.part, spec.parts.length - 1));
    const part = spec?.parts[shown];
    bring.show(traits);
    const wrong = refused || found.wrong;
    problem.textContent = wrong;
    problem.hidden = !wrong;
    warnings.hidden = !spec;
    unused.show(spec?.others ?? [], spec?.warnings ?? []);
    plot.canvas.hidden = table.hidden = blocks.hidden = !part;
    others.show(part, rows);
    turning.canvas.hidden = part?.part !== "text";
    down.hidden = true;
    link.show(traits);
    if (!spec) {
      parts.show([], 0);
      const kept = refused ? " What stands in the field is kept, and its card comes back when you type there." : "";
      fig.say(`No card yet: **paste** a config.json, **drop** a file, or **choose** a model.${kept}`);
      fig.root.dataset.values = JSON.stringify({ wrong });
      return;
    }
    const command = otherRows(rows, part) ? convertLine(found) : "";
    const row = models.find(({ name, text: own }) => name === traits.name && own === traits.text);
    const seen =
      row && (row.unseen?.length || !row.name.includes("/")) // nobody here can see more
        ? spec.warnings.map((one) => (one.code.endsWith("-guessed") ? { ...one, severity: 0 } : one))
        : spec.warnings;
    const notes = [...traits.notes, ...found.notes];
    const cautions = [...seen, ...assumed(notes, row ? 0 : 1, rows, part, command)];
    showWarnings(warnings, cautions);
    parts.show(spec.parts, shown);
    if (!part) {
      fig.say(wordsWithout(spec));
      fig.root.dataset.values = JSON.stringify({ wrong, warnings: cautions.map((one) => one.code), known: spec.known });
      return;
    }
    const typed = found.architecture ? `${found.architecture}.context_length` : "max_position_embeddings";
    const model = command ? "NEW_FOLDER" : traits.name;
    const write = recipe(spec, part, found.config, traits.wanted, model, rules, truthy(found.said) ? typed : undefined);
    const { longer } = write;
    plot.fit();
    drawWaves(plot, part, traits.wanted, longer);
    if (!turning.canvas.hidden) drawTurning(turning, part, traits.wanted, longer);
    const idle = spec.without_effect;
    const rest = [
      ["weights", traits.weights],
      ["no effect", idle.join(", ")],
    ];
    showLines(table, [...lines(part, rows), ...rest.filter(([, what]) => what)]);
    const what = found.architecture ? "the header" : "the file";
    const meant = [[`${what} in the words of a config.json`, written(found.config)]].filter(() => truthy(found.said));
    if (command)
      meant.push([`first the rows of the weights, in a terminal${found.architecture ? "" : PARTS}`, command]);
    const all = [...meant, ...(write.blocks ?? [])];
    showBlocks(blocks, { ...write, blocks: all }, part, traits, longer);
    down.hidden = !all.length;
    fig.say(words(part, traits.wanted, traits.name, rows));
    const fresh = newAngles(part, traits.wanted);
    fig.root.dataset.values = JSON.stringify({
      name: traits.name,
      wanted: traits.wanted,
      fresh: fresh && count(fresh),
      layout: part.layout,
      rows,
      width: part.width,
      head: part.head_dim,
      base: part.base,
      factor: write.factor ?? null,
      warnings: cautions.map((one) => one.code),
      wrong,
    });
  });

  fig.showMe(async () => {
    fig.set({ wanted: 32768 });
    await fig.pause(1200);
    await fig.glide({ wanted: 131072 }, 2500);
    await fig.pause(800);
  });
  fig.notice(NOTICE);
});

/** Architectures with other rows than at Hugging Face that `ropescope convert` leads back from a GGUF. */
export const BACK = ["llama", "smollm3"];

/** What that command does not do for a folder of Meta's. */
const PARTS = "; parallel parts (consolidated.00.pth, consolidated.01.pth ...) are joined before";

/** The command that permutes the rows; of most GGUFs llama.cpp's converter has changed more than these. */
function convertLine({ architecture }) {
  if (architecture && !BACK.includes(architecture)) return "";
  const source = architecture ? "FILE.gguf" : "FOLDER";
  return `python -m ropescope convert ${source} --to hf -o NEW_FOLDER`;
}

/** Whether the rows of a file stand in another layout than those of its family at Hugging Face. */
const otherRows = (rows, part) => rows && part && rows !== rowsOf(part.layout);

/** How rows of weights stand in a layout, whatever order the code writes channels in. */
const rowsOf = (layout) => layout.replace("read interleaved, written half-split", "interleaved");

function assumed(notes, severity, rows, part, command) {
  const found = notes.map((message) => ({ code: "assumed", severity, message }));
  if (otherRows(rows, part)) {
    const message =
      `The query and key rows of this file are ${rows}; those of a Hugging Face checkpoint of this family are ` +
      `${part.layout}. ` +
      (command
        ? "To convert, permute the rows of each head: the command below does."
        : "No command here converts it: llama.cpp's converter changes more than rows.");
    found.push({ code: "other-rows", severity: 0, message });
  }
  return found;
}

/** The search, the file and the text: { show(traits), refused() }. */
function makeBring(fig, models) {
  let wrong = "";
  const refuse = (message) => {
    wrong = message;
    fig.redraw();
  };
  const take = (given) => {
    refuse("");
    fig.set({ part: -1, rows: "", weights: "", notes: [], ...given });
  };
  const seek = make("input", { type: "search", placeholder: "a model or a family", "aria-label": "Choose a model" });
  const chips = make("div", { className: "rope-chips", role: "group", "aria-label": "Models found" });
  const choose = ({ name, text: content, notes }) => take({ name, text: content, notes });
  let hits = [];
  const list = () => {
    const popular = POPULAR.map((name) => models.find((one) => one.name === name)).filter(Boolean);
    hits = seek.value.trim() ? search(models, seek.value) : popular;
    const other = seek.value.includes("/") && !hits.some(({ keys }) => keys.includes(bare(seek.value)));
    const near = other && hits.length ? hits : hits.length ? [] : alike(models, seek.value);
    if (other) hits = []; // with an owner, a name is that of one checkpoint alone
    const buttons = [...hits, ...near].map((one) => {
      const button = make("button", { type: "button", className: "rope-button" }, one.name);
      button.addEventListener("click", () => choose(one));
      return button;
    });
    const none = `No checkpoint here has exactly this name. Paste its config.json below${near.length ? "; or did you mean" : "."}`;
    chips.replaceChildren(...(hits.length ? [] : [make("span", {}, none)]), ...buttons);
  };
  seek.addEventListener("input", list);
  seek.addEventListener("keydown", (event) => {
    event.stopPropagation(); // no command to the notebook
    if (event.key === "Enter" && hits.length) choose(hits[0]);
  });
  list();

  const read = async (files) => {
    try {
      take(await readFiles(await files));
    } catch (problem) {
      if (!(problem instanceof Refused)) throw problem;
      refuse(problem.message);
    }
  };
  const chooser = (label, kind) => {
    const input = make("input", { type: "file", hidden: true, [kind]: true });
    const button = make("button", { type: "button", className: "rope-button" }, label);
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", async () => {
      await read([...input.files]);
      input.value = "";
    });
    return kind in input ? [button, input] : [];
  };
  const area = make("textarea", {
    className: "rope-paste",
    rows: 5,
    spellcheck: false,
    "aria-label": "config.json",
    placeholder: "Paste a config.json, or drop a file or a folder here",
  });
  area.addEventListener("input", () => take({ text: area.value, name: "" }));
  area.addEventListener("keydown", (event) => event.stopPropagation());
  const { root } = fig;
  root.addEventListener("dragover", (event) => {
    event.preventDefault();
    root.classList.add("rope-drop");
  });
  root.addEventListener("dragleave", () => root.classList.remove("rope-drop"));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("rope-drop");
    read(filesOf(event.dataTransfer));
  });
  const node = make(
    "div",
    { className: "rope-bring" },
    make(
      "div",
      { className: "rope-seek" },
      seek,
      ...chooser("Choose a file", "multiple"),
      ...chooser("a folder", "webkitdirectory"),
    ),
    chips,
    area,
  );
  root.querySelector(".rope-body").prepend(node);
  return {
    refused: () => wrong,
    show({ text: content }) {
      if (area.value !== content) area.value = content;
    },
  };
}

/** Which of several rotations is shown: { show(parts, number) }. */
function makeParts(fig) {
  const select = make("select", { "aria-label": "Part of the model" });
  select.addEventListener("change", () => fig.set({ part: select.selectedIndex }));
  select.addEventListener("keydown", (event) => event.stopPropagation());
  const node = fig.element("div", { className: "rope-parts" }, select);
  return {
    show(parts, number) {
      node.hidden = parts.length < 2;
      const names = parts.map(({ part, path, kind, layers }) =>
        [path || part, kind, layers.length ? `layers ${runs(layers)}` : ""].filter(Boolean).join(", "),
      );
      if (select.dataset.names !== names.join(";")) {
        select.dataset.names = names.join(";");
        select.replaceChildren(...names.map((name) => make("option", {}, name)));
      }
      select.selectedIndex = number;
    },
  };
}

function showWarnings(list, cautions) {
  list.hidden = !cautions.length;
  const items = cautions.map(({ severity, message }) => {
    const item = make("li", { className: severity === 2 ? "rope-wrong" : "" });
    item.append(make("b", {}, SEVERITY[severity]), ` ${message}`);
    return item;
  });
  list.replaceChildren(...items);
}

/** Fields that the card did not use, folded: { show(names) }. */
function makeUnused(fig) {
  const [summary, names] = [make("summary"), make("p")];
  const node = fig.element("details", { className: "rope-others" }, summary, names);
  return {
    show(others, warnings) {
      const count = others.length;
      node.hidden = !count;
      const words = count > 1 ? "other fields are taken" : "other field is taken";
      const ruled = !warnings.some(({ code }) => code === "no-rule");
      summary.textContent = `${count} ${words} to be about something else${ruled ? "" : ", or of a part without a rule"}`;
      names.textContent = others.join(", ");
    },
  };
}

function showLines(table, found) {
  const rows = found.map(([name, what]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, what)));
  table.replaceChildren(make("tbody", {}, ...rows));
}

const HEADS = { otherwise: "differs in", so: "turned so by", "not heard": "not all was asked of" };

/** What other runtimes were told when they turned so, folded: { show(part, rows) }. */
function makeElsewhere(fig, runtimes) {
  const summary = make("summary");
  const table = make("table", { className: "rope-card" });
  const node = fig.element("details", { className: "rope-elsewhere" }, summary, table);
  return {
    show(part, rows) {
      const found = part ? elsewhere({ ...part, layout: rows || part.layout }, runtimes) : [];
      node.hidden = !found.length;
      const counts = VERDICTS.map((verdict) => found.filter((one) => one.verdict === verdict).length);
      const said = VERDICTS.map((verdict, i) => counts[i] && `${HEADS[verdict]} ${counts[i]}`).filter(Boolean);
      summary.textContent = `In ${found.length} other runtimes: ${said.join(", ")}`;
      const bodies = VERDICTS.filter((_, i) => counts[i]).map((verdict) => {
        const some = found.filter((one) => one.verdict === verdict);
        const head = make("tr", {}, make("th", { scope: "rowgroup", colSpan: 2 }, HEADS[verdict]));
        return make("tbody", {}, head, ...some.map(runtimeRow));
      });
      table.replaceChildren(...bodies);
    },
  };
}

function runtimeRow({ runtime, call, words: said, limits }) {
  const what = make(
    "td",
    {},
    make("code", {}, call),
    [said, limits]
      .filter(Boolean)
      .map((one) => `. ${one[0].toUpperCase()}${one.slice(1)}`)
      .join(""),
  );
  return make("tr", {}, make("th", { scope: "row" }, runtime), what);
}

function showBlocks(node, { why, blocks = [], factor, trained, left, rest = [], deaf }, part, { wanted }, longer) {
  const lead = make("p");
  if (why !== undefined) setRich(lead, why);
  else {
    const before = count(newAngles(part, wanted));
    const after = longer ? count(newAngles({ ...longer, max_length: null, trained_length: trained }, wanted)) : null;
    const far = part.window ? " where a layer looks so far back" : "";
    const even = after ? `, and ${after} meet new angles even then` : "";
    const lost = left === undefined ? "" : ` The file’s attention_factor ${Number(left)} is left out.`;
    const those = rest.length
      ? ` They are for ${part.path || "the model itself"}; ${rest.map((path) => path || "the model itself").join(" and ")} may need lines too: choose it above.`
      : "";
    setRich(
      lead,
      `For **${whole(wanted)}** tokens, **YaRN by ${factor}** from ${whole(trained)}: ${before} pairs need it${far}${even}.${lost}${deafWords(deaf)}${those}`,
    );
  }
  const made = blocks.flatMap(([title, code]) => [
    make("div", { className: "rope-over" }, make("b", {}, title), ...copies(code)),
    make("pre", { className: "rope-code" }, code),
  ]);
  node.replaceChildren(...(lead.textContent ? [lead] : []), ...made);
}

/** A button that copies a text, where the browser lets a page do so. */
function copies(code) {
  if (!navigator.clipboard?.writeText) return [];
  const button = make("button", { type: "button", className: "rope-button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code);
    button.textContent = "Copied";
  });
  return [button];
}

function drawWaves(plot, part, wanted, longer) {
  const { colors } = plot.clear();
  const now = speeds(part, wanted).map((theta) => TURN / theta);
  const then = longer ? speeds(longer).map((theta) => TURN / theta) : [];
  const { trained_length: trained } = part;
  const all = [...now, ...then, wanted, trained ?? wanted];
  const range = [Math.min(...all) / 1.6, Math.max(...all) * 2.2];
  const at = axes(plot, {
    x: [-0.5, Math.max(now.length - 0.5, 1)],
    y: range,
    yLog: true,
    yTicks: decades(...range),
    yFormat: (v) => (v < 1e4 ? whole(v) : `10${superscript(Math.round(Math.log10(v)))}`),
    xLabel: "pair, fast to slow",
    yLabel: "wavelength (tokens)",
    box: { left: 52 },
  });
  const lineAt = (length, words, color, options) => {
    const y = at.y(length);
    level(plot, y, at.box, color, options);
    text(plot, `${words} ${whole(length)}`, at.box.x0 + 6, y - 8, { color, size: 12, halo: true });
  };
  if (trained) lineAt(trained, "trained for", colors.ink, {});
  if (wanted !== trained) lineAt(wanted, "wanted", colors.accent, { dash: [5, 4] });
  const fresh = newAngles(part, wanted) ?? [];
  then.forEach((turn, i) => {
    if (Math.abs(turn / now[i] - 1) > 1e-6) {
      disc(plot, at.x(i), at.y(turn), 3.5, colors.paper, { ring: colors.accent });
    }
  });
  now.forEach((turn, i) => {
    disc(plot, at.x(i), at.y(turn), 3.5, fresh[i] ? colors.warm : pairColor(i, now.length));
  });
}

/** The cosine of each pair over the positions, on a logarithmic axis, and eight hands at the last of them. */
function drawTurning(plot, part, wanted, longer) {
  plot.fit();
  const { ctx, width, colors } = plot.clear();
  const theta = speeds(part, wanted);
  const pairs = theta.length;
  const broad = wide(width);
  const [left, right] = [50, broad ? Math.round(0.56 * width) : width - 10];
  const at = axes(plot, {
    x: [1, wanted],
    y: [0, 1],
    xLog: true,
    xTicks: decades(1, wanted),
    xFormat: (v) => (v < 1e4 ? whole(v) : `10${superscript(Math.round(Math.log10(v)))}`),
    yTicks: [],
    xLabel: "position",
    box: { left, top: 26, right: width - right, bottom: plot.height - 176 },
  });
  const map = { ...at.box };
  const columns = map.x1 - map.x0;
  const row = (i) => map.y0 + ((i + 0.5) * (map.y1 - map.y0)) / pairs;
  text(plot, "cosine of each pair’s angle", map.x0, 10, { color: colors.ink, bold: true });
  ctx.globalAlpha = colors.dark ? 0.8 : 1; // a white map glares on a dark page
  paintCells(plot, map, columns, pairs, "cosine", (column, i) => {
    const [from, to] = [at.invX(map.x0 + column), at.invX(map.x0 + column + 1)];
    return Math.round((meanCosine(theta[i], from, to) + 1) * 127.5);
  });
  const seen = seenAngles(part);
  ctx.beginPath();
  (newAngles(part, wanted) ?? []).forEach((fresh, i) => {
    const [x, y] = [Math.max(at.x(seen[i] / theta[i]), map.x0), row(i - 0.5)];
    if (fresh) ctx.rect(x, y, map.x1 - x, Math.min(row(i + 0.5) + 0.5, map.y1) - y);
  });
  ctx.fillStyle = colors.warm;
  ctx.globalAlpha = 0.45;
  ctx.fill();
  ctx.globalAlpha = 1;
  pairAxis(plot, map, pairs, pairs > 1 ? [0, Math.round((pairs - 1) / 2), pairs - 1] : [0]);
  const positions = Array.from({ length: 200 }, (_, k) => wanted ** ((k + 1) / 200));
  drawFullTurn(plot, theta, positions, row, at.x);
  if (part.trained_length && part.trained_length < wanted) {
    upright(plot, at.x(part.trained_length), map, colors.paper, { width: 4 });
    upright(plot, at.x(part.trained_length), map, colors.ink, { width: 2 });
  }

  const [x0, y0] = broad ? [right + 16, 26] : [6, 238];
  const columnsOfDials = broad ? HANDS / 2 : HANDS;
  const cell = (width - 4 - x0) / columnsOfDials;
  const radius = Math.min(cell * 0.42, 29);
  text(plot, `hands at ${whole(wanted)}`, x0, broad ? 10 : y0 - 14, { color: colors.ink, bold: true });
  handsAt(part, wanted, longer).forEach(({ pair, angle, seen: known, fresh, longer: then }, k) => {
    const cx = x0 + ((k % columnsOfDials) + 0.5) * cell;
    const cy = y0 + radius + 4 + Math.floor(k / columnsOfDials) * 88;
    const color = pairColor(pair, pairs);
    const sectors = known === null ? [] : [[0, known, color, 0.22]];
    if (fresh) sectors.push([known, Math.min(angle, TURN), colors.warm, 0.5]);
    drawDial(plot, [cx, cy], radius, angle, color, sectors, then === null ? [] : [[then, colors.accent]]);
    text(plot, broad ? `pair ${pair}` : String(pair), cx, cy + radius + 12, { align: "center", color: colors.ink });
  });
}

/** The address keeps what is shown, on a page without a kernel: { show(traits) }. */
function makeLink(fig, models) {
  if (!window.ropeHost || !window.history?.replaceState) return { show: () => {} };
  const first = JSON.stringify(KEPT.map((name) => fig.traits[name]));
  const come = () => {
    const query = new URLSearchParams(window.location.hash.slice(1));
    if (!query.has("model")) return;
    try {
      const given = JSON.parse(query.get("model"));
      const known = models.find(({ name }) => name === given.name);
      fig.set(checked(given.text === undefined && known ? { ...given, text: known.text, notes: known.notes } : given));
    } catch (problem) {
      console.warn(`the address was not followed: ${problem.message}`);
    }
  };
  come();
  window.addEventListener("hashchange", come);
  return {
    show(traits) {
      const now = Object.fromEntries(KEPT.map((name) => [name, traits[name]]));
      const known = models.find(({ name, text: content }) => name === now.name && content === now.text);
      const brief = known ? { name: now.name, wanted: now.wanted, part: now.part } : now;
      const changed = JSON.stringify(Object.values(now)) !== first;
      const { pathname, search: asked, hash } = window.location;
      const ours = hash.startsWith("#model=");
      if (!changed && !ours) return;
      const state = changed ? `#${new URLSearchParams({ model: JSON.stringify(brief) })}` : "";
      if (state !== hash) window.history.replaceState(null, "", pathname + asked + state);
    },
  };
}

/** What an address may set, each of its own kind. */
function checked({ wanted, part, name, rows, weights, notes, text: content }) {
  const found = {};
  if (Number.isInteger(wanted) && wanted >= 1024 && wanted <= 2 ** 24) found.wanted = wanted;
  if (Number.isInteger(part) && part >= -1 && part < 100) found.part = part;
  if (typeof name === "string") found.name = name;
  if (typeof weights === "string") found.weights = weights;
  if (typeof content === "string") found.text = content;
  if (["", "interleaved", "half-split"].includes(rows)) found.rows = rows;
  if (Array.isArray(notes) && notes.every((note) => typeof note === "string")) found.notes = notes;
  return found;
}
