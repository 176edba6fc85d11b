// configuration.js: from a published configuration to its rotary embedding, by rules found by asking
// each class. Pure functions; the twin of ropescope/configuration.py, whose names it has, and
// tests/package/test_explore_configuration.py compares the two. A configuration and the rules are what
// parse of published.js returns; what rope_of raises is thrown as a Refused, with the same words.
import { at, BASE, Fields, get, has, NAMES, typesOf } from "./fields.js";
import { ascending, layersOf, runs, unrolled } from "./layers.js";
import {
  equal,
  general,
  grouped,
  isDict,
  isReal,
  isWhole,
  kindOf,
  nearest,
  Real,
  Refused,
  repr,
  truthy,
} from "./published.js";
import { arranged, ORIGINAL_LENGTH, SECTIONED, Series, Unfit } from "./series.js";

const PARAMETERS = {
  default: [],
  linear: ["factor"],
  dynamic: ["factor"],
  ntk: ["alpha"],
  yarn: [
    ...["factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow"],
    ...["mscale", "mscale_all_dim", "truncate"],
  ],
  llama3: ["factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"],
  longrope: ["short_factor", "long_factor", "original_max_position_embeddings", "factor", "attention_factor"],
  proportional: ["factor"],
};
const ORIGINAL = ["yarn", "llama3", "longrope"];
const REQUIRED = {
  linear: ["factor"],
  dynamic: ["factor"],
  ntk: ["alpha"],
  yarn: ["factor"],
  llama3: ["factor", "low_freq_factor", "high_freq_factor"],
  longrope: ["short_factor", "long_factor"],
  default: [],
  proportional: [],
};
const LISTS = ["short_factor", "long_factor"];
const ZERO = ["beta_fast", "beta_slow", "mscale", "mscale_all_dim"];
const LAYERWISE = "per_layer_config"; // fields of single layers, of any class
const DICTS = ["rope_scaling", "rope_parameters"];
const WHOLE = { fields: ["partial_rotary_factor"], default: 1, whole: true }; // read, where whole heads rotate, by rescalings
const MOST_CHANNELS = 2 ** 16;
const DEFAULT = "the class's default";
/** Types of a field's value, by the letters with which takes of a rule names them. */
const TYPES = {
  ...{ n: "null", b: "true or false", i: "an integer", f: "a float", s: "a text", d: "a dict", e: "an empty list" },
  ...{ N: "a list of nulls", B: "a list of true and false", I: "a list of integers", F: "a list of floats" },
  ...{ S: "a list of texts", D: "a list of dicts", L: "a list of lists" },
};
/** Parameters of any type of rescaling. */
export const ANY = new Set(Object.values(PARAMETERS).flat());
const MEANT = [...ANY].sort().join("|");
const ABOUT = new RegExp(
  "rope|rotary|theta|nope|ntk|yarn|alibi|^base$|freq_base|partial_|kv_channels|^compress_pos" +
    "|^(attention_|global_|swa_|qk_(rope_|nope_)?)?head_(dims?|dimension|size)$|^position_embeddings?_type" +
    "|^position_encoding|^positional_|^pos_emb|xpos|neox_style|interleaved?$|^rot_|^d_(head|kv)$|dim_head$" +
    "|^attn_head_dim$|wavelength|(^|_)base_freq|frequency_base|embedding_base|position_interpol|condense" +
    "|^scaling_(factor|type)$|^dual_chunk|^sliding_window_pattern$|^full_attention_int|attn_every_n" +
    "|^(max_)?seq(uence)?_len|context_len|^model_max_len|^n_(ctx|positions)$|_freq_factor$|^attn_fa" +
    `|^beta_|^(${MEANT})$`,
);
const TURNS = /rope|rotary|theta/;
const IDLE = "has no effect on the rotation";
const BACKWARDS = [
  ["beta_slow", "beta_fast"],
  ["low_freq_factor", "high_freq_factor"],
];
const SUM = /\w+( \+ \w+)+/g;
const QUANTITIES = {
  base: BASE,
  fraction: /partial|pct|percent|fraction/,
  length: /max_pos|len|n_ctx|n_pos/,
  width: /dim|channels|size/,
};

/** A name such as headDim or head-dim with its words set apart by underscores. */
const snake = (name) => name.replace(/[-. ]|(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
const typeIn = (parameters) => get(parameters, "rope_type", get(parameters, "type", "default"));
const positive = (value) =>
  isReal(value) && typeof value !== "boolean" && Number(value) > 0 && Number(value) < Infinity;
const alike = (a, b) =>
  Array.isArray(a) ? a.length === b?.length && a.every((one, i) => equal(one, b[i])) : equal(a, b);
/** Whether two dicts have the same fields. */
const alikeIn = (a, b) =>
  isDict(a) && Object.keys({ ...a, ...b }).every((name) => has(a, name) && has(b, name) && alike(a[name], b[name]));
/** A number with commas and up to 15 digits, as Python's ,.15g writes it. */
const digits15 = (value) => {
  const x = Number(value);
  return x >= 1e-4 && x < 1e15 ? grouped(Number(x.toPrecision(15))) : general(x);
};
/** A float without a fraction, such as 32768.0, as an integer. */
const wholeOf = (value) => (value instanceof Real && Number.isInteger(Number(value)) ? Number(value) : value);
const hint = (near) => (near === null ? "" : `did you mean ${repr(near)}?`);

/**
 * How a configuration rotates: what to_dict() of Python's Specification gives. Of the rules, types are
 * by model_type, fields are names of any class, which are no misspellings, and kinds types of layers.
 */
export function ropeOf(config, { types: rules, fields: names = [], kinds = [] }) {
  if (!isDict(config)) {
    throw new Refused(`config must be a dict, as json.load returns config.json, got ${kindOf(config)}`);
  }
  const family = get(config, "model_type");
  const named = family === "mistral" && has(config, "layer_types") ? "ministral" : family; // AutoConfig
  const rule = typeof family === "string" ? get(rules, named) : null;
  if (rule === null || rule.null) {
    const warnings = [noRule(config, rule, rules)];
    return { family, known: false, parts: [], read: [], without_effect: [], others: [], warnings };
  }
  const study = new Study(rules, new Set(names), new Set(kinds));
  study.read.add("model_type");
  study.part(config, named, "");
  study.warnings.sort((a, b) => b.severity - a.severity);
  const { parts, read, unread, warnings } = study;
  const idle = [...unread].filter((name) => !read.has(name));
  const others = leaves(config).filter((where) => !study.met(where));
  return { family, known: true, parts, read: [...read], without_effect: idle, others, warnings };
}

/** Types of public checkpoints for which transformers has no class. */
const OWN_CODE = [
  ...["baichuan", "chatglm", "deepseek", "internlm", "internlm2", "kimi_k2", "mimo", "minicpm"],
  ...["nemotron-nas", "phi3_v", "qwen"],
];

function noRule(config, rule, rules) {
  const family = get(config, "model_type");
  const caution = (severity, message, field = "model_type") => ({ code: "no-rule", severity, field, message });
  if (rule !== null) return caution(1, `${family} has no rule: ${rule.null}.`);
  const made = get(config, "_class_name");
  if (family === null && truthy(made)) {
    const about = Object.entries(config).filter(([name]) => ABOUT.test(name));
    const told = about.map(([name, value]) => `${name} ${repr(value)}`).join(", ") || "nothing";
    const words = `${made} is a class of diffusers, for which there is no rule. Of its rotation it says: ${told}.`;
    return caution(1, words, "_class_name");
  }
  if (typeof family !== "string") {
    const whole = has(config, "model_type") ? "" : ": most whole files have one";
    return caution(2, `model_type must name a family, such as 'llama', got ${repr(family)}${whole}.`);
  }
  const near = nearest(family, Object.keys(rules));
  let more = near ? `: ${hint(near)}` : ".";
  if (OWN_CODE.includes(family) || truthy(get(config, "auto_map")))
    more = ": transformers has no class for it, and its code comes with the checkpoint.";
  for (const [whole, one] of Object.entries(rules)) {
    const inner = Object.values(one.parts ?? {}).find((spec) => Object.hasOwn(spec.as ?? {}, family))?.as[family];
    if (inner) {
      more =
        `: inside ${whole}, transformers reads its fields as those of ${inner}. With ${repr(inner)} as its ` +
        "model_type, the card is how that class turns.";
    }
  }
  return caution(1, `No rule for model_type ${repr(family)}${more}`);
}

/** Evaluates rules on a configuration and its parts. */
class Study {
  constructor(rules, names, kinds) {
    Object.assign(this, { rules, names, kinds, parts: [], warnings: [] });
    Object.assign(this, { read: new Set(), unread: new Set(), places: new Map() });
  }
  warn(code, severity, field, message) {
    const same = (one) => one.code === code && one.field === field && one.message === message;
    if (!this.warnings.some(same)) this.warnings.push({ code, severity, field, message });
  }
  /** Whether a field, or a dict that it stands in, is read or without effect. */
  met(where) {
    const names = [...where.matchAll(/\.|$/g)].map((end) => where.slice(0, end.index));
    const whole = (name) => name === where || !DICTS.includes(name.split(".").at(-1));
    return names.some((name) => this.unread.has(name) || (this.read.has(name) && whole(name)));
  }
  part(config, family, path, preset = {}) {
    const rule = get(this.rules, family, {});
    const [flat, start] = [[], this.parts.length];
    let lacks = false;
    for (const [name, spec] of Object.entries(rule.parts ?? {})) {
      let own = get(config, name);
      if (own === null && (rule.flat ?? []).includes(name)) {
        flat.push(name);
        const left = ["model_type", ...Object.keys(rule.parts), ...(spec.left ?? [])];
        own = Object.fromEntries(Object.entries(config).filter(([field]) => !left.includes(field)));
        for (const field of spec.left ?? []) {
          if (get(config, field) !== null) this.unused(at(path, field), field, config[field], new Set());
        }
      }
      if (own !== null && !isDict(own)) throw new Refused(`${name} must be a dict, got ${kindOf(own)}`);
      const asked = spec.any ? get(own, "model_type") : null;
      if (asked !== null && typeof asked !== "string") {
        throw new Refused(`${name}.model_type must be a text, got ${repr(asked)}`);
      }
      const named = get(spec.as, asked, asked) || spec.type;
      const inner = get(this.rules, named, {});
      const where = flat.includes(name) ? path : at(path, name);
      const rests = spec.optional || !(inner.rotations || inner.parts || inner.null);
      if (own === null && rests) continue;
      if (spec.typed && truthy(own) && !has(own, "model_type") && !rests) {
        throw new Refused(`${at(where, "model_type")} must be given: its class fails without it`);
      }
      if (get(config, name, 0) === null)
        this.read.add(at(path, name)); // defaults stand for it
      else if (spec.any && has(own, "model_type")) this.read.add(at(where, "model_type"));
      if (inner.null || !has(this.rules, named)) {
        lacks = true;
        const unknown = named ? `${repr(named)} is no known model_type` : "its class has no model_type";
        const why = inner.null ?? unknown;
        this.warn("no-rule", 1, where, `${where || named} has no rule: ${why}.`);
      }
      const defaults = spec.always || own === null ? spec.defaults : {};
      const [given, forced] = this.overruled(config, own ?? {}, spec, [path, where], preset);
      try {
        this.part(given, named, where, { ...defaults, ...forced });
      } catch (problem) {
        const astray = (inner.read ?? []).filter((one) => get(config, one) !== null);
        if (!(problem instanceof Refused) || own !== null || !astray.length) throw problem;
        throw new Refused(`${problem.message}; outside of ${where}, ${astray.join(", ")} are not read`);
      }
    }
    const fields = new Fields(config, rule, path, preset, this.places);
    for (const name of (rule.also ?? []).filter((one) => truthy(get(config, one)))) {
      this.unknown(at(path, name), "without it");
      fields.read.add(at(path, name));
    }
    const rotations = Boolean(rule.rotations?.length);
    if (rotations) fields.check(rule);
    const on = rotations ? Object.entries(rule.on ?? {}) : [];
    const idle = on.find(([name, values]) => !this.on(fields, name, values));
    const turns = rotations && idle === undefined;
    if (turns) this.rotations(fields, rule, family);
    if (rotations) this.values(fields, rule, this.parts.slice(start));
    if (rotations && this.parts.length === start) {
      const whose = path ? `the layers of ${path}` : "its layers";
      const why = idle ? `: ${fields.name(idle[0])} is ${repr(fields.get(idle[0]))}` : "";
      this.warn("none-rotates", Number(turns), path || "model_type", `None of ${whose} rotates${why}.`);
    }
    if (rule.by_head && this.parts.length > start) {
      const text =
        "A position is the number of the head here, not that of the token: attention does not know the order of tokens.";
      this.warn("by-head", 1, path || "model_type", text);
    }
    if (rule.indexer && this.parts.length > start) {
      const text = `The indexer of ${family} rotates, too, in the layers that have one: it is not on this card.`;
      this.warn("indexer", 0, path || "model_type", text);
    }
    for (const name of fields.read) this.read.add(name);
    for (const [name, value] of fields.twice) {
      this.unused(at(path, name), name, value, new Set(), equal(value, fields.get(name)));
    }
    if (has(this.rules, family) && !flat.length && !lacks && !rule.null)
      this.silent(fields, rule, this.parts.slice(start), rotations && !turns);
  }
  /** The fields of a part with those that its model sets in it, and such defaults. */
  overruled(config, own, spec, paths, preset) {
    const [given, forced] = [{ ...own }, {}];
    for (const [name, initial] of Object.entries(spec.sets ?? {})) {
      const value = has(config, name) ? get(config, name) : get(preset, name, initial);
      if (value === null) continue;
      const lost = get(given, name);
      delete given[name];
      const [outside, inside] = paths.map((path) => at(path, name));
      const place = this.places.get(outside) ?? outside;
      this.places.set(inside, place);
      (has(config, name) ? given : forced)[name] = value;
      if (equal(lost, value)) this.read.add(inside);
      else if (lost !== null) {
        const says = has(config, name) ? "and overrules it" : "as its class sets it";
        this.unused(inside, name, lost, new Set(), false, `: ${place} is ${repr(value)}, ${says}`);
      }
    }
    return [given, forced];
  }
  /** Whether a field has a value with which something rotates; names a misspelt one. */
  on(fields, name, values) {
    const [value, where] = [fields.get(name), fields.name(name)];
    const fine = values.some((one) => equal(value, one));
    if (!fine && typeof value === "string" && TURNS.test(value.toLowerCase())) {
      const text = `${where} is ${repr(value)}, with which nothing rotates: ${hint(values[0])}`;
      this.warn("spelling", 2, where, text);
    }
    return fine;
  }
  /** Warn of values of a type that a class does not take, and of effects not known. */
  values(fields, rule, made) {
    const { given } = fields;
    const found = given.get((rule.layers.types ?? rule.layers.switch)?.field);
    const listed = Array.isArray(found) ? found : [];
    const yields = rule.rope.yields && DICTS.some((name) => truthy(given.get(name)));
    for (const [name, [takes, fails]] of Object.entries(rule.takes ?? {})) {
      if (!given.has(name) || (yields && fields.lists.includes(name))) continue;
      const [where, met] = [fields.name(name), get(rule.when, name, {})];
      for (const one of typesOf(given.get(name)).sort()) {
        const meets =
          !listed.length || !has(met, one) || listed.some((kind) => met[one].some((own) => equal(own, kind)));
        if (!fails.includes(one) || !meets) continue;
        const wanted = [...takes].map((own) => TYPES[own]).join(" or ");
        const text = `${where} must be ${wanted}: with ${TYPES[one]} a small model of its class failed, or did something else.`;
        this.warn("other-type", 2, where, text);
        fields.read.add(where);
      }
    }
    const bases = new Set(made.map((one) => one.base));
    const last = Math.max(-1, ...made.flatMap((one) => unrolled([...one.layers, ...one.without])));
    for (const [name, value] of Object.entries({ ...rule.reaches, [LAYERWISE]: null })) {
      const [own, where] = [given.get(name) ?? null, fields.name(name)];
      if (own === null) continue;
      fields.read.add(where);
      const same = value === "base" && bases.size === 1 ? [...bases][0] : value;
      const whole = Array.isArray(own) && own.length > last; // shorter lists run out of entries
      const fine = alike(own, value) || (whole && own.every((one) => equal(one, same)));
      if (fine || (isDict(own) && !truthy(own)) || (name === LAYERWISE && asMade(own, fields, rule, made))) continue;
      const without = value === null || value === "base" ? "without it" : `with ${repr(value)}`;
      this.unknown(where, without);
    }
    const turning = made.flatMap((one) => unrolled(one.layers)).sort(ascending);
    for (const name of rule.rotating ?? []) {
      if (!made.length || !given.has(name)) continue;
      const where = fields.name(name);
      fields.read.add(where);
      if (alike(given.get(name), turning)) continue;
      const text = `${where} must be the numbers of the layers that rotate, or left out: `;
      this.warn("layers-differ", 2, where, `${text}its class fails, or does something else.`);
    }
  }
  /** A rotation whose width is that of fields of single layers, where there are any. */
  byLayers(fields, one, layers) {
    const given = fields.given.has(LAYERWISE) ? fields.given.get(LAYERWISE) : 0;
    if (!one.by_layer || !(given === null || isDict(given))) return one;
    fields.get(LAYERWISE);
    const whole = fields.known("head_dim");
    const own = entriesOf(given ?? {}, layers).filter(isDict);
    const widths = own
      .filter((one) => has(one, "head_dim") && !equal(one.head_dim, whole))
      .map((one) => String(one.head_dim));
    if (new Set(widths).size > 1 || ![0, layers.length].includes(widths.length)) return one; // its class fails
    const names = widths.length ? widths.slice(0, 1) : ["head_dim"];
    return { ...one, head_dim: names, dim: names, ...(widths.length && { from: fields.name(LAYERWISE) }) };
  }
  /** Warn of layers of a kind of which one has fields of its own that another has not. */
  alike(fields, kind, layers) {
    const given = fields.given.get(LAYERWISE);
    const isKnown = (name, value) =>
      (fields.given.has(name) || has(fields.defaults, name)) && repr(fields.known(name)) === repr(value);
    const some = (isDict(given) ? entriesOf(given, layers) : []).filter(isDict).map((own) =>
      Object.entries(own)
        .filter(([name, value]) => !isKnown(name, value))
        .map(([name, value]) => `${name}: ${repr(value)}`)
        .sort()
        .join(),
    );
    if (some.some((own) => own !== some[0]) || (some.length && some[0] && some.length < layers.length)) {
      const where = fields.name(LAYERWISE);
      const text = `${where} gives some ${kind} layers fields that others have not: its class fails.`;
      this.warn("layers-differ", 2, where, text);
    }
  }
  /** Warn of entries for layers of a kind that turn by another value. */
  entries(fields, kind, layers, made) {
    for (const name of fields.entryLists) {
      const [given, where] = [fields.given.get(name), fields.name(name)];
      const [base, head, width] = [Number(made.base), made.head_dim, made.width];
      const entries = Array.isArray(given) ? layers.filter((i) => i < given.length).map((i) => given[i]) : [];
      const whole = (value) => 2 * Math.floor((Math.floor(head * value) + 1) / 2);
      const fits = (value) => (BASE.test(name) ? value === 1 || value === base : whole(value) === width);
      const lost = entries.find((value) => positive(value) && !fits(Number(value)));
      if (lost === undefined) continue;
      const used = BASE.test(name) ? digits15(made.base) : `${width} of ${head} channels`;
      const text = `${where} has ${digits15(lost)} for one of ${kind === null ? "the layers" : `the ${kind} layers`}, which turn by ${used}.`;
      this.warn("entries-differ", 1, where, text);
    }
  }
  /** Warn of a value of which it is not known what it does. */
  unknown(where, instead) {
    const text = `${where} changes what rotates by a rule that is not known: this is the card ${instead}.`;
    this.warn("not-known", 1, where, text);
  }
  rotations(fields, rule, family) {
    const layers = layersOf(fields, rule.layers, this.kinds);
    const types = rule.layers.types ?? {};
    const given = fields.given.get(types.field);
    if (types.forced && given?.length && !equal(given.at(-1), types.last.at(-1))) {
      const where = fields.name(types.field);
      const text = `${where} ends with ${repr(given.at(-1))}: its class takes ${repr(types.last.at(-1))} for it.`;
      this.warn("layer-forced", 1, where, text);
    }
    const [rests, found] = [unrolled(layers.get("rests")), []];
    for (const one of rule.rotations) {
      const all = layers.get(one.kind === "indexer" ? null : one.kind) ?? [];
      if (!all.length) continue;
      const layer = rule.rope.final ? Math.max(...unrolled(all)) : all[0][0];
      const [parameters, source] = this.parameters(fields, rule.rope, one.kind, layer, layers);
      if (parameters === null) {
        rests.push(...unrolled(all));
        continue;
      }
      const turning = unrolled(all).sort(ascending);
      const made = this.rotation(fields, rule, this.byLayers(fields, one, turning), parameters, source);
      this.entries(fields, one.kind, turning, made);
      if (rule.rotations.some((each) => each.by_layer)) this.alike(fields, one.kind, turning);
      const place = { part: rule.part, model_type: family, path: fields.path, kind: one.kind };
      const own = one.shared ? this.ownIndexers(fields, one.shared, turning) : all;
      found.push({ ...place, layers: own, ...made });
    }
    const without = runs(rests.sort(ascending));
    for (const { part, path, kind, layers: own, ...made } of found) {
      this.parts.push({ part, path, kind, layers: own, without, ...made });
    }
  }
  /** The layers that have an indexer of their own; none where it is not told which. */
  ownIndexers(fields, name, layers) {
    const given = fields.get(name);
    if (given === null) return [];
    if (!Array.isArray(given) || given.length < layers.length) {
      const words = `a list with an entry for each of ${layers.length} layers`;
      throw new Refused(`${fields.name(name)} must be ${words}, got ${repr(given)}`);
    }
    return runs(layers.filter((layer) => given[layer] !== "shared"));
  }
  /** What a kind of layer, of which layer is the first, has in rope_parameters (null: it rests), and its base's place. */
  parameters(fields, rope, kind, layer, layers) {
    const dicts = {};
    for (const field of rope.dict ? DICTS : []) {
      dicts[field] = fields.get(field);
      if (dicts[field] !== null && !isDict(dicts[field])) {
        const words = `${fields.name(field)} must be a dict or null, got ${repr(dicts[field])}`;
        if (truthy(dicts[field]) || field !== DICTS[0] || !rope.kinds[""]?.scaling) throw new Refused(words);
        this.warn("taken-as-null", 1, fields.name(field), `${words}: it is taken as null.`);
        dicts[field] = null;
      }
    }
    let [legacy, given, label] = [dicts.rope_scaling ?? null, dicts.rope_parameters ?? null, "rope_parameters"];
    const kinds = Object.keys(rope.kinds).sort();
    const due = rope.apart && given !== null ? kinds.filter((one) => layers.has(one)) : [];
    if (!due.every((one) => isDict(get(given, one)))) {
      const more = ": it counts with an entry for each kind of layer alone";
      this.unused(fields.name(DICTS[1]), DICTS[1], given, new Set(), !truthy(given), more);
      fields.read.delete(fields.name(DICTS[1]));
      given = null;
    }
    const both = truthy(legacy) && truthy(given) ? [legacy, given] : null;
    const replaces = fields.has("rope_scaling") ? (rope.replaces ?? "") : "";
    if (replaces.includes("n") && legacy === null) {
      const words = `${fields.name("rope_scaling")} must be left out, for null replaces`;
      throw new Refused(`${words} rope_parameters, got null`);
    }
    if (replaces.includes("d") && (truthy(legacy) || replaces.includes("n"))) {
      [label, given, legacy] = ["rope_scaling", legacy, null];
    }
    const own = rope.kinds[rope.nested && kind !== "indexer" ? (kind ?? kinds[0]) : kinds[0]];
    const apart = rope.apart && truthy(given); // from fields outside, which do not count
    if (!own.scaling || apart) legacy = null;
    let [entry, name] = [null, fields.name(label)];
    if (rope.nested) {
      entry = given === null ? null : get(given, kind);
      const lacks = legacy !== null && given !== null && !has(given, kind);
      const fills = rope.fills && !lacks && !(has(given, kind) && rope.nulls === false);
      const nulled = given === null ? own.absent === null : has(given, kind);
      if (rope.rests && entry === null && nulled) return [null, ""];
      if (given !== null && entry === null && !fills) {
        throw new Refused(`${name} must have an entry for ${repr(kind)}`);
      }
      for (const [key, value] of Object.entries(given ?? {})) {
        if (rope.strict && !has(rope.kinds, key)) {
          const words = `entries for ${Object.keys(rope.kinds).join(", ")} alone, got one for ${repr(key)}`;
          throw new Refused(`${fields.name(label)} must have ${words}`);
        }
        if (layers.has(key)) continue;
        const one = get(rope.kinds, key);
        const more = one === null ? "" : ": no layer is of this kind";
        const made = { rope_theta: one?.default, ...one?.absent };
        const fits = one !== null && (value === null || alikeIn(value, made)); // as its class saves it
        this.unused(`${name}.${key}`, key, value, new Set(kinds), fits, more);
      }
      name = `${name}.${kind}`;
    } else {
      entry = truthy(legacy) ? legacy : given;
      if (entry !== given) name = fields.name("rope_scaling");
      legacy = null;
    }
    if (entry !== null && !isDict(entry)) throw new Refused(`${name} must be a dict, got ${repr(entry)}`);
    const told = { ...entry, ...legacy };
    const found = { ...(entry === null ? own.absent : {}), ...told };
    const theta = apart || (rope.yields && truthy(given)) ? [] : own.theta;
    let source = has(told, "rope_theta") ? `${name}.rope_theta` : DEFAULT;
    const isKnown = (field) => fields.given.has(field) || has(fields.preset, field);
    const over = own.over?.find(isKnown);
    const at = over ?? theta.find(isKnown);
    const outside = at !== undefined && rope.yields && !has(told, "rope_theta");
    if (over !== undefined || outside || !has(found, "rope_theta")) {
      found.rope_theta = at === undefined ? own.default : fields.at(at, layer);
      if (at !== undefined && fields.has(at)) source = fields.name(at);
      else if (found.rope_theta === null) {
        throw new Refused(`${name} must have rope_theta: its class has no default`);
      }
    }
    if (!(positive(found.rope_theta) && found.rope_theta >= 2 ** -126 && found.rope_theta < 2 ** 128)) {
      throw new Refused(`${source} must be a positive number (else no base), got ${repr(found.rope_theta)}`);
    }
    const lost = get(told, "rope_theta");
    if (over !== undefined && lost !== null && !equal(lost, found.rope_theta)) {
      const [where, words] = [`${name}.rope_theta`, `${fields.name(over)} is ${digits15(found.rope_theta)}`];
      this.warn("base-lost", 2, where, `${where} is not read: ${words}, and overrules it.`);
    }
    const joins = label === "rope_parameters" && (rope.nested || entry === given);
    if (!(both && this.two(fields, ...both, joins, source, found.rope_theta)) && source === DEFAULT) {
      const seen = truthy(told) ? told : given;
      const at = legacy && !truthy(entry) ? fields.name("rope_scaling") : name;
      this.lost(fields, seen, name, found.rope_theta, Object.values(rope.kinds), at);
    }
    const origin = Object.fromEntries(Object.keys(entry ?? {}).map((key) => [key, name]));
    for (const key of Object.keys(legacy ?? {})) origin[key] = fields.name("rope_scaling");
    const kept = entry === null ? typeIn(own.absent ?? {}) : "default";
    for (const field of kept === "default" ? [] : DICTS) {
      if (!fields.has(field) || fields.get(field) !== null) continue;
      const text = `${fields.name(field)} is null, and its class's own ${kept} stays.`;
      this.warn("own-rescaling", 1, fields.name(field), text);
    }
    if (kept !== "default" && !DICTS.some((field) => fields.has(field))) {
      this.warn("own-rescaling", 0, name, `${name} is not given: its class's own ${kept} is taken.`);
    }
    return [{ ...found, _name: name, _from: origin, _layer: layer, _given: entry !== null, _apart: apart }, source];
  }
  /** Name what is lost where both spellings are given; return whether a base is. */
  two(fields, read, lost, joins, source, base) {
    const [one, other] = DICTS.map((field) => fields.name(field));
    const kinds = [read, lost].map(typeIn);
    let found = false;
    const fits = ([key, value]) => !has(read, key) || alike(read[key], value);
    const same = equal(...kinds) && Object.entries(lost).every(fits);
    if (!kinds.includes("default") && !same) {
      const [first, second] = kinds.map(repr);
      const text = `${one} names ${first}, ${other} ${second}: a model has one rescaling.`;
      this.warn("rescaling-of-rescaling", 2, one, text);
    } else if (joins) {
      this.warn("two-spellings", 1, other, `${one} and ${other} are both given.`);
    }
    for (const [key, own] of joins ? [] : Object.entries(lost)) {
      for (const [name, value] of isDict(own) ? Object.entries(own) : [["", own]]) {
        const where = `${key}.${name}`.replace(/\.+$/, "");
        const [text, gone] = [`${other} is not read beside ${one}; its ${where}`, where.includes("rope_theta")];
        this.unread.add(`${other}.${where}`);
        if (gone && positive(value) && !equal(value, base)) {
          const words = `${digits15(value)} is lost: the base is ${source} ${digits15(base)}.`;
          this.warn("base-lost", 2, `${other}.${where}`, `${text} ${words}`);
          found = true;
        } else {
          const fine = [null, "default", gone ? base : get(read, key)].some((one) => alike(value, one));
          this.warn("no-effect", fine ? 0 : 1, `${other}.${where}`, `${text} has no effect.`);
        }
      }
    }
    return found;
  }
  lost(fields, entry, name, base, kinds, at) {
    const apart = kinds.flatMap((one) => (equal(one.default, base) ? [] : one.theta)); // another kind of layer's
    const others = [...fields.given].filter(
      ([field, value]) => BASE.test(field) && positive(value) && !apart.includes(field),
    );
    const words = `the base is the class's default ${general(base)}.`;
    if (others.length && !others.some(([, value]) => equal(value, base))) {
      const field = fields.name(others[0][0]);
      const whose = kinds.length > 1 ? ` for ${name.split(".").at(-1)}` : "";
      this.warn("base-lost", 2, field, `${field} is not read${whose}: ${words}`);
    } else if (truthy(entry)) {
      const layers = `${name.split(".").at(-1)} layers take the class's default`;
      const taken = at === name ? words : `${layers} ${digits15(base)}.`;
      this.warn("base-lost", 1, at, `${at} has no rope_theta: ${taken}`);
    }
  }
  /** All of a part but its place in the model. */
  rotation(fields, rule, one, parameters, source) {
    const [head, headFrom] = fields.first(one.head_dim);
    if (headFrom.includes("//")) this.guessed(fields, headFrom, head);
    let [dim, widthFrom] = fields.first(one.dim);
    const odd = dim % 2 ? widthFrom : "";
    let at = fields.name(widthFrom.split(" ")[0]);
    if (Math.max(head, dim) > MOST_CHANNELS) {
      throw new Refused(`${at} must be at most ${grouped(MOST_CHANNELS)}, got ${grouped(Math.max(head, dim))}`);
    }
    const [kind, told] = this.typeOf(parameters, rule.rescalings, rule.rope);
    const partial = one.partial ?? (["default", "ntk"].includes(kind) ? null : WHOLE);
    if (partial) {
      const [fraction, words] = this.fraction(fields, partial, parameters, kind);
      if (fraction !== 1) [widthFrom, at] = [`${widthFrom} x ${words}`.replace(SUM, "($&)"), words];
      if (kind === "proportional") told.partial_rotary_factor = fraction;
      else if (partial.whole && fraction !== 1) {
        const text = `${words} must be 1 with rope_type ${repr(kind)}, for its class rotates whole heads`;
        throw new Refused(`${text}, got ${general(fraction)}`);
      } else dim = Math.trunc(dim * fraction);
    }
    const wrong = rule.uneven && dim % 2 ? "an odd number" : rule.uneven === 4 && dim % 4 ? "not a multiple of 4" : "";
    if (wrong) this.warn("width-odd", 2, at, `${at} makes ${dim} channels, ${wrong}: its class fails.`);
    const longest = rule.lengths ? fields.count("max_position_embeddings") : null;
    const asked = fields.known("head_dim", 0);
    if ((rule.needs ?? []).includes(kind) && asked === null) {
      const where = fields.name("head_dim");
      const text = `${where} must be given with rope_type ${repr(kind)}: its class fails without it.`;
      this.warn("head-width-missing", 2, where, text);
    }
    const [due, words] = fields.first(rule.foreign ?? one.dim);
    if (rule.foreign && ![due, null].some((fine) => equal(fields.get("head_dim"), fine))) {
      const wanted = `${fields.name("head_dim")} must be ${due}, as ${words}`;
      throw new Refused(`${wanted}, got ${repr(fields.get("head_dim"))}`);
    }
    const full = ORIGINAL.includes(kind) ? this.original(fields, told, rule, parameters, longest) : told;
    if (kind === "yarn" && !has(full, "factor")) {
      full.factor = new Real((longest ?? 0) / full[ORIGINAL_LENGTH]);
      const where = `${parameters._name}.factor`;
      this.warn("factor-null", 1, where, `${where} is null: the quotient of the two lengths is taken.`);
    }
    for (const [low, high] of BACKWARDS) {
      const [one, other] = [Number(full[low] ?? 0), Number(full[high] ?? 0)];
      if (!(other && one > other)) continue;
      const words = `${general(one)} is more than ${high}, ${general(other)}: transformers only warns`;
      const text = `${parameters._name}.${low} ${words}, and turns by a ramp that runs backwards`;
      throw new Refused(`${text}; there is no card of that here`);
    }
    const base = Number(parameters.rope_theta);
    if (dim % 2 && !["default", "linear"].includes(kind)) {
      throw new Refused(`${at} makes ${dim} channels, an odd number: with ${kind} there is no card here`);
    }
    const series = new Series(kind, base, full, longest);
    const [waves, sections] = fitted(parameters._name, () => arranged(one.axes, dim, parameters, series));
    if (one.axes?.mode === "interleaved") {
      const told = get(parameters, "mrope_section", one.axes.sections ?? null);
      const counts = told.map((_, axis) => waves.filter((wave) => wave[axis] !== 0).length);
      const where = `${parameters._name}.mrope_section`;
      const text = `${where} is ${repr(told)}, and the ${waves.length} pairs of a head make it ${repr(counts)}.`;
      if (!alike(told, counts)) this.warn("sections-differ", 1, where, text);
    }
    const scale = this.scale(fields, one);
    for (const [i, wave] of waves.entries()) {
      waves[i] = Array.isArray(wave) ? wave.map((own) => own * scale) : wave * scale;
    }
    const rotates = (wave) => (Array.isArray(wave) ? wave.some(Boolean) : wave !== 0);
    const rotated = waves.filter(rotates);
    const width = 2 * rotated.length;
    const seen = Boolean(one.axes) && rule.part !== "text"; // two axes share no odd number
    if (odd && (seen || width > head)) {
      const names = odd.match(NAMES);
      const told = odd.replace(NAMES, (name) => fields.get(name));
      const absent = names.filter((name) => !fields.has(name)).map((name) => fields.name(name));
      const text = `${fields.spelt(odd)}, ${told}, is an odd number of channels`;
      throw new Refused(absent.length ? `${text}; ${absent.join(" and ")} not given` : text);
    }
    if (width > head) throw new Refused(`${widthFrom} makes ${width} channels, more than a head's ${head}`);
    const place = width === head ? "all" : rotated.length === waves.length ? one.place : "elsewhere";
    const tells = fields.has("max_position_embeddings");
    if (kind !== "default") this.advise(series, full, parameters._name, tells ? longest : null);
    this.keys(fields, parameters, kind, one, rule);
    const trained = tells && !ORIGINAL.includes(kind) ? longest : null;
    return {
      head_dim: head,
      head_dim_from: one.from ?? this.told(fields, headFrom),
      width,
      width_from: one.from ?? this.told(fields, widthFrom),
      place,
      layout: this.layout(fields, one),
      direction: one.direction,
      base,
      base_from: source,
      rescaling: kind === "default" ? null : [kind, full],
      attention_factor: series.factor * head ** (one.power ?? 0),
      table_factor: series.factor,
      inv_freq: rotated,
      sections,
      trained_length: wholeOf(get(full, "original_max_position_embeddings", trained)),
      max_length: tells ? longest : null,
      dynamic: ["dynamic", "longrope"].includes(kind),
    };
  }
  /** How far a coordinate goes from one patch to the next; 1 where it counts them. */
  scale(fields, { scale }) {
    if (!scale) return 1;
    const [[by], [over, words]] = [fields.first(scale.by), fields.first(scale.over)];
    const size = words.split(" ")[0];
    if (over > 1 && !fields.has(size)) {
      const text = `${fields.name(size)} not given: frequencies are for images of ${over} patches a side.`;
      this.warn("image-size-guessed", 1, fields.name(size), text);
    }
    return (scale.times * by) / over;
  }
  layout(fields, one) {
    if (!one.flag) return one.layout;
    const value = fields.get(one.flag.field);
    return one.flag[truthy(value) || value === null ? "true" : "false"];
  }
  /** The type of rescaling, and its parameters that are told. */
  typeOf(parameters, rescalings, rope) {
    const name = parameters._name;
    const field = has(parameters, "rope_type") || !has(parameters, "type") ? "rope_type" : "type";
    const asked = get(parameters, field, has(parameters, field) ? null : "default");
    let kind = typeof asked === "string" ? get(rescalings, asked) : null;
    if (kind === null || kind === "refused") {
      const near = nearest(typeof asked === "string" ? asked : repr(asked), Object.keys(rescalings));
      const meant = near !== null && near !== asked ? ` (${hint(near)})` : "";
      const known = Object.entries(rescalings).filter(([, what]) => what !== "refused");
      const names = known.map(([type]) => type).join(", ");
      throw new Refused(`${name}.${field} must be one of ${names}, got ${repr(asked)}${meant}`);
    }
    for (const key of asked === "default" ? [] : (rope.scaled ?? [])) {
      const value = get(parameters, key);
      if (isReal(value) && typeof value !== "boolean") continue;
      throw new Refused(`${name} must have ${key}, a number, for ${field} ${repr(asked)}`);
    }
    if (kind === "unknown") {
      this.unknown(`${name}.${field}`, "with 'default'");
      kind = "default";
    }
    if (field === "rope_type" && !equal(get(parameters, "type", asked), asked)) {
      const words = `${name}.type ${repr(parameters.type)} is not read: rope_type is ${repr(asked)}.`;
      this.warn("no-effect", 1, `${name}.type`, words);
    }
    const scales = Object.keys(parameters._from).find((key) => ANY.has(key));
    if (!has(parameters, "rope_type") && !has(parameters, "type") && scales !== undefined) {
      const text = `${name} has ${scales} and no rope_type: it is read as 'default'.`;
      this.warn("type-missing", 1, name, text);
    }
    for (const key of PARAMETERS[kind]) {
      const told = key === "factor" && ["yarn", "longrope"].includes(kind); // by lengths, where it is null
      const may = told || [...ZERO, "attention_factor", "truncate"].includes(key);
      const absent = REQUIRED[kind].includes(key) && !has(parameters, key);
      if (absent || (get(parameters, key, 0) === null && !may)) {
        const same = kind === asked ? "" : `, which its class reads as ${repr(kind)}`;
        throw new Refused(`${name} must have ${key} for ${field} ${repr(asked)}${same}`);
      }
    }
    if (kind === "dynamic" && rope.alpha && truthy(get(parameters, "alpha"))) kind = "ntk";
    const told = {};
    for (const key of PARAMETERS[kind].filter((one) => one !== "truncate" || !rope.nested)) {
      let value = get(parameters, key);
      if (key === "truncate" && has(parameters, key)) value = truthy(value) ? value : false; // null, too
      if (value !== null) told[key] = value;
    }
    for (const [key, value] of Object.entries(told)) {
      const number = positive(value) || (ZERO.includes(key) && equal(value, 0));
      const [fine, wanted] = LISTS.includes(key)
        ? [Array.isArray(value) && value.every(positive), "numbers > 0"]
        : key === "truncate"
          ? [typeof value === "boolean", "true or false"]
          : [number, "a number > 0"];
      if (!fine) throw new Refused(`${name}.${key} must be ${wanted}, got ${repr(value)}`);
    }
    return [kind, told];
  }
  /** An expression of fields, or whose default it is where none of them is given. */
  told(fields, words) {
    const names = words.match(/[a-z_]\w*/g) ?? [];
    return words.includes("//") || words.includes(" x ") || names.some((name) => fields.has(name)) ? words : DEFAULT;
  }
  /** The part of a head that rotates, and the field that tells. */
  fraction(fields, rule, parameters, kind) {
    let value = get(parameters, "partial_rotary_factor");
    let words = `${parameters._name}.partial_rotary_factor`;
    if (!has(parameters, "partial_rotary_factor")) {
      [value, words] = [(kind === "default" ? null : rule.rescaled) ?? rule.default ?? 1, DEFAULT];
      for (const name of (parameters._apart ? null : rule.fields) ?? []) {
        if (name.includes(" / ")) {
          const [over, under] = name.split(" / ").map((field) => fields.value(field));
          if (!over || !under) continue;
          [value, words] = [over / under, name];
          break;
        }
        if (!fields.has(name) || (rule.whole && fields.get(name) === null)) continue;
        [value, words] = [fields.at(name, parameters._layer), fields.name(name)];
        break;
      }
    }
    if (!positive(value) || value > 1) throw new Refused(`${words} must be a number in (0, 1], got ${repr(value)}`);
    return [Number(value), words];
  }
  /** The parameters with the length in training, which a field outside overrules. */
  original(fields, told, rule, parameters, longest) {
    const [name, field] = [parameters._name, "original_max_position_embeddings"];
    const counts = (rule.rope.outside ?? true) && !rule.rope.nested;
    const value = counts ? fields.count(field) : null;
    if (counts && fields.has(field) && value === null) {
      throw new Refused(`${fields.name(field)} must be left out or a positive integer with a rescaling, got None`);
    }
    if (!has(told, field) && !ORIGINAL.includes(typeIn(parameters))) {
      const text = `${name} must have ${field} with ${repr(typeIn(parameters))}: its class fails.`;
      this.warn("original-length-missing", 2, name, text);
    }
    if (value !== null) {
      if (has(told, field) && !equal(told[field], value)) {
        const text = `${name}.${field} is not read: ${fields.name(field)} is ${grouped(value)}.`;
        this.warn("no-effect", 1, `${name}.${field}`, text);
      } else if (!has(told, field) && !fields.has(field)) {
        const text = `${name} has no ${field}: the class's default, ${grouped(value)}, is taken for it.`;
        this.warn("original-length-forgotten", 1, name, text);
      }
      return { ...told, [field]: value };
    }
    if (!has(told, field) && longest === null) {
      throw new Refused(`${name} must have ${field}, or the model max_position_embeddings`);
    }
    if (!has(told, field)) {
      const words = `${name} has no ${field}: max_position_embeddings, ${grouped(longest)}, is taken for it.`;
      this.warn("original-length-forgotten", 1, name, words);
    }
    return { [field]: longest, ...told };
  }
  guessed(fields, words, head) {
    const names = words.split(" ").filter((name) => /^[A-Za-z_]\w*$/.test(name));
    const unknown = names.filter((name) => !fields.has(name));
    if (unknown.length) {
      const named = unknown.map((name) => fields.name(name)).join(" and ");
      const text = `${named} not given: the head width ${head} is a guess.`;
      this.warn("head-width-guessed", 1, fields.name(unknown[0]), text);
      return;
    }
    const [over, under] = names.slice(0, 2).map((one) => fields.count(one));
    if (over && under && over % under) {
      const text = `${fields.spelt(words)} is no whole number: the head width ${head} is a guess.`;
      this.warn("head-width-guessed", 1, fields.name(names[0]), text);
    }
  }
  /** Warn of parameters that do nothing, or contradict each other. */
  advise({ kind, idle }, told, name, longest) {
    const [factor, original] = [get(told, "factor"), get(told, ORIGINAL_LENGTH)];
    const grows = "nothing changes up to max_position_embeddings; beyond it frequencies do.";
    const words = { dynamic: equal(factor, 1) ? grows : "", longrope: "" }[kind] ?? `${kind} changes nothing.`;
    if (idle && words) {
      this.warn("factor-one", 1, `${name}.factor`, `${name}.factor is ${general(factor ?? 1)}: ${words}`);
    } else if (factor !== null && Number(factor) < 1) {
      const text = `${name}.factor ${general(factor)} is less than 1: ${kind} makes the context shorter.`;
      this.warn("factor-below-one", 1, `${name}.factor`, text);
    }
    const lone = ["mscale", "mscale_all_dim"].filter((key) => truthy(told[key]));
    if (lone.length && (has(told, "attention_factor") || lone.length < 2)) {
      const other = lone[0] === "mscale" ? "mscale_all_dim" : "mscale";
      const why = has(told, "attention_factor") ? "with attention_factor" : `without ${other}`;
      const text = `${name}.${lone[0]} ${IDLE} ${why}.`;
      this.warn("no-effect", 1, `${name}.${lone[0]}`, text);
    }
    if (kind === "llama3" && equal(told.low_freq_factor, told.high_freq_factor)) {
      const text = `${name}.high_freq_factor is low_freq_factor: the rule is a step without a ramp.`;
      this.warn("no-ramp", 0, `${name}.high_freq_factor`, text);
    }
    if (!longest || original === null) return;
    const field = `${name}.${ORIGINAL_LENGTH}`;
    const ratio = longest / Number(original);
    if (kind === "yarn" && !equal(factor, ratio) && ratio !== 1) {
      const text = `${name}.factor is ${general(factor)}, and counts; max_position_embeddings / original`;
      this.warn("lengths-differ", 1, field, `${text} is ${general(ratio)}.`);
    } else if (ratio < 1 || (kind === "llama3" && ratio === 1)) {
      const text = `${field} ${repr(original)} is not less than max_position_embeddings ${longest}.`;
      this.warn("lengths-differ", 1, field, text);
    }
  }
  /** Note keys of rope_parameters that are read and those that are not. */
  keys(fields, parameters, kind, one, { rope, rescalings }) {
    const keeps = rope.keeps ?? [];
    const wants = [...(rope.wants ?? []), ...(kind === "default" ? (rope.wants_plain ?? []) : [])];
    const used = ["rope_theta", "rope_type", "type", ...PARAMETERS[kind], ...keeps, ...wants].filter(
      (key) => key !== "truncate" || !rope.nested,
    );
    const old = parameters._name === fields.name(DICTS[0]) ? (rope.old ?? []) : [];
    for (const key of [...(parameters._given ? wants : []), ...old]) {
      const lacks = !has(parameters._from, key) || parameters[key] === null;
      if (!lacks || PARAMETERS[kind].includes(key)) continue;
      const text = `${parameters._name} must have ${key}: its class fails without it.`;
      this.warn("key-missing", 2, parameters._name, text);
    }
    if (one.partial !== null || kind !== "default") used.push("partial_rotary_factor");
    if (SECTIONED.includes(one.axes?.mode)) used.push("mrope_section");
    if (get(rescalings, typeIn(parameters)) === "unknown") {
      used.push(...Object.keys(parameters._from));
      fields.get(ORIGINAL_LENGTH);
    }
    const known = new Set([...used, ...ANY]);
    for (const [key, name] of Object.entries(parameters._from)) {
      const [where, value] = [`${name}.${key}`, parameters[key]];
      let fits = null;
      if (key === "beta_fast" && equal(value, 32))
        fits = true; // as where it is not given
      else if (["mrope_interleaved", "interleaved"].includes(key))
        fits = value === null || equal(value, one.axes?.mode === "interleaved");
      else if (key === "truncate" && rope.nested) fits = value === null || equal(value, true);
      if (used.includes(key) && fits !== false) fields.read.add(where);
      else if (isDict(value) || this.kinds.has(key)) {
        const text = `${where} is not read, or fails: one rotation for all these layers is due.`;
        this.warn("no-effect", 2, where, text);
      } else this.unused(where, key, value, known, fits);
    }
  }
  /** Note a field without effect, and the name that was perhaps meant. */
  unused(where, key, value, known, fits = null, more = "") {
    this.unread.add(where);
    const near = this.near(key, known);
    if (near !== null) {
      this.warn("spelling", 2, where, `${where} is no field that is read: ${hint(near)}`);
      return;
    }
    const none = (Array.isArray(value) || isDict(value)) && !truthy(value);
    const neutral = [null, "rope", "rotary", "default"].includes(value) || (value !== true && equal(value, 1));
    const fine = fits ?? (none || neutral || value === /^(use_ro|rotary($|_emb))/.test(key));
    this.warn("no-effect", fine ? 0 : 1, where, `${where} ${IDLE}${more}.`);
  }
  /** The known name of which a name is the singular or plural, or, if no class has it, a misspelling. */
  near(key, known) {
    const other = key.endsWith("s") ? key.slice(0, -1) : `${key}s`;
    if (!known.has(key) && known.has(other)) return other;
    if (known.has(key) || this.names.has(key)) return null;
    if (known.has(snake(key))) return snake(key);
    const found = nearest(key, [...known], 0.84);
    return found !== null && Math.abs(found.length - key.length) <= 2 ? found : null;
  }
  /** Note fields about rotation that were given and not read; where it is off, no more. */
  silent(fields, rule, made, off) {
    const known = new Set([...(rule.read ?? []), ...Object.keys(fields.defaults), ...Object.keys(rule.aliases ?? {})]);
    const every = ["types", "switch"].map((name) => rule.layers?.[name]?.every);
    const listed = rule.layers?.types?.field ?? "layer_types";
    const hidden = (field) => field.startsWith("_") && (!every.includes(field.slice(1)) || fields.has(listed));
    const about = rule.rotations || made.length ? ABOUT : TURNS;
    const rope = rule.rope ?? { dict: false, kinds: {} };
    const scales = rope.replaces || Object.values(rope.kinds).some(({ scaling }) => scaling);
    const here = {
      base: made.map((one) => one.base),
      fraction: made.map((one) => one.width / one.head_dim),
      length: made.flatMap((one) => [one.trained_length, one.max_length]).filter((n) => n !== null && Number(n) !== 0),
      width: made.flatMap((one) => [one.head_dim, one.width]),
    };
    for (const [field, value] of fields.given) {
      const where = fields.name(field);
      if (DICTS.includes(field)) {
        const fine = made.length && rope.dict && (scales || field === "rope_parameters");
        const plain = isDict(value) && typeIn(value) === "default";
        const more = plain ? "" : ", and its class may refuse the file";
        if (!truthy(value) || fine) continue;
        this.unused(where, field, value, new Set([field]), off || null, more);
        this.read.delete(where); // it was only looked for
      } else if (fields.read.has(where) || hidden(field) || has(rule.parts, field)) {
        // read, or a part
      } else if (!made.length && !off && typeof value === "string" && /^(rope|rotary|theta)$/i.test(value)) {
        this.unused(where, field, value, known, false); // nothing turns, and it is asked to
      } else if (
        (every.includes(field.replace(/^_+/, "")) && isWhole(value)) ||
        about.test(snake(field)) ||
        (field === "type" && made.length && (value === "su" || has(PARAMETERS, value))) ||
        this.near(field, known) !== null
      ) {
        const of = Object.keys(QUANTITIES).find((quantity) => QUANTITIES[quantity].test(snake(field)));
        const same = of ? here[of] : [];
        const number = isReal(value) && typeof value !== "boolean";
        let fits = same.length && number ? same.some((one) => equal(one, value)) : off || null;
        if (!made.length && QUANTITIES.width.test(snake(field))) fits = true;
        if (made.length && field.includes("interleave")) {
          fits = equal(
            value,
            made.some((one) => one.layout.includes("interleaved")),
          );
        }
        if (fields.has(listed) && /pattern|interval|every/.test(field)) fits = true; // layers are listed beside it
        this.unused(where, field, value, known, fits);
      } else if (isDict(value)) {
        const none = off || get(value, "rope") === false || null; // as in MPT's
        const turns = (name) => ["rope_theta", ...DICTS].includes(name) || (!made.length && TURNS.test(name));
        for (const key of Object.keys(value).filter((name) => truthy(get(value, name)) && turns(name))) {
          this.unused(`${where}.${key}`, key, value[key], new Set([key]), none);
        }
      }
    }
  }
}

/** The dotted names of fields, and of those in dicts but for lists of labels. */
const leaves = (config, path = "") =>
  Object.entries(config).flatMap(([name, value]) => {
    const named = isDict(value) && Object.keys(value).every((own) => /^[A-Za-z_][A-Za-z_0-9]*$/.test(own));
    return named ? leaves(value, at(path, name)) : [at(path, name)];
  });

const plainLayer = (layer) => layer.replace(/^0+(?=.)/, "");

/** The fields of single layers of these, where there are any. */
function entriesOf(given, layers) {
  const told = new Map(Object.entries(given).map(([layer, own]) => [plainLayer(layer), own]));
  return layers.filter((layer) => told.has(String(layer))).map((layer) => told.get(String(layer)));
}

/** Whether fields of single layers repeat the widths that their heads have. */
function asMade(given, fields, rule, made) {
  const wide = new Map(made.flatMap((one) => unrolled(one.layers).map((n) => [String(n), one.head_dim])));
  const [count] = fields.first(rule.layers.count);
  const quotient = made.some(
    (one) => `${one.head_dim_from}${one.width_from}`.includes("//") || one.rescaling?.[0] === "yarn",
  );
  const whole = fields.known("head_dim");
  const fine = whole === null ? [] : ["head_dim"]; // else its class fails
  if (!quotient) fine.push("hidden_size", "num_attention_heads"); // make no width where one is given
  const fits = ([layer, own]) => {
    const n = plainLayer(layer);
    if (!isDict(own) || !/^\d+$/.test(n) || Number(n) >= count) return false;
    if (has(own, "head_dim") && !equal(own.head_dim, wide.get(n) ?? null)) return false;
    return Object.keys(own).every((name) => fine.includes(name) || !(rule.read.includes(name) || ABOUT.test(name)));
  };
  return isDict(given) && Object.entries(given).every(fits);
}

/** What a function returns; that the parameters named so do not fit is said of them. */
function fitted(name, make) {
  try {
    return make();
  } catch (problem) {
    throw problem instanceof Unfit ? new Refused(`${name} does not fit: ${problem.message}`) : problem;
  }
}
