// translation.js: a params.json, or the metadata of a GGUF, in the words of a config.json. Pure functions; the twin of
// ropescope/translation.py, whose names it has, and tests/package/test_explore_files.py compares the two. What of the
// file's keys may be about what rotates and was not read becomes a note, so that nothing is dropped in silence.
import { equal, isDict, isReal, isWhole, Real, Refused, repr, truthy } from "./published.js";

const split = (names) => names.split(" ");
const INTERLEAVED = split(
  "arcee chameleon chatglm cohere2 command-r deepseek2 ernie4_5 ernie4_5-moe glm-dsa glm4 granite " +
    "granitehybrid granitemoe llama llama4 mistral3 mistral4 olmo smollm3",
);
const HALF_SPLIT = split(
  "afmoe apertus bitnet dbrx dots1 eurobert exaone-moe exaone4 falcon falcon-h1 gemma gemma-embedding gemma2 " +
    "gemma3 gemma3n gemma4 glm4moe gpt-oss gptneox hunyuan-dense hunyuan-moe hunyuan_vl jais2 jina-bert-v3 lfm2 " +
    "lfm2moe mimo2 minicpm3 minimax-m2 modern-bert nemotron nomic-bert olmo2 olmoe phi2 phi3 phimoe qwen2 " +
    "qwen2moe qwen2vl qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen3vl qwen3vlmoe seed_oss stablelm starcoder2",
);
const FAMILIES = {
  ...{ chatglm: "glm", "command-r": "cohere", deepseek2: "deepseek_v3", "glm-dsa": "glm_moe_dsa" },
  ...{ "gemma-embedding": "gemma3_text", gemma3: "gemma3_text", gemma3n: "gemma3n_text", gemma4: "gemma4_text" },
  ...{ glm4moe: "glm4_moe", gptneox: "gpt_neox", phi2: "phi", granitehybrid: "granitemoehybrid" },
  ...{ "hunyuan-dense": "hunyuan_v1_dense", "hunyuan-moe": "hunyuan_v1_moe", "jina-bert-v3": "jina_embeddings_v3" },
  ...{ lfm2moe: "lfm2_moe", llama4: "llama4_text", mimo2: "mimo_v2_flash", mistral3: "ministral3" },
  ...{ "modern-bert": "modernbert", qwen2moe: "qwen2_moe", qwen2vl: "qwen2_vl_text", qwen35: "qwen3_5_text" },
  ...{ qwen35moe: "qwen3_5_moe_text", qwen3moe: "qwen3_moe", qwen3next: "qwen3_next" },
  ...{ qwen3vl: "qwen3_vl_text", qwen3vlmoe: "qwen3_vl_moe_text" },
};
const LATENT = ["deepseek_v3", "glm_moe_dsa", "minicpm3", "mistral4"];
const INSIDE = ["apertus", "ministral3", "mistral4"];
const BY_KIND = ["gemma4_text", "mimo_v2_flash", "modernbert"];
const WITHOUT_KEYS = { lfm2: "conv", lfm2_moe: "conv", granitemoehybrid: "mamba" };
const NUMBERS = {
  hidden_size: "embedding_length",
  num_attention_heads: "attention.head_count",
  num_key_value_heads: "attention.head_count_kv",
  head_dim: "attention.key_length",
  num_hidden_layers: "block_count",
  rope_theta: "rope.freq_base",
  max_position_embeddings: "context_length",
  rope_local_base_freq: "rope.freq_base_swa",
  sliding_window: "attention.sliding_window",
  index_head_dim: "attention.indexer.key_length",
  rms_norm_eps: "attention.layer_norm_rms_epsilon",
  full_attention_interval: "full_attention_interval",
};
const SCALING = {
  ...{ factor: "factor", original_max_position_embeddings: "original_context_length" },
  ...{ beta_fast: "yarn_beta_fast", beta_slow: "yarn_beta_slow" },
};
const ABOUT = /rope|rotary|attention|interval|position|alibi|_swa/;
const OTHER = new RegExp(
  "^attention\\.(\\w+_lora_rank|\\w*norm\\w*|causal|scale|output_scale|clamp_kqv|temperature_\\w+" +
    "|value_length\\w*|shared_kv_layers|relative_\\w+|group_\\w+|indexer\\.(head_count|top_k))$" +
    "|^rope\\.scaling\\.finetuned$",
);
/** What a family's config.json calls a field, or nothing if its class refuses it. */
const SPELLED = {
  falcon: { head_dim: "", num_key_value_heads: "num_kv_heads" },
  gpt_neox: { rope_theta: "rotary_emb_base", partial_rotary_factor: "rotary_pct" },
  modernbert: { sliding_window_pattern: "global_attn_every_n_layers" },
};

const SAME = split(
  "head_dim rope_theta max_position_embeddings sliding_window qk_rope_head_dim qk_nope_head_dim q_lora_rank " +
    "kv_lora_rank v_head_dim use_qk_norm attention_chunk_size attn_temperature_tuning floor_scale attn_scale",
);
const PARAMS = {
  ...{ hidden_size: "dim", num_hidden_layers: "n_layers", num_attention_heads: "n_heads" },
  ...{ num_key_value_heads: "n_kv_heads", rms_norm_eps: "norm_eps" },
  ...Object.fromEntries(SAME.map((name) => [name, name])),
};
const NOT_ABOUT = split(
  "vocab_size hidden_dim multiple_of ffn_dim_multiplier ffn_exp tied_embeddings max_batch_size max_seq_len model_type " +
    "moe moe_args quantization quantization_args quantization_config lora lora_args use_biases causal activation " +
    "_sliding_window",
);
const LENGTH = "original_max_position_embeddings";
const YARN = { factor: "factor", [LENGTH]: LENGTH, beta_fast: "beta", beta_slow: "alpha" };

const has = (dict, key) => Object.hasOwn(dict, key);
const absent = (value) => value === undefined || value === null;
const told = (config) => Object.fromEntries(Object.entries(config).filter(([, value]) => !absent(value)));

/** A value with the fields that its texts name called as the file calls them; path is the part that they are of. */
export function renamed(value, said, path = "") {
  if (typeof value === "string") {
    const inside = path ? `${path}.` : "";
    return value.replace(/[A-Za-z_]\w*(?:\.\w+)*/g, (word) => said[inside + word] ?? said[word] ?? word);
  }
  if (Array.isArray(value)) return value.map((one) => renamed(one, said, path));
  if (!isDict(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, renamed(one, said, value.path ?? path)]));
}

/** A float as it was before it was rounded to 32 bits, if seven digits tell. */
export function rounded(x) {
  if (!Number.isFinite(x)) return x;
  const found = Number(x.toPrecision(7));
  return Number.isInteger(found) ? new Real(found) : found;
}

/** A file's keys; notes which are read, and which fields they become. */
class Keys {
  constructor(found, prefix = "") {
    Object.assign(this, { found, prefix, read: new Set(), said: Object.create(null), notes: [] });
  }
  get(key, field = "") {
    this.read.add(key);
    const value = this.found[this.prefix + key] ?? null;
    if (field && value !== null) this.said[field] = this.prefix + key;
    return value;
  }
  /** A number, of one for each layer the largest. */
  number(key, field = "") {
    const found = this.get(key, field);
    const many = Array.isArray(found) ? found : found === null ? [] : [found];
    if (!many.every(isReal)) {
      throw new Refused(`${this.prefix}${key} must be a number, or one for each layer, got ${repr(found)}`);
    }
    if (!Array.isArray(found) || key.includes("sections")) return found;
    return found.length ? found.reduce((a, b) => (Number(b) > Number(a) ? b : a)) : null;
  }
  dict(key) {
    const found = this.get(key);
    if (found !== null && !isDict(found)) throw new Refused(`${key} must be an object, got ${repr(found)}`);
    return found ?? {};
  }
  notRead(keys) {
    if (!keys.length) return;
    const names = keys.map((key) => this.prefix + key).join(", ");
    this.notes.push(`${names}: not read here; what that changes of the rotation is not known.`);
  }
}

/** Base and rescaling as rope_parameters. */
function newlySpelled(keys, config) {
  const { rope_scaling: scaling, rope_theta: base } = config;
  config.rope_parameters = { ...(scaling ?? { rope_type: "default" }), rope_theta: base };
  delete config.rope_scaling;
  delete config.rope_theta;
  const spelt = (field) =>
    field === "rope_theta" ? "rope_parameters.rope_theta" : field.replace("rope_scaling", "rope_parameters");
  keys.said = Object.fromEntries(Object.entries(keys.said).map(([field, key]) => [spelt(field), key]));
}

/** What a file says in other words: { config, rows, notes, said }; null for what is a config.json. */
export function translated(found, rules) {
  if (typeof found["general.architecture"] === "string") return ofGguf(found, rules);
  return ["dim", "n_layers", "n_heads"].every((name) => has(found, name)) ? ofParams(found) : null;
}

// ---- params.json --------------------------------------------------------------------------------

function ofParams(found) {
  const keys = new Keys(found);
  let config = told(Object.fromEntries(Object.entries(PARAMS).map(([field, key]) => [field, keys.get(key, field)])));
  const mistral = has(found, "hidden_dim");
  const four = has(found, "nope_layer_interval") || has(found, "vision_args");
  let family = mistral ? "mistral" : four ? "llama4_text" : "llama";
  if (Array.isArray(config.sliding_window)) delete config.sliding_window;
  if (!has(config, "rope_theta")) {
    config.rope_theta = new Real(mistral && !has(config, "sliding_window") ? 1e6 : four ? 5e5 : 1e4);
    keys.said.rope_theta = `the default of ${mistral ? "Mistral" : "Meta"}'s code`;
    if (mistral) {
      const words = "rope_theta is not in the file: Mistral's code takes 10,000 beside a sliding";
      keys.notes.push(`${words} window, and 1,000,000 without.`);
    }
  }
  if (four) {
    const every = keys.get("nope_layer_interval", "no_rope_layer_interval");
    config.no_rope_layer_interval = truthy(every) ? every : 10_001; // more than there are
  }
  if (truthy(keys.get("use_scaled_rope")))
    Object.assign(config, scaled(keys, four, has(config, "max_position_embeddings")));
  const [yarn, growing] = ["yarn", "llama_4_scaling"].map((key) => truthy(keys.get(key)));
  if (yarn || growing) {
    config.rope_scaling = mistralYarn(keys);
    if (has(config.rope_scaling, "llama_4_scaling_beta")) family = "ministral3";
    newlySpelled(keys, config);
  }
  if (has(config, "qk_rope_head_dim")) family = "mistral4";
  config = { model_type: family, ...config };
  const towers = ["vision_encoder", "vision_args"].map((key) => keys.dict(key));
  if (towers.some(truthy)) config = withTower(keys, config, ...towers);
  const left = Object.keys(found).filter((key) => !keys.read.has(key) && !absent(found[key]) && found[key] !== false);
  keys.notRead(left.filter((key) => !NOT_ABOUT.includes(key)));
  return { config, rows: "interleaved", notes: keys.notes, said: keys.said };
}

/** What Meta's use_scaled_rope means, whose numbers its files leave out; reach, whether a file says how far a text may. */
function scaled(keys, four, reach) {
  const factor = keys.get("rope_scaling_factor", "rope_scaling.factor");
  const high = keys.get("rope_high_freq_factor", "rope_scaling.high_freq_factor");
  const rope = {
    rope_type: "llama3",
    factor: truthy(factor) ? factor : new Real(four ? 16 : 8),
    low_freq_factor: new Real(1),
    high_freq_factor: truthy(high) ? high : new Real(four ? 1 : 4),
    [LENGTH]: 8192,
  };
  keys.said.rope_scaling = "use_scaled_rope";
  if (!reach) keys.said.max_position_embeddings = "use_scaled_rope";
  if (four) {
    keys.notes.push("use_scaled_rope gives not all numbers: what is missing is as in Llama 4's code.");
    return { rope_scaling: rope };
  }
  const words =
    "use_scaled_rope gives no numbers: Llama 3.1's are taken. In texts of every length, slow pairs turn up to 8 " +
    "times slower (Llama 3.2: 32).";
  const further = " Llama 3.1 was then trained on, to 131,072 tokens, which is assumed here.";
  keys.notes.push(reach ? words : words + further);
  return { rope_scaling: rope, ...(!reach && { max_position_embeddings: 131072 }) };
}

/** Mistral's yarn and llama_4_scaling as rope_scaling has them. */
function mistralYarn(keys) {
  const [yarn, growing] = ["yarn", "llama_4_scaling"].map((key) => keys.dict(key));
  const rope = { rope_type: "yarn" };
  keys.said.rope_scaling = "yarn";
  for (const [field, key] of Object.entries(YARN)) {
    if (has(yarn, key)) rope[field] = yarn[key];
    keys.said[`rope_scaling.${field}`] = `yarn.${key}`;
  }
  if (truthy(yarn) && !has(yarn, "apply_scale")) {
    keys.notes.push("yarn.apply_scale is not in the file: true is taken, as vLLM takes it.");
  }
  if (yarn.apply_scale === false) Object.assign(rope, { mscale: new Real(1), mscale_all_dim: new Real(1) });
  if (has(growing, "beta")) rope.llama_4_scaling_beta = growing.beta;
  const apart = has(growing, LENGTH) && !equal(growing[LENGTH], yarn[LENGTH] ?? null);
  const known = [...Object.values(YARN), "apply_scale"];
  keys.notRead([
    ...Object.keys(yarn)
      .filter((key) => !known.includes(key))
      .map((key) => `yarn.${key}`),
    ...Object.keys(growing)
      .filter((key) => !["beta", LENGTH].includes(key) || (key === LENGTH && apart))
      .map((key) => `llama_4_scaling.${key}`),
  ]);
  return rope;
}

/** A configuration with a tower for pictures beside that of the text. */
function withTower(keys, text, mistral, meta) {
  const ours = truthy(mistral);
  const names = truthy(meta)
    ? { hidden_size: "dim", num_hidden_layers: "n_layers", num_attention_heads: "n_heads" }
    : Object.fromEntries(Object.keys(mistral).map((field) => [field, field]));
  const given = ours ? mistral : meta;
  const name = ours ? "vision_encoder" : "vision_args";
  const tower = {};
  for (const [field, key] of Object.entries(names)) if (has(given, key)) tower[field] = given[key];
  for (const field of truthy(meta) ? ["image_size", "patch_size"] : []) {
    if (isDict(given[field])) tower[field] = given[field].height ?? null;
  }
  const said = Object.entries(keys.said).map(([field, key]) => [`text_config.${field}`, key]);
  said.push(...Object.entries(names).map(([field, key]) => [`vision_config.${field}`, `${name}.${key}`]));
  keys.said = Object.fromEntries(said);
  const [kind, inner] = ours ? ["mistral3", "pixtral"] : ["llama4", "llama4_vision_model"];
  return { model_type: kind, text_config: text, vision_config: { ...tower, model_type: inner } };
}

// ---- GGUF ---------------------------------------------------------------------------------------

/** What is known of llama.cpp's files mmproj, whatever the tower in them. */
const CLIP = "clip is a tower for pictures: its projector_type decides how it rotates, which is not read here.";

/** What YaRN in such a file leaves open. */
const TRUNCATES =
  "The published config.json of gpt-oss has truncate false, which a GGUF cannot say: its card truncates.";

function ofGguf(metadata, rules) {
  const name = metadata["general.architecture"];
  if (name === "clip") {
    const said = { model_type: "general.architecture" };
    return { config: { model_type: "mmproj" }, rows: "", notes: [CLIP], said };
  }
  const family = has(FAMILIES, name) ? FAMILIES[name] : name.replaceAll("-", "_");
  const keys = new Keys(metadata, `${name}.`);
  const numbers = Object.entries(NUMBERS).map(([field, key]) => [field, keys.number(key, field)]);
  const config = { model_type: family, ...Object.fromEntries(numbers) };
  const rule = has(rules, family) ? rules[family] : { null: "unknown" };
  const turns = rule.null || rule.rotations || truthy(rule.parts ?? null);
  if (turns && config.rope_theta === null) {
    config.rope_theta = new Real(10000);
    keys.said.rope_theta = "the default of llama.cpp";
    keys.notes.push(`${name}.rope.freq_base is not in the file: llama.cpp takes 10,000.`);
  }
  if (turns && ![...INTERLEAVED, ...HALF_SPLIT].includes(name)) {
    keys.notes.push(`In which layout llama.cpp rotates ${repr(name)} is not known here.`);
  }
  Object.assign(config, layersOf(keys, family));
  let width = config.head_dim;
  const rotated = keys.number("rope.dimension_count");
  const { num_attention_heads: heads, hidden_size: hidden } = config;
  if (truthy(heads) && truthy(hidden) && width === null) width = Math.floor(hidden / heads);
  if (truthy(rotated) && truthy(width) && LATENT.includes(family)) {
    const whole = keys.number("attention.key_length_mla");
    const rest = (truthy(whole) ? whole : width) - rotated;
    Object.assign(config, { qk_rope_head_dim: rotated, qk_nope_head_dim: rest, head_dim: null });
    keys.said.qk_rope_head_dim = `${name}.rope.dimension_count`;
  } else if (truthy(rotated) && truthy(width) && Number(rotated) < Number(width)) {
    config.partial_rotary_factor = rotated / width;
    const whole = keys.said.head_dim ?? "head width";
    keys.said.partial_rotary_factor = `${name}.rope.dimension_count / ${whole}`;
  }
  let scaling = scalingOf(keys, config);
  const sections = [...(keys.number("rope.dimension_sections") ?? [])];
  if (sections.length) {
    while (sections.length && !truthy(sections.at(-1))) sections.pop();
    scaling = { rope_type: "default", mrope_section: sections, ...scaling };
  }
  scaling = told(scaling);
  config.rope_scaling = truthy(scaling) ? scaling : null;
  if (BY_KIND.includes(family)) twoKinds(keys, config);
  if (INSIDE.includes(family)) newlySpelled(keys, config);
  const own = Object.keys(metadata).filter((key) => key.startsWith(keys.prefix));
  const left = own
    .map((key) => key.slice(keys.prefix.length))
    .filter((rest) => {
      const value = metadata[keys.prefix + rest];
      if (absent(value) || value === false || keys.read.has(rest) || !ABOUT.test(rest) || OTHER.test(rest))
        return false;
      const other = metadata[keys.prefix + rest.replace(/_swa$/, "")] ?? null;
      return !(rest.endsWith("_swa") && equal(value, other));
    });
  keys.notRead(left);
  const spelt = (fields) =>
    Object.fromEntries(Object.entries(fields).map(([key, value]) => [SPELLED[family]?.[key] ?? key, value]));
  const { "": _, ...known } = spelt(told(config));
  const rows = INTERLEAVED.includes(name) ? "interleaved" : HALF_SPLIT.includes(name) ? "half-split" : "";
  return { config: known, rows, notes: keys.notes, said: spelt(keys.said), architecture: name };
}

/** The types of layers, by their windows and their key heads. */
function layersOf(keys, family) {
  const every = keys.get("attention.sliding_window_pattern", "sliding_window_pattern");
  const counts = keys.get("attention.head_count_kv");
  if (Array.isArray(every)) {
    keys.said.layer_types = keys.said.sliding_window_pattern;
    return { layer_types: every.map((one) => (truthy(one) ? "sliding_attention" : "full_attention")) };
  }
  if (Array.isArray(counts) && counts.some((n) => equal(n, 0))) {
    if (has(WITHOUT_KEYS, family)) {
      keys.said.layer_types = `${keys.prefix}attention.head_count_kv`;
      return { layer_types: counts.map((n) => (truthy(n) ? "full_attention" : WITHOUT_KEYS[family])) };
    }
    keys.notRead(["attention.head_count_kv"]);
  }
  return { sliding_window_pattern: every };
}

/** The bases of two kinds of layers, and Gemma 4's widths. */
function twoKinds(keys, config) {
  const { rope_scaling: scaling, rope_theta: base, rope_local_base_freq: near } = config;
  for (const field of ["rope_scaling", "rope_theta", "rope_local_base_freq"]) delete config[field];
  config.rope_parameters = {
    full_attention: { ...(scaling ?? { rope_type: "default" }), rope_theta: base },
    sliding_attention: { rope_type: "default", rope_theta: truthy(near) ? near : base },
  };
  const { said } = keys;
  const at = (kind) => `rope_parameters.${kind}_attention.rope_theta`;
  said[at("full")] = said.rope_theta;
  delete said.rope_theta;
  said[at("sliding")] = said.rope_local_base_freq ?? said[at("full")];
  if (config.model_type !== "gemma4_text") return;
  config.global_head_dim = config.head_dim;
  const narrow = keys.number("attention.key_length_swa");
  config.head_dim = truthy(narrow) ? narrow : config.head_dim;
  const rotated = keys.number("rope.dimension_count_swa");
  if (rotated !== null && !equal(rotated, config.head_dim)) keys.notRead(["rope.dimension_count_swa"]);
  said["rope_parameters.full_attention.partial_rotary_factor"] = "rope_freqs.weight";
  said.global_head_dim = `${keys.prefix}attention.key_length`;
  said.head_dim = `${keys.prefix}attention.key_length_swa`;
}

/** What rescales the frequencies, as rope_scaling has it. */
function scalingOf(keys, config) {
  const given = Object.fromEntries(
    Object.entries(SCALING).map(([field, key]) => [field, keys.number(`rope.scaling.${key}`, `rope_scaling.${field}`)]),
  );
  const [kind, linear] = [keys.get("rope.scaling.type"), keys.number("rope.scale_linear")];
  const factor = truthy(given.factor) ? given.factor : linear;
  const more = keys.number("rope.scaling.attn_factor");
  const [long, short, divisors] = ["factors_long", "factors_short", "freqs"].map(
    (which) => keys.found[`rope_${which}.weight`] ?? [],
  );
  if (long.length && short.length) {
    config[LENGTH] = given[LENGTH];
    return { rope_type: "longrope", long_factor: long, short_factor: short, attention_factor: more };
  }
  if (divisors.length) return named(divisors.map(Number), Number(config.rope_theta), keys.notes);
  if (kind === "yarn") {
    if (config.model_type === "gpt_oss") keys.notes.push(TRUNCATES);
    const latent = LATENT.includes(config.model_type);
    const multiplier = Number(keys.number("rope.scaling.yarn_log_multiplier") ?? 0) * (latent ? 10 : 1);
    const scale = multiplier ? rounded(multiplier) : null;
    const attention = Number(more) * (1 + 0.1 * Math.log(Number(factor) || 1));
    const found = {
      rope_type: "yarn",
      ...given,
      factor,
      attention_factor: attention ? rounded(attention) : null,
      mscale: scale && (latent ? scale : new Real(1)),
      mscale_all_dim: scale,
    };
    if (["ministral3", "mistral4"].includes(config.model_type)) {
      found.llama_4_scaling_beta = keys.number("attention.temperature_scale");
    }
    return found;
  }
  const stretched = (kind === null || kind === "linear") && factor !== null && ![0, 1].includes(Number(factor));
  return stretched ? { rope_type: "linear", factor } : {};
}

/** Llama 3's rescaling, or Gemma 4's pairs that do not rotate, whose divisors llama.cpp keeps in a tensor. */
function named(divisors, base, notes) {
  if (divisors.every((d) => Math.abs(d - 1) < 1e-6)) return {};
  const still = divisors.filter((d) => d > 1e29).length;
  if (still && divisors.every((d) => d === 1 || d > 1e29)) {
    const share = 1 - still / divisors.length;
    return { rope_type: "proportional", partial_rotary_factor: isWhole(share) ? new Real(share) : share };
  }
  const [low, high] = [1, 4];
  const waves = divisors.map((_, i) => base ** (-i / divisors.length));
  const most = Math.max(...divisors);
  const factor = Math.abs(most - Math.round(most)) < 1e-5 * most ? Math.round(most) : most;
  const share = (d) => (1 / d - 1 / factor) / (1 - 1 / factor);
  const at = divisors.findIndex((d) => share(d) > 0.01 && share(d) < 0.99);
  const original = Math.round(((low + (high - low) * share(divisors[at])) * 2 * Math.PI) / waves[at]);
  const fits = divisors.every((d, i) => {
    const keep = Math.min(Math.max(((original * waves[i]) / (2 * Math.PI) - low) / (high - low), 0), 1);
    return Math.abs(d * ((1 - keep) / factor + keep) - 1) < 1e-5;
  });
  if (fits) {
    return {
      rope_type: "llama3",
      factor: new Real(factor),
      low_freq_factor: new Real(low),
      high_freq_factor: new Real(high),
      original_max_position_embeddings: original,
    };
  }
  notes.push("The divisors in rope_freqs.weight are of no rescaling known here; left out.");
  return {};
}
