// What the search of the site knows of words: how a text is cut, how places are ranked, what a result shows.
// The build makes the index with it (index.mjs), and the page asks it (page.js).
import MiniSearch from "minisearch";
import { stemmer } from "stemmer";

// A name in code is one word and its parts are, too: rope_scaling, llama.cpp, --hf-overrides. 10,000 is 10000.
const WORD = /[\p{L}\p{N}]+(?:[._\-–'’][\p{L}\p{N}]+)*/gu;
const NUMBER_OR_WORD = /[\p{L}\p{N}]+(?:[._\-–'’,][\p{L}\p{N}]+)*/gu;
const JOINT = /[_\-–'’]|\.(?!\d)/;
const plain = (text) => text.toLowerCase().replace(/(?<=\d)[,_ ](?=\d{3}(?!\d))/g, "");
const cut = (text) => plain(text).match(WORD) ?? [];
const parts = (word) => word.split(JOINT).filter(Boolean);
// quantised is quantized
const stem = (word) => (/^[a-z]{4,}$/.test(word) ? stemmer(word.replace(/is(?=(e|ed|es|ing|ations?)$)/, "iz")) : word);
const unique = (words) => [...new Set(words)];
const tokens = (text) => cut(text).flatMap((word) => unique([word, ...parts(word)]));
const forms = (word) => unique([word, stem(word)]);

// what a question is asked with, and no place is about
const ASKING = new Set(
  "a an and are can do does for how i in is it my of or should the to what when which why with".split(" "),
);

const SETTINGS = { fields: ["title", "text"], tokenize: tokens, processTerm: forms };
const FIELDS = { title: 4, text: 1 };
// of two places that say the same, the one that was written as an answer
const KINDS = { question: 1.6, word: 1.6, section: 1, page: 0.8, family: 1, api: 0.6, reference: 0.4 };

/** The index of places with `title` and `text`, as JSON; they are numbered in their order. */
export function build(records) {
  const index = new MiniSearch(SETTINGS);
  index.addAll(records.map((record, id) => ({ ...record, id })));
  return JSON.stringify(index);
}

export const load = (index) => MiniSearch.loadJS(index, SETTINGS);

/** For each record with one of the forms of a word, its score; the last word may go on. */
function scores(index, word, unfinished) {
  const group = (text) => ({ combineWith: "OR", queries: forms(text) });
  const options = { boost: FIELDS, tokenize: (text) => [text], processTerm: (text) => text };
  const pieces = parts(word);
  const whole = [group(word)];
  if (pieces.length > 1) whole.push({ combineWith: "AND", queries: pieces.map(group) });
  if (unfinished && word.length > 1) whole.push({ queries: [word], prefix: true, weights: { prefix: 0.3, fuzzy: 0 } });
  const search = (query) => index.search({ combineWith: "OR", queries: query, ...options });
  let found = search(whole);
  if (!found.length && word.length > 4) found = search([{ queries: [word], prefix: true, fuzzy: 0.2 }]);
  return new Map(found.map(({ id, score }) => [id, score]));
}

/** The numbers of the records that answer a query, best first: more of its words count more than often. */
export function find(index, query, kinds) {
  const said = cut(query);
  const asked = said.filter((word) => !ASKING.has(word));
  const words = asked.length ? asked : said;
  const total = new Map();
  for (const [place, word] of words.entries()) {
    for (const [id, score] of scores(index, word, place === words.length - 1)) {
      const sum = total.get(id) ?? { score: 0, words: 0 };
      total.set(id, { score: sum.score + score, words: sum.words + 1 });
    }
  }
  const value = ([id, { score, words: some }]) => score * (some / words.length) ** 2 * KINDS[kinds[id]];
  const ranked = [...total].map((entry) => [entry[0], value(entry)]).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const most = Math.max(0, ...[...total.values()].map((sum) => sum.words));
  return ranked.map(([id]) => id).filter((id) => total.get(id).words > most / 2);
}

/** A piece of a text around the words of a query, as [piece, is one of the words] in order. */
export function excerpt(text, query, length = 150) {
  const all = [...text.matchAll(NUMBER_OR_WORD)];
  const places = (words) => {
    const wanted = words.flatMap(forms);
    const is = (word) => [word, ...parts(word)].some((part) => forms(part).some((form) => wanted.includes(form)));
    return all.filter(([word]) => is(plain(word)));
  };
  const words = cut(query).filter((word) => !ASKING.has(word));
  const whole = places(words);
  const hits = whole.length ? whole : places(words.flatMap(parts));
  const inside = (from) =>
    new Set(hits.filter((hit) => hit.index >= from && hit.index < from + length).map(([w]) => plain(w))).size;
  const best = hits.reduce(
    (most, hit) => (inside(hit.index) > inside(most.index) ? hit : most),
    hits[0] ?? { index: 0 },
  );
  let start = Math.max(0, best.index - 40);
  if (start) start = text.indexOf(" ", start) + 1;
  const stop = text.length <= start + length + 30 ? text.length : text.lastIndexOf(" ", start + length);
  const pieces = start ? [["… ", false]] : [];
  let at = start;
  for (const hit of hits) {
    const end = hit.index + hit[0].length;
    if (hit.index < at || end > stop) continue;
    pieces.push([text.slice(at, hit.index), false], [hit[0], true]);
    at = end;
  }
  pieces.push([text.slice(at, stop) + (stop < text.length ? " …" : ""), false]);
  return pieces.filter(([piece]) => piece);
}
