// One trained head: its attention by distance, how much it uses each pair, and their angles on a dial.
import { axes, disc, line, text, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, percent, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { shortWay } from "./rope.js";

const LAST = 32; // the largest distance of the record, as in trained_head.py
const SHARP = 0.1; // the attention that singles a distance out
const top = (values) => values.indexOf(Math.max(...values));

/** Everything that is said of the head of an encoding on a task; `head` is null where none was trained. */
export function reading(data, { task, encoding, m }) {
  const head = data.tasks.find(({ name }) => name === task).entries[encoding] ?? null;
  if (!head) return { task, encoding, m, head };
  const { layer, inv_freq: theta, usage, attention } = head;
  const [distance, pair] = [top(attention), top(usage)];
  return {
    task,
    encoding,
    m,
    head: { layer, distance, peak: attention[distance], pair, share: usage[pair], theta: theta[pair] },
    even: 1 / usage.length,
    turns: theta.some((one) => one > 0),
    attention: attention[m],
  };
}

/** A part of the attention: recorded as 1, it is a little less. */
const part = (attention) => (attention === 1 ? "over 99.9%" : percent(attention, 1));

/** What is said, from a reading: the answer, and after a line's end the numbers. */
export function words({ task, encoding, m, head, even, turns, attention }) {
  if (!head) return `**${encoding}** was not tried on ${task}.`;
  const { layer, distance, peak, pair, share, theta } = head;
  const looks =
    peak < SHARP
      ? `looks at no distance in particular (at most **${part(peak)}**, at distance ${distance})`
      : `looks most at distance **${distance}**, with **${part(peak)}** of its attention`;
  const uses =
    share < 2 * even
      ? `uses no pair in particular (at most ${percent(share)}, pair ${pair})`
      : `uses pair **${pair}** most, **${percent(share)}**`;
  const tokens = TURN / theta;
  const how = theta > 0 ? `turns once in ${num(tokens, tokens < 10 ? 1 : 0)} tokens` : "rests";
  const rotation = turns ? `Pair ${pair} ${how}` : "None of its pairs turns with the distance";
  return (
    `This head ${looks}, and ${uses}.\n` +
    `${encoding}, ${task}, seed 0, layer ${layer + 1}, the sharper one. ${rotation}. ` +
    `Distance **${m}** gets **${part(attention)}** of the attention.`
  );
}

const LABEL =
  "One trained head: its attention by distance, the share of each pair in what it uses, and its hands on a dial at " +
  "the chosen distance";
const NOTICE =
  "A share is the mean length of q's part in a pair, times that of k's. On the dial fast pairs have the outer rings, " +
  "and a larger disc is a pair that the head uses more.";

/** Where the three pictures lie. */
const places = (width) =>
  wide(width)
    ? {
        height: 304,
        dial: { x: 122, y: 166, radius: 112, title: 20 },
        attention: { left: 298, top: 28, right: 8, bottom: 176 },
        usage: { left: 298, top: 198, right: 8, bottom: 26 },
      }
    : {
        height: 336,
        dial: { x: 78, y: 260, radius: 74, title: 168 },
        attention: { left: 42, top: 28, right: 8, bottom: 212 },
        usage: { left: 206, top: 184, right: 8, bottom: 26 },
      };

export default figure((fig) => {
  const data = fig.model.get("data");
  let field = null; // the axes of the attention, for the pointer
  const keep = (m) => clamp(m, 0, LAST);
  const plot = fig.canvas({
    label: LABEL,
    help: "Point at a distance, or use the arrow keys ← →.",
    height: (width) => places(width).height,
    point({ x, y }) {
      if (field && x > field.box.x0 - 8 && y > field.box.y0 - 16 && y < field.box.y1 + 30) {
        fig.set({ m: keep(Math.round(field.invX(x))) });
      }
    },
    keys: ({ dx }) => fig.set({ m: keep(fig.traits.m + dx) }),
  });

  fig.draw(() => {
    const { task, encoding, m } = fig.traits;
    const { width, height } = plot.clear();
    const head = data.tasks.find(({ name }) => name === task).entries[encoding];
    field = null;
    if (head) {
      const { dial, attention, usage } = places(width);
      field = drawAttention(plot, head, m, attention);
      drawUsage(plot, head, usage);
      drawDial(plot, head, m, dial);
    } else {
      text(plot, "not tried", width / 2, height / 2, { align: "center", size: 15 });
    }
    const now = reading(data, { task, encoding, m });
    fig.say(words(now));
    fig.root.dataset.values = JSON.stringify(now);
  });

  fig.showMe(async () => {
    fig.set({ task: "copy", encoding: "RoPE", m: 0 });
    await fig.glide({ m: 7 }, 2000);
    await fig.pause(1500);
    await fig.glide({ m: 28 }, 2000);
    fig.set({ encoding: "the proposal, half a turn", m: 7 });
    await fig.pause(2500);
    fig.set({ task: "induction", encoding: "RoPE", m: 1 });
  });
  fig.notice(NOTICE);
});

// the axes are those of all heads: a head that looks everywhere has low bars
const WHOLE = { y: [0, 1], yTicks: [0, 0.5, 1], yFormat: (share) => percent(share) };

function drawAttention(plot, { attention }, m, box) {
  const { ctx, colors } = plot;
  const at = axes(plot, {
    x: [-0.6, LAST + 0.6],
    ...WHOLE,
    xTicks: [0, 7, 14, 21, 28],
    xLabel: "distance (tokens)",
    box,
  });
  text(plot, "attention", at.box.x0, box.top - 14, { color: colors.ink });
  const wide = (at.x(1) - at.x(0)) * 0.76;
  attention.forEach((share, distance) => {
    ctx.fillStyle = distance === m ? colors.accent : colors.muted;
    ctx.fillRect(at.x(distance) - wide / 2, at.y(share), wide, at.box.y1 - at.y(share));
  });
  disc(plot, at.x(m), at.box.y1, 4, colors.accent);
  return at;
}

function drawUsage(plot, { usage }, box) {
  const pairs = usage.length;
  const at = axes(plot, { x: [-0.6, pairs - 0.4], ...WHOLE, xTicks: [], box });
  text(plot, "share of |q||k|", at.box.x0, box.top - 14, { color: plot.colors.ink });
  const wide = (at.x(1) - at.x(0)) * 0.76;
  usage.forEach((share, pair) => {
    plot.ctx.fillStyle = pairColor(pair, pairs);
    plot.ctx.fillRect(at.x(pair) - wide / 2, at.y(share), wide, at.box.y1 - at.y(share));
  });
  text(plot, "fast pairs", at.box.x0, at.box.y1 + 13, { size: 11.5 });
  text(plot, "slow", at.box.x1, at.box.y1 + 13, { size: 11.5, align: "right" });
}

function drawDial(plot, { usage, inv_freq: theta }, m, { x: cx, y: cy, radius, title }) {
  const { ctx, colors } = plot;
  const pairs = usage.length;
  const inner = radius * 0.16;
  const gap = (radius - 12 - inner) / (pairs - 1);
  const most = Math.max(...usage);
  text(plot, `hands after ${num(m, 0)} token${m === 1 ? "" : "s"}`, cx, title, { align: "center", color: colors.ink });
  ctx.save();
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(cx, cy, radius - 2, 0, TURN);
  ctx.stroke();
  const dials = usage.map((share, i) => ({ i, share, angle: m * theta[i], ring: radius - 12 - i * gap }));
  for (const { i, share, angle, ring } of dials) {
    const way = shortWay(angle);
    ctx.beginPath();
    ctx.arc(cx, cy, ring, 0, -way, way > 0);
    ctx.lineWidth = 1 + 3 * (share / most);
    ctx.strokeStyle = pairColor(i, pairs);
    ctx.globalAlpha = 0.5;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 1.25;
  line(ctx, cx + inner - 6, cy, cx + radius - 2, cy);
  for (const { i, share, angle, ring } of dials) {
    const size = 1.8 + (radius / 15) * Math.sqrt(share / most);
    disc(plot, cx + ring * Math.cos(angle), cy - ring * Math.sin(angle), size, pairColor(i, pairs));
  }
  ctx.restore();
}
