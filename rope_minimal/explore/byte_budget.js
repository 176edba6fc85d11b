// One way of writing the rotation as blocks of memory read and written, and the time that follows.
import { text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { num, short } from "./kit/numbers.js";

const BYTES = { float32: 4, bfloat16: 2 };
const RECORDED = "recorded CPU"; // as in byte_budget.py
// forms that "Show me" walks through, and how long each stays, in milliseconds
const TOUR = [
  ["rotate_half (textbook, Hugging Face)", 1600],
  ["a product, two addcmul", 1300],
  ["one complex product (Meta)", 1600],
  ["one kernel by hand, in Triton", 1600],
];

/** Bytes of x: its numbers times the size of one. */
export function bytesOf(shape, dtype) {
  return shape.reduce((product, size) => product * size, 1) * BYTES[dtype];
}

/** Bytes a second that a copy reached: in the case of this shape and type, or the largest of this type. */
export function copyRate(data, shape, dtype) {
  const cases = data.cases.filter((each) => each.dtype === dtype);
  const size = (each) => bytesOf(each.shape, dtype);
  const own = cases.find((each) => String(each.shape) === String(shape));
  const used = own ?? cases.sort((a, b) => size(b) - size(a))[0];
  return used ? (2 * size(used)) / (used.floor_us * 1e-6) : null;
}

/**
 * Everything the figure says about one way of writing on one machine. Times are in microseconds;
 * null is a time that nobody measured, or that nothing measured allows to predict.
 */
export function budget(data, { shape, dtype, form, machine }) {
  const size = data.shapes[shape];
  const bytes = bytesOf(size, dtype);
  const steps = data.forms[form][dtype];
  const passes = steps.reduce((sum, [, read, written]) => sum + read + written, 0);
  const recorded = machine === RECORDED;
  const rate = recorded ? copyRate(data, size, dtype) : data.rate;
  const time = (count) => (rate ? (count * bytes * 1e6) / rate : null);
  const own = data.cases.find((each) => each.dtype === dtype && String(each.shape) === String(size));
  const measured = recorded ? (own?.us[form] ?? null) : null;
  const copies = measured === null ? null : own.ratio[form]; // taken round by round, not of the medians
  return { bytes, steps, passes, rate, floor: time(2), predicted: time(passes), measured, copies };
}

/** The largest count of blocks in a row, over all forms and types: one scale for all pictures. */
export function widest(data) {
  const rows = Object.values(data.forms).flatMap((form) => Object.values(form).flat());
  return Math.max(3, ...rows.map(([, read, written]) => read + written));
}

/** Microseconds as people say them. */
export function duration(us) {
  if (us === null) return "not measured yet";
  if (us >= 1000) return `${num(us / 1000, us < 10000 ? 2 : 1)} ms`;
  return `${num(us, us < 10 ? 2 : us < 100 ? 1 : 0)} µs`;
}

/** A size as people say it. */
export function size(bytes) {
  const [unit, name] = bytes >= 2 ** 20 ? [2 ** 20, "MiB"] : [2 ** 10, "KiB"];
  return `${num(bytes / unit, 0)} ${name}`;
}

/** The caption: what `budget` found for a form in a number type on a machine. */
export function words(data, { form, dtype, machine }, now) {
  const whence =
    machine === RECORDED
      ? `measured: ${data.machine}`
      : `at the data sheet's peak of ${num(now.rate / 1e9, 0)} GB/s, an assumption`;
  const copy =
    now.rate === null ? "No copy was measured here." : `A copy takes **${duration(now.floor)}** (${whence}).`;
  const predicted = now.predicted === null ? "nothing" : duration(now.predicted);
  const found =
    now.measured === null
      ? "**Not measured yet.**"
      : `Measured: **${duration(now.measured)}**, **${num(now.copies, 1)}** copies of the same rounds.`;
  const count = now.steps.length;
  return (
    `**${form}**, ${dtype}: **${count}** ${count === 1 ? "operator" : "operators"}, ` +
    `**${short(now.passes)}** passes of N = ${size(now.bytes)}, together **${size(now.passes * now.bytes)}**. ` +
    `${copy} Predicted: **${predicted}**, **${short(now.passes / 2)}** copies. ${found}`
  );
}

const LABEL =
  "The operators of one way of writing the rotation, one row each, as blocks of memory read and written; below them " +
  "bars for the time of a copy, the predicted time and the measured time";
const NOTICE =
  "Every operator reads its operands from memory and writes its result there, and the next one reads it again. The " +
  "arithmetic is the same in all forms; only the number of blocks differs. For one new token the blocks are too " +
  "small to matter: there the time is the number of calls.";

const TOP = 44; // pixels above the operators
const NAMES = { _to_copy: "convert" };
const narrow = (width) => width < 480;
const rowHeight = (width) => (narrow(width) ? 17 : 19);

export default figure((fig) => {
  const data = fig.model.get("data");
  const rows = Math.max(...Object.values(data.forms).flatMap((form) => Object.values(form).map((s) => s.length)));
  const bars = (width) => TOP + rows * rowHeight(width) + 26;
  let played = Infinity; // blocks drawn so far while "Show me" plays

  const plot = fig.canvas({ label: LABEL, height: (width) => bars(width) + 3 * 30 + 6 });

  fig.draw(() => {
    const { shape, dtype, form, machine } = fig.traits;
    const now = budget(data, { shape, dtype, form, machine });
    const { width } = plot.clear();
    if (!fig.root.dataset.playing) played = Infinity;
    const left = narrow(width) ? 84 : 118;
    const unit = (width - left - (narrow(width) ? 46 : 62)) / widest(data);
    drawKey(plot, now.bytes);
    const total = drawPasses(plot, now.steps, left, unit, played);
    if (played >= total && now.steps.length < rows) {
      const sum = `${short(now.passes)} N = ${size(now.passes * now.bytes)}`;
      const y = TOP + now.steps.length * rowHeight(width) + 12;
      text(plot, sum, width, y, { align: "right", bold: true, size: 13, color: fig.colors.ink });
    }
    drawTimes(plot, now, left, bars(width));
    fig.say(words(data, { form, dtype, machine }, now));
    fig.root.dataset.values = JSON.stringify({ shape, dtype, form, machine, ...now, steps: now.steps.length });
  });

  const play = async (form, step, rest) => {
    const { shape, dtype, machine } = fig.traits;
    const { passes } = budget(data, { shape, dtype, machine, form });
    played = 0;
    fig.set({ form });
    for (; !fig.reducedMotion && played < passes; played += 0.5) {
      fig.redraw();
      await fig.pause(step);
    }
    played = Infinity;
    fig.redraw();
    await fig.pause(rest);
  };
  fig.showMe(async () => {
    const [first] = Object.keys(data.shapes);
    fig.set({ shape: first, dtype: "float32", machine: RECORDED });
    for (const [form, rest] of TOUR) await play(form, 90, rest);
  });
  fig.notice(NOTICE);
});

function drawKey(plot, bytes) {
  const { ctx, width, colors } = plot;
  const key = (x, color, name) => {
    ctx.fillStyle = color;
    ctx.fillRect(x, 6, 14, 12);
    text(plot, name, x + 20, 12, { color: colors.ink });
  };
  key(0, colors.k, "read");
  key(62, colors.q, "written");
  const [x, y, other] = narrow(width) ? [0, 30, 12] : [142, 12, 30];
  text(plot, `full block: N = ${size(bytes)}, the bytes of x`, x, y);
  text(plot, "so far", width, other, { size: 11.5, align: "right" });
}

/** The operators as rows of blocks, as far as they are `played`; returns how many blocks there are so far. */
function drawPasses(plot, steps, left, unit, played) {
  const { ctx, width, colors } = plot;
  const tall = rowHeight(width);
  let total = 0;
  steps.forEach(([name, read, written], row) => {
    if (total >= played) return;
    const y = TOP + row * tall;
    const size = narrow(width) ? 11 : 12;
    text(plot, NAMES[name] ?? name, left - 9, y + tall / 2, { align: "right", size, color: colors.ink });
    let x = left;
    const blocks = (count, color) => {
      for (let done = 0; done < count; done++) {
        const part = Math.min(1, count - done);
        if (total < played) {
          ctx.fillStyle = color;
          ctx.fillRect(x, y + 2, Math.max(part * unit - 2, 1), tall - 4);
        }
        x += part * unit;
        total += part;
      }
    };
    blocks(read, colors.k);
    blocks(written, colors.q);
    if (total <= played) text(plot, `${short(total)} N`, width, y + tall / 2, { align: "right" });
  });
  return total;
}

function drawTimes(plot, { floor, predicted, measured }, left, top) {
  const { ctx, width, colors } = plot;
  const longest = Math.max(floor ?? 0, predicted ?? 0, measured ?? 0) || 1;
  const room = width - left - 96;
  const rows = [
    ["a copy", floor, colors.muted],
    ["predicted", predicted, colors.accent],
    ["measured", measured, colors.warm],
  ];
  rows.forEach(([name, us, color], i) => {
    const y = top + i * 30;
    text(plot, name, left - 9, y + 10, { align: "right", size: narrow(width) ? 12 : 13, color: colors.ink });
    const long = us === null ? 0 : Math.max((us / longest) * room, 2);
    ctx.fillStyle = color;
    ctx.fillRect(left, y, long, 20);
    ctx.fillStyle = colors.rule;
    ctx.fillRect(left - 1, y - 5, 1, 30);
    const known = us !== null;
    text(plot, duration(us), left + long + 8, y + 10, {
      size: 13,
      bold: known,
      color: known ? colors.ink : colors.muted,
    });
  });
}
