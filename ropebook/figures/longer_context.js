// longer_context.js: what to write, for four programs, so that a model takes longer texts.
import { rescaledFrequencies } from "./aliasing.js";
import { ANY, ropeOf } from "./configuration.js";
import { compact, isDict, isReal, Real, Refused, truthy, written } from "./published.js";
import { fieldsOf, namesIn, near, newAngles, reachOfYarn, whole } from "./rotated_part.js";

/** The number that a length is multiplied by, in two digits after the point, never too small. */
const stretch = (wanted, trained) => Math.ceil((wanted / trained) * 100 - 1e-9) / 100;

/** Parameters of any type of rescaling, and what else is told in other words. */
const RESCALES = new Set([...ANY, "rope_type", "type", "rope_theta"]);

/** What the file has in its parameters of the rotation besides base and rescaling. */
function present(part, config) {
  const own = fieldsOf(part, config);
  const dicts = [own.rope_parameters, own.rope_scaling].filter(isDict);
  const entries = dicts.flatMap((all) => Object.entries(isDict(all[part.kind]) ? all[part.kind] : all));
  const kept = Object.fromEntries(entries.filter(([name, value]) => !RESCALES.has(name) && !isDict(value)));
  const partial = own.partial_rotary_factor ?? own.rotary_pct;
  if (partial !== undefined) kept.partial_rotary_factor ??= partial;
  if (/ x |rotary/.test(part.width_from)) kept.partial_rotary_factor ??= new Real(part.width / part.head_dim);
  return kept;
}

/**
 * What to write so that a model takes longer texts: { why } where nothing is to be written, or
 * { factor, trained, parameters, longer, blocks }, the part as it is then, and blocks [title, code]. typed is what
 * a length that is missing is called in a file with other words than a config.json.
 */
export function recipe(spec, part, config, wanted, name, rules, typed) {
  if (part.part !== "text" || near(part)) return { why: "" };
  if (part.unsure) return { why: "Because not all is known of how it turns, there is no line for a longer context." };
  if (spec.warnings.some(({ severity }) => severity === 2)) {
    return { why: "First mend what is marked **Wrong** above: lines for a longer context come then." };
  }
  if (!part.trained_length) return withoutLength(spec, part, config, wanted, name, rules, typed);
  const asked = ask(spec, part, config, wanted, name, rules);
  const [kind] = part.rescaling ?? [];
  if (!part.max_length && ["llama3", "longrope"].includes(kind)) return withoutReach(part, wanted, typed);
  if (wanted <= asked.reach) return within(asked);
  if (kind === "proportional") {
    return newAngles(part, wanted).some(Boolean)
      ? { why: "It turns by p-RoPE, and no line for a longer context is known here." }
      : asItIs(asked, "its slowest pairs rest, and no pair meets a new angle.");
  }
  if (kind && kind !== "yarn") {
    return {
      why: `It is rescaled already (${kind}): YaRN on top of that would be a rescaling of a rescaling, and no line here leads further.`,
    };
  }
  if (newAngles(part, wanted)?.some(Boolean) === false) return asItIs(asked, "no pair meets a new angle.");
  const why = obstacle(asked);
  return why ? { why } : byYarn(asked);
}

/** What is asked, with what all answers need. */
function ask(spec, part, config, wanted, name, rules) {
  const { trained_length: trained, max_length: longest } = part;
  const [kind, scaling] = part.rescaling ?? [];
  const rule = rules.types[part.model_type];
  const kinds = spec.parts.filter((one) => one.part === "text" && one.path === part.path && one.kind !== null);
  const nested = kinds.length > 1 || (part.kind !== null && Boolean(rule.rope.nested));
  return {
    ...{ spec, part, config, wanted, rules, rule, nested },
    model: /^([\w.-]+\/[\w.-]+|NEW_FOLDER)$/.test(name ?? "") ? name : "MODEL",
    own: fieldsOf(part, config),
    given: { ...present(part, config), ...scaling },
    among: (own) => (nested ? { ...unchanged(kinds, part, config), [part.kind]: own } : own),
    reach: Math.max(trained, kind === "yarn" ? trained * Number(scaling.factor ?? 1) : (longest ?? 0)),
    deaf: kind ? deafTo(spec, part, config) : [],
  };
}

/** Where the trained length is not told: what brings the lines, if anything does. */
function withoutLength(spec, part, config, wanted, name, rules, typed) {
  const missing = part.unseen ? "Its trained length was not seen" : "The trained length is not in the file";
  const lines = [2, 4].map((over) => {
    const known = { max_position_embeddings: Math.floor(wanted / over) };
    const told = changed(config, namesIn(part.path), (own) => ({ ...own, ...known }));
    const then = evaluated(told, rules);
    const same = then?.parts[spec.parts.indexOf(part)];
    return same?.trained_length ? recipe(then, same, told, wanted, name, rules).blocks?.length : 0;
  });
  return { why: `${missing}: ${typeIt(part, typed)}${lines.every(Boolean) ? ", to see the lines" : ""}.` };
}

/** What to do where a length is missing. */
function typeIt(part, typed) {
  const field = typed ?? `max_position_embeddings${part.path && ` in ${part.path}`}`;
  return `${part.unseen ? "paste its config.json, or " : ""}type it as ${field}`;
}

/** Where it is told for what length it was trained before its rescaling, and not how far it reaches since. */
function withoutReach(part, wanted, typed) {
  const trained = whole(part.trained_length);
  if (wanted <= part.trained_length) {
    return { why: `Nothing is to be written: ${whole(wanted)} tokens are within the ${trained} before its rescaling.` };
  }
  const missing = part.unseen ? " was not seen" : ", the file does not say";
  return { why: `How far beyond ${trained} tokens it reaches${missing}: ${typeIt(part, typed)}.` };
}

/** Lines for the length alone, where the rotation stays. */
function asItIs(asked, why) {
  const { part, given, among, deaf } = asked;
  const [kind] = part.rescaling ?? [];
  const pinned = kind && kind !== "proportional"; // to the length that it was trained for
  const same = pinned && { ...given, rope_type: kind, rope_theta: new Real(part.base) };
  if (pinned) same.original_max_position_embeddings = part.trained_length;
  const factor = kind === "yarn" ? Number(part.rescaling[1].factor) : undefined; // for a GGUF without it
  const lines = linesFor({ ...asked, factor, parameters: same || undefined, all: pinned ? among(same) : undefined });
  const blocks = lines.filter(([title]) => programOf(title) !== "transformers");
  const servers = blocks.map(([title]) => programOf(title)).filter((one) => one !== "llama.cpp");
  const stopping = factor ? servers : [...servers, "llama.cpp"];
  const stop = `${stopping.join(", ").replace(/, ([^,]*)$/, " and $1")} stop${stopping.length > 1 ? "" : "s"} at the length in the configuration all the same`;
  const here = `below ${servers.length > 1 ? "are lines" : "is a line"} for ${servers.join(" and ")}`;
  const gguf = `llama.cpp takes, as read, --override-kv ARCHITECTURE.context_length=int:${asked.wanted}`;
  const but = servers.length ? ` ${stop}: ${here}${factor ? "" : `, and ${gguf}`}.` : "";
  return { why: `Nothing is to be written for the rotation: ${why}${but}${deafWords(deaf)}`, blocks };
}

/** What is said where the file reaches so far. */
function within(asked) {
  const { spec, part, config, own, wanted, reach, model, rules, deaf } = asked;
  const file = [...LENGTHS, "rope_parameters", "rope_scaling"].some((name) => truthy(own[name]));
  const before = ["linear", "ntk"].includes(part.rescaling?.[0]) ? "names, before or after its rescaling" : "is for";
  const far = reachOfYarn(part);
  const whose = far
    ? "its YaRN reaches"
    : part.taken
      ? `are taken, ${part.taken}`
      : `${file ? "the file" : "its class"} ${before}`;
  const why = `${whole(wanted)} tokens are within the ${whole(reach)} that ${whose}.`;
  if (!part.max_length && wanted <= part.trained_length) return { why: `Nothing is to be written: ${why}` };
  if (!(part.max_length >= wanted)) return asItIs(asked, why);
  const less = lesser(part, config, wanted);
  const more = truthy(less) ? ` \\\n  --hf-overrides '${inside(holderOf(spec, part, rules), less)}'` : "";
  const line = `vllm serve ${model} --max-model-len ${wanted}${more}`;
  const heard = !deaf.some((program) => program.startsWith("vLLM"));
  return {
    why: `Nothing is to be written: ${why}${deafWords(deaf)}`,
    blocks: heard ? [[`vLLM${beside(model)}`, line]] : [],
  };
}

/** What has to be changed in the file before YaRN does what a line says; empty where nothing has. */
function obstacle({ part, own, rule, nested, given }) {
  const { trained_length: trained } = part;
  const inFile = own.original_max_position_embeddings;
  const outer = inFile ?? rule.defaults?.original_max_position_embeddings;
  if (isReal(outer) && !nested && rule.rope.outside && Number(outer) !== Number(trained)) {
    return isReal(inFile)
      ? `original_max_position_embeddings, ${whole(outer)}, would overrule that of a line: take it out of the file first.`
      : `Its class's original_max_position_embeddings, ${whole(outer)}, would overrule that of a line: write ${trained} there first.`;
  }
  return part.width === part.head_dim && Number(given.partial_rotary_factor ?? 1) !== 1
    ? "partial_rotary_factor has no effect here, and would have one with YaRN: take it out of the file first."
    : "";
}

/** The lines by which a part turns by YaRN. */
function byYarn(asked) {
  const { spec, part, config, wanted, rules, given, among } = asked;
  const trained = part.trained_length;
  const factor = stretch(wanted, trained);
  const { attention_factor: left, ...kept } = given; // which a new factor does not keep
  const parameters = {
    rope_type: "yarn",
    rope_theta: new Real(part.base),
    factor: new Real(factor),
    original_max_position_embeddings: trained,
  };
  for (const [name, value] of Object.entries(kept)) parameters[name] ??= value;
  const all = among(parameters);
  const then = evaluated(stretched(part, config, all), rules);
  const longer = then?.parts[spec.parts.indexOf(part)] ?? null;
  if (!then && !PASSED.includes(typeOf(spec, part, config))) {
    return { why: `A configuration of ${spec.family} with YaRN has no card here, so that no line for it is known.` };
  }
  if (!then) {
    const lines = linesFor({ ...asked, factor, parameters, all, fresh: true });
    return {
      why:
        `A config.json of ${spec.family} with YaRN is refused when it is read. Set on the configuration after that, ` +
        `as in the line below, **YaRN by ${factor}** is what its class turns by; a configuration that was saved so ` +
        "is not read again.",
      parameters,
      longer: turnedByYarn(part, parameters),
      blocks: lines.filter(([program]) => program.startsWith("transformers")),
    };
  }
  if (longer?.rescaling?.[0] !== "yarn") {
    return {
      why: `The class of ${spec.family} in transformers takes no YaRN, so that no line for a longer context is known here.`,
    };
  }
  const wide = then.warnings.some(({ code }) => code === "head-width-missing"); // YaRN cannot multiply None
  const blocks = linesFor({ ...asked, factor, parameters, all, wide, fresh: true });
  const texts = spec.parts.filter((one) => one.part === "text" && one.path !== part.path).map(({ path }) => path);
  const rest = [...new Set(texts)]; // parts with lines of their own
  return { factor, trained, parameters, longer, blocks, left, rest, deaf: deafTo(spec, part, config) };
}

/** A part with YaRN, where no class reads it. */
function turnedByYarn(part, parameters) {
  const told = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, Number(value)]));
  const { invFreq, attention } = rescaledFrequencies("yarn", part.width, part.base, told);
  return { ...part, rescaling: ["yarn", parameters], inv_freq: [...invFreq], attention_factor: attention };
}

/** What rope_parameters says of the other kinds of layers, which stay. */
function unchanged(kinds, part, config) {
  const others = kinds.filter((one) => one !== part);
  return Object.fromEntries(
    others.map((one) => {
      const [kind, given] = one.rescaling ?? ["default", {}];
      return [one.kind, { ...present(one, config), ...given, rope_type: kind, rope_theta: new Real(one.base) }];
    }),
  );
}

/** Types whose class in a server hands its rotary embedding no rescaling, as read in the models of its wheel. */
export const UNSCALED = {
  "vLLM 0.33.0": [
    ...["dbrx", "mimo_v2_flash", "minimax_m3_vl", "minimax_m3_vl_text", "muse_spark", "muse_spark_text"],
    "voxtral_realtime_encoder",
  ],
  "SGLang 0.5.23": [
    ...["dbrx", "gemma", "gemma2", "granitemoe", "granitemoe_swa", "granitemoeshared", "hy_v3", "mixtral"],
    ...["muse_glimmer", "muse_glimmer_text", "muse_spark", "muse_spark_text", "olmo", "persimmon", "phi"],
    ...["stablelm", "starcoder2"],
  ],
};
/** Fields the least of which vLLM 0.33.0 takes for the longest text, as read in model_arch_config_convertor.py. */
export const LENGTHS = [
  ...["max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"],
  ...["max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"],
];
/** Types with one rotation of which llama.cpp gives the layers with a window a scale of their own. */
export const WINDOWED = ["afmoe", "cohere2", "gemma2", "gpt_oss", "llama4", "llama4_text"];

const typeOf = (spec, part, config) => fieldsOf(part, config).model_type ?? spec.family;

/** Types whose files with YaRN are refused when they are read, while it may be set after that, as was run. */
const PASSED = ["phi3", "phimoe"];

/** The servers whose class of this type does not hear of a rescaling. */
function deafTo(spec, part, config) {
  const type = typeOf(spec, part, config);
  return Object.keys(UNSCALED).filter((program) => UNSCALED[program].includes(type));
}

/** What is said of them. */
export function deafWords(deaf) {
  if (!deaf.length) return "";
  const [turn, them] = deaf.length > 1 ? ["turn", "them"] : ["turns", "it"];
  return ` ${deaf.join(" and ")} ${turn} this type, as read, without any rescaling, so that there is no line for ${them}.`;
}

/** The part of a configuration that holds its text model; the class of a file with everything at the top has one, too. */
const holderOf = (spec, part, rules) =>
  part.path ? namesIn(part.path) : (rules.types[spec.family]?.flat ?? []).slice(0, 1);

/** Fields in a part of a configuration, as JSON. */
const inside = (names, fields) => compact(names.reduceRight((inner, name) => ({ [name]: inner }), fields));

/** The lengths in a file that stop vLLM before the one that is wanted, raised. */
function lesser(part, config, wanted) {
  const own = fieldsOf(part, config);
  const fields = LENGTHS.filter((name) => isReal(own[name]) && Number(own[name]) < wanted);
  return Object.fromEntries(fields.map((name) => [name, wanted]));
}

const programOf = (title) => title.split(/[ ,]/)[0];

/** What a server needs in a folder that `ropescope convert` has made. */
const beside = (model) =>
  model === "NEW_FOLDER"
    ? ", once tokenizer.json, tokenizer_config.json and generation_config.json lie in NEW_FOLDER, too: convert writes none"
    : "";

/**
 * What to write for each program: [title, code]; fresh, where the rescaling is not the file's own;
 * all is rope_parameters whole, of which parameters may be a part,
 * and both are left out where they stay.
 */
function linesFor({ spec, part, config, rules, model, wanted, factor, parameters, all, wide, fresh }) {
  const names = holderOf(spec, part, rules);
  const holder = ["config", ...names].join(".");
  const nested = all !== parameters;
  const deep = names.length > 1; // of which SGLang keeps no configuration, but a dict
  const width = wide ? `${holder}.head_dim = ${part.head_dim}  # None is no number to YaRN\n` : "";
  const place = nested ? `["${part.kind}"]` : "";
  const python = parameters && written(parameters, "", ofPython).replace(/^ {2}/gm, "    ");
  const longest = { max_position_embeddings: wanted, ...lesser(part, config, wanted) };
  const vllm = inside(names, { ...longest, ...(all && { rope_parameters: all }) });
  const sglang = all && !nested ? ` \\\n  --json-model-override-args '${inside(names, { rope_parameters: all })}'` : "";
  const lines = [
    ["transformers 5, before the model is made", `${width}${holder}.rope_parameters${place} = ${python}`],
    [`vLLM${beside(model)}`, `vllm serve ${model} --max-model-len ${wanted} \\\n  --hf-overrides '${vllm}'`],
    [
      `SGLang${beside(model)}`,
      "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 python -m sglang.launch_server \\\n" +
        `  --model-path ${model} --context-length ${wanted}${sglang}`,
    ],
    [
      `llama.cpp, ${fresh ? "which finds the base in the GGUF file" : "of a GGUF that was made without this YaRN"}`,
      `llama-server -m model.gguf -c ${wanted} \\\n  --rope-scaling yarn --rope-scale ${factor} ` +
        `--yarn-orig-ctx ${part.trained_length}`,
    ],
  ];
  const silent = deafTo(spec, part, config).map((program) => program.split(" ")[0]);
  if (deep || (nested && fresh)) silent.push("SGLang"); // or it is not known which layers it reaches
  if (!factor || nested || WINDOWED.includes(typeOf(spec, part, config))) silent.push("llama.cpp");
  return lines.filter(([title]) => !silent.includes(programOf(title)));
}

/** A value that is no number or list, as Python writes it. */
function ofPython(value) {
  if (value === null) return "None";
  return typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);
}

/** A configuration with a part of it changed. */
function changed(config, names, change) {
  if (!names.length) return change(config);
  return { ...config, [names[0]]: changed(config[names[0]] ?? {}, names.slice(1), change) };
}

/** The configuration with these parameters in the place of its own. */
const stretched = (part, config, parameters) =>
  changed(config, namesIn(part.path), ({ rope_scaling: _, ...rest }) => ({ ...rest, rope_parameters: parameters }));

/** The specification of a configuration that was changed; null if it is refused. */
function evaluated(config, rules) {
  try {
    return ropeOf(config, rules);
  } catch (problem) {
    if (problem instanceof Refused) return null;
    throw problem;
  }
}
