// Trained models: every seed's score by length, by distance and by aid; the hands that a head uses.

import { wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";
import { compare, spread } from "./seeds.js";
import { aidsHeight, drawAids, drawHead, drawScores, rangeOf } from "./trained_models_charts.js";

/** What was done before the long test to at least one of these entries, in groups. */
export const rowsOf = (done, entries) =>
  done
    .map((group) => group.filter((words) => entries.some((entry) => entry?.aids[words])))
    .filter((group) => group.length);

const top = (values) => values.indexOf(Math.max(...values));

/** The task that is shown and the one or two encodings, `entry` undefined where one was not tried. */
function shownOf(data, traits) {
  const task = data.tasks.find(({ words }) => words === traits.task);
  const names = traits.against === traits.encoding ? [traits.encoding] : [traits.encoding, traits.against];
  return { task, shown: names.map((name, i) => ({ name, second: i > 0, entry: task.entries[name] })) };
}

/** Everything that the caption says, as numbers. */
export function reading(data, traits) {
  const { task, shown } = shownOf(data, traits);
  const there = shown.filter(({ entry }) => entry);
  const times = Number(traits.times);
  const at = data.times.indexOf(times);
  const less = task.unit === "bits";
  const both = (values) => (there.length === 2 ? compare(...there.map(values), less) : null);
  const aided = there
    .filter(({ entry }) => entry.aids[traits.aid])
    .map(({ name, entry }) => {
      const before = entry.scores[data.times.indexOf(data.aided_times)];
      const after = entry.aids[traits.aid];
      return { name, before: spread(before).median, ...spread(after), change: compare(after, before, less) };
    });
  const medians = (what) => there.map(({ entry }) => (entry[what][at] ? spread(entry[what][at]).median : null));
  const first = there[0]?.entry;
  return {
    task: task.words,
    tokens: times * task.window,
    times,
    less,
    missing: shown.filter(({ name, entry }) => !entry && name !== "nothing").map(({ name }) => name),
    scores: there.map(({ name, entry }) => ({ name, ...spread(entry.scores[at]) })),
    difference: both(({ entry }) => entry.scores[at]),
    bfloat16: medians("bfloat16"),
    stored: medians("stored"),
    twice: there.filter(({ entry }) => entry.twice).map(({ name, entry }) => ({ name, values: entry.twice[at] })),
    aidedTimes: data.aided_times,
    aid: traits.aid,
    aided,
    aidedDifference: aided.length === 2 ? both(({ entry }) => entry.aids[traits.aid]) : null,
    head: first ? headOf(first) : null,
    m: traits.m,
    attention: first?.attention[traits.m] ?? null,
  };
}

function headOf({ layer, usage, attention, inv_freq: invFreq }) {
  const pair = top(usage);
  return { layer, pair, share: usage[pair], distance: top(attention), invFreq };
}

/** The caption, from a reading. */
export function words(now) {
  const three = (value) => num(value, 3);
  const between = ({ low, high }) => `(${three(low)} to ${three(high)})`;
  const parts = [];
  if (now.scores.length) {
    const where = now.times === 1 ? "At the training length" : `At ${now.times} windows`;
    const said = now.scores.map((one) => `**${one.name}** **${three(one.median)}** ${between(one)}`);
    const unit = now.less ? "bits a byte" : "accuracy";
    parts.push(`${where}, ${num(now.tokens, 0)} tokens, ${unit} in the median: ${said.join(", ")}.`);
  }
  for (const name of now.missing) {
    const seen = name.includes("no causal mask") && now.less ? ": without a mask the next byte is in plain sight" : "";
    parts.push(`**${name}** was not tried on this task${seen}.`);
  }
  if (now.difference) {
    const [first, second] = now.scores.map(({ name }) => name);
    parts.push(
      `Seed by seed, **${first}** against ${second}: **${now.difference.verdict}**; ` +
        `the median difference is **${three(now.difference.median)}** ${between(now.difference)}, ` +
        `p = ${three(now.difference.p)} (two-sided; one of many, p before any correction).`,
    );
  }
  if (now.scores.length && now.times <= 2) {
    const [all, some] = [now.bfloat16, now.stored].map((values) => values.map(three).join(" and "));
    parts.push(`In bfloat16 ${all}; with only q and k stored so, ${some}.`);
  }
  if (now.twice.length) {
    const said = now.twice.map(({ name, values }) => `${values.map(three).join(" and ")} (${name})`);
    parts.push(`After twice the steps, two other seeds: ${said.join(", ")}.`);
  }
  if (now.aided.length) {
    const said = now.aided.map(
      ({ name, before, median, change }) =>
        `**${name}** from ${three(before)} to **${three(median)}** (${change.verdict})`,
    );
    parts.push(`At ${now.aidedTimes} windows, “${now.aid}” takes ${said.join(", and ")}.`);
  }
  if (now.aidedDifference) {
    parts.push(`So aided, the first against the second: **${now.aidedDifference.verdict}**.`);
  }
  if (now.head) parts.push(headWords(now));
  return parts.join(" ");
}

function headWords({ head, m, attention }) {
  const { layer, pair, share, distance, invFreq } = head;
  const turn = TURN / invFreq[pair];
  const speed = invFreq[pair] === 0 ? "which rests" : `which turns once in ${num(turn, turn < 10 ? 1 : 0)} tokens`;
  const rests = invFreq.every((theta) => theta === 0);
  const hands = rests ? "; none of its pairs turns with the distance, so the hands rest" : `, ${speed}`;
  const seen =
    attention === null ? "" : ` At distance **${m}** it has **${num(100 * attention, 1)}%** of its attention.`;
  return (
    `The head shown, in layer ${layer + 1}, looks most at distance **${distance}** and ` +
    `uses pair **${pair}** most (${num(100 * share, 0)}%)${hands}.${seen}`
  );
}

const CHART =
  "Every seed's score against the length of the text for the chosen encodings, with median and interval; for two " +
  "tasks also against the distance of the answer";
const INSIDE =
  "One trained head: its hands on a dial, sized by how much the head uses each pair, and its attention by distance";
export const NOTICE =
  "A point is one of eight seeds; the bar runs from the second smallest to the second largest (an interval of 93% " +
  "for the median, which is the stroke). The first encoding has full points, the second rings. Triangles: two " +
  "other seeds with twice the steps. At one and two windows × is the median in bfloat16, + with only q and k " +
  "stored so. On the dial each pair has its ring, fast ones outside; a larger disc is a pair that the head uses " +
  "more.";

export default figure((fig) => {
  const data = fig.model.get("data");
  const groupsNow = () =>
    rowsOf(
      data.done,
      shownOf(data, fig.traits).shown.map(({ entry }) => entry),
    );
  const byDistance = () => Object.values(shownOf(data, fig.traits).task.entries).some(({ bins }) => bins);
  const keep = (m) => clamp(m, 0, 64);
  let field = null; // the axes of the attention, for the pointer
  let bands = []; // the rows of the aids, for the pointer

  const chart = fig.canvas({ label: CHART, height: (width) => (wide(width) || !byDistance() ? 306 : 572) });
  const strip = fig.canvas({
    label: `The same at ${data.aided_times} windows after each thing that was done before the test, for both encodings`,
    help: "Point at a row, or focus the rows and use the up and down arrow keys: the caption reads it.",
    height: (width) => aidsHeight(width, groupsNow()),
    point({ y }) {
      const row = bands.find(({ words, from, to }) => words && from <= y && y < to);
      if (row) fig.set({ aid: row.words });
    },
    keys({ dx, dy }) {
      const rows = groupsNow().flat();
      if (rows.length) fig.set({ aid: rows[clamp(rows.indexOf(fig.traits.aid) + (dy || dx), 0, rows.length - 1)] });
    },
  });
  const inside = fig.canvas({
    label: INSIDE,
    help: "Point at the attention, or focus it and use the left and right arrow keys, to turn the hands to a distance.",
    height: (width) => (wide(width) ? 304 : 512),
    point({ x, y }) {
      if (field && y > field.box.y0 - 16) fig.set({ m: keep(Math.round(field.invX(x))) });
    },
    keys: ({ dx }) => fig.set({ m: keep(fig.traits.m + dx) }),
  });

  fig.draw(() => {
    const { task, shown } = shownOf(data, fig.traits);
    const { accent, warm } = fig.colors;
    const there = shown.filter(({ entry }) => entry).map((one) => ({ ...one, color: one.second ? warm : accent }));
    const range = rangeOf(task, there);
    const now = reading(data, fig.traits);
    const { times, difference, aid } = now;
    drawScores(chart, data, { task, there, times, range, distances: byDistance(), difference });
    bands = drawAids(strip, data, { task, there, groups: groupsNow(), aid, range });
    field = drawHead(inside, there, now.m);
    fig.say(words(now));
    const { encoding, against } = fig.traits;
    const scoresOf = (name) => now.scores.find((one) => one.name === name) ?? null;
    const scores = {
      encodingScores: scoresOf(encoding),
      againstScores: against === encoding ? null : scoresOf(against),
    };
    fig.root.dataset.values = JSON.stringify({ ...now, encoding, against, ...scores });
  });

  fig.showMe(async () => {
    const [copy, find, induction] = data.tasks.map(({ words }) => words);
    const scenes = [
      [{ task: copy, encoding: "the proposal, half a turn", against: "RoPE", times: "1", m: 7 }, 3000],
      [{ encoding: "one pair turns, fifteen rest" }, 3000],
      [{ task: find, encoding: "no encoding", times: "8" }, 3000],
      [{ task: induction, encoding: "RoPE", against: "the proposal, half a turn", times: "4", aid: "PI", m: 1 }, 3000],
      [{ aid: "by parts, knees 4 and 1" }, 0],
    ];
    for (const [values, ms] of scenes) {
      fig.set(values);
      const { canvas } = values.aid ? strip : chart; // the figure is taller than a screen
      canvas.scrollIntoView({ block: "center", behavior: fig.reducedMotion ? "auto" : "smooth" });
      await fig.pause(ms);
    }
  });
  fig.notice(NOTICE);
});
