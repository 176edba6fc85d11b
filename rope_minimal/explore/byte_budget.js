// One way of writing the rotation as blocks of memory read and written, and the time that follows.
import { figure, num, text } from "./kit.js";

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

const WORDS = { _to_copy: "convert" };
const units = (count) => num(count, 2).replace(/\.?0+$/, "");

export default figure((fig) => {
  const data = fig.model.get("data");
  const ROWS = Math.max(...Object.values(data.forms).flatMap((form) => Object.values(form).map((steps) => steps.length)));
  let played = Infinity; // blocks drawn so far while "Show me" plays
  const TOP = 44;
  const rowHeight = () => (fig.root.clientWidth < 480 ? 17 : 19);
  const bars = () => TOP + ROWS * rowHeight() + 26;

  const plot = fig.canvas({
    label: "The operators of one way of writing the rotation, one row each, as blocks of memory read and written; below them bars for the time of a copy, the predicted time and the measured time",
    height: () => bars() + 3 * 30 + 6,
  });

  fig.draw(() => {
    const { shape, dtype, form, machine } = fig.traits;
    const now = budget(data, { shape, dtype, form, machine });
    const { ctx, width } = plot.clear();
    const { ink, muted, q, k, accent, warm, rule } = fig.colors;
    if (!fig.root.dataset.playing) played = Infinity;
    const narrow = width < 480;
    const left = narrow ? 84 : 118;
    const right = narrow ? 46 : 62;
    const unit = (width - left - right) / widest(data);
    const tall = rowHeight();

    // key
    const key = (x, color, words) => {
      ctx.fillStyle = color;
      ctx.fillRect(x, 6, 14, 12);
      text(plot, words, x + 20, 12, { color: ink, size: 12, halo: false });
    };
    key(0, k, "read");
    key(62, q, "written");
    text(plot, `full block: N = ${size(now.bytes)}, the bytes of x`, narrow ? 0 : 142, narrow ? 30 : 12, { size: 12, halo: false });
    text(plot, "so far", width, narrow ? 12 : 30, { size: 11.5, align: "right", halo: false });

    // the passes
    let total = 0;
    now.steps.forEach(([name, read, written], row) => {
      const y = TOP + row * tall;
      if (total >= played) return;
      text(plot, WORDS[name] ?? name, left - 9, y + tall / 2, { align: "right", size: narrow ? 11 : 12, color: ink, halo: false });
      let x = left;
      for (const [count, color] of [[read, k], [written, q]]) {
        for (let done = 0; done < count; done++) {
          const part = Math.min(1, count - done);
          if (total < played) {
            ctx.fillStyle = color;
            ctx.fillRect(x, y + 2, Math.max(part * unit - 2, 1), tall - 4);
          }
          x += part * unit;
          total += part;
        }
      }
      if (total <= played) text(plot, `${units(total)} N`, width, y + tall / 2, { align: "right", size: 12, halo: false });
    });
    const y = TOP + now.steps.length * tall + 4;
    if (played >= total && now.steps.length < ROWS) {
      text(plot, `${units(now.passes)} N = ${size(now.passes * now.bytes)}`, width, y + 8, { align: "right", bold: true, size: 13, color: ink, halo: false });
    }

    // the times
    const longest = Math.max(now.floor ?? 0, now.predicted ?? 0, now.measured ?? 0) || 1;
    const room = width - left - 96;
    const rows = [
      ["a copy", now.floor, muted],
      ["predicted", now.predicted, accent],
      ["measured", now.measured, warm],
    ];
    rows.forEach(([name, us, color], i) => {
      const at = bars() + i * 30;
      text(plot, name, left - 9, at + 10, { align: "right", size: narrow ? 12 : 13, color: ink, halo: false });
      const long = us === null ? 0 : Math.max((us / longest) * room, 2);
      ctx.fillStyle = color;
      ctx.fillRect(left, at, long, 20);
      ctx.fillStyle = rule;
      ctx.fillRect(left - 1, at - 5, 1, 30);
      text(plot, duration(us), left + long + 8, at + 10, { size: 13, bold: us !== null, color: us === null ? muted : ink, halo: false });
    });

    const whence = machine === RECORDED ? `measured: ${data.machine}` : `at the data sheet's peak of ${num(now.rate / 1e9, 0)} GB/s, an assumption`;
    const rate = now.rate === null ? "No copy was measured here." : `A copy takes **${duration(now.floor)}** (${whence}).`;
    const found = now.measured === null
      ? "**Not measured yet.**"
      : `Measured: **${duration(now.measured)}**, **${num(now.copies, 1)}** copies of the same rounds.`;
    fig.say(
      `**${form}**, ${dtype}: **${now.steps.length}** ${now.steps.length === 1 ? "operator" : "operators"}, **${units(now.passes)}** passes of N = ${size(now.bytes)}, together **${size(now.passes * now.bytes)}**. ` +
        `${rate} Predicted: **${now.predicted === null ? "nothing" : duration(now.predicted)}**, **${units(now.passes / 2)}** copies. ${found}`,
    );
    fig.root.dataset.values = JSON.stringify({ shape, dtype, form, machine, ...now, steps: now.steps.length });
  });

  const play = async (form, step, rest) => {
    const { shape, dtype, machine } = fig.traits;
    const { passes } = budget(data, { shape, dtype, machine, form });
    played = 0;
    fig.set({ form });
    for (; !fig.calm && played < passes; played += 0.5) {
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
  fig.notice(
    "Every operator reads its operands from memory and writes its result there, and the next one reads it again. The arithmetic is the same in all forms; only the number of blocks differs. For one new token the blocks are too small to matter: there the time is the number of calls.",
  );
});
