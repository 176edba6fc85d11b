// Ways of writing the rotation as passes over memory, and the times that follow, on one axis.
import { axes, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, short } from "./kit/numbers.js";

const BYTES = { float32: 4, bfloat16: 2 };
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

const recordedCase = (cases, shape, dtype) =>
  cases.find((each) => each.dtype === dtype && String(each.shape) === String(shape));

/** Bytes a second that a copy reached: in the case of this shape and type, or the largest of this type. */
export function copyRate(cases, shape, dtype) {
  const size = (each) => bytesOf(each.shape, dtype);
  const others = cases.filter((each) => each.dtype === dtype).sort((a, b) => size(b) - size(a));
  const used = recordedCase(cases, shape, dtype) ?? others[0];
  return used ? (2 * size(used)) / (used.floor_us * 1e-6) : null;
}

/**
 * Everything the figure says about one way of writing on one machine. Times are in microseconds;
 * null is a time that nobody measured, or that nothing measured allows to predict. What follows
 * from a time follows from it as it is printed, so that a reader who computes finds the same.
 */
export function budget(data, { shape, dtype, form, machine }) {
  const sizes = data.shapes[shape];
  const bytes = bytesOf(sizes, dtype);
  const steps = data.forms[form][dtype];
  const passes = steps.reduce((sum, [, read, written]) => sum + read + written, 0);
  const { cases } = data.machines[machine];
  const rate = copyRate(cases, sizes, dtype);
  const own = recordedCase(cases, sizes, dtype);
  const floor = rate && printed((2 * bytes * 1e6) / rate);
  const measured = own?.us[form] ?? null;
  return {
    ...{ bytes, steps, passes, rate, floor, measured, own: Boolean(own) },
    predicted: rate && (passes / 2) * floor,
    copies: measured && printed(measured) / floor,
  };
}

/** The longest time of a shape on a machine, over all forms and types: the end of the axis. */
export function longest(data, { shape, machine }) {
  const forms = Object.keys(data.forms).flatMap((form) =>
    Object.keys(BYTES).map((dtype) => budget(data, { shape, dtype, form, machine })),
  );
  return Math.max(...forms.flatMap(({ predicted, measured }) => [predicted, measured])) || 1;
}

/** [in which unit, of how many microseconds, with how many digits] a time is said. */
function saidIn(us) {
  if (us >= 1000) return ["ms", 1000, us < 10000 ? 2 : 1];
  return ["µs", 1, us < 0.1 ? 4 : us < 1 ? 3 : us < 10 ? 2 : us < 100 ? 1 : 0];
}

/** Microseconds as people say them. */
export function duration(us) {
  const [unit, of, digits] = saidIn(us);
  return `${num(us / of, digits)} ${unit}`;
}

/** The microseconds that `duration` says. */
export function printed(us) {
  const [, of, digits] = saidIn(us);
  return Number((us / of).toFixed(digits)) * of;
}

/** A size as people say it. */
export function size(bytes) {
  const [unit, name] = bytes >= 2 ** 20 ? [2 ** 20, "MiB"] : [2 ** 10, "KiB"];
  return `${short(bytes / unit)} ${name}`;
}

/** What is said of a form, from its `budget`: the answer, and after a line's end the numbers. */
export function words(data, { form, machine }, now) {
  const { passes, floor, predicted, measured, copies, steps, bytes, rate, own } = now;
  const half = short(passes / 2);
  const many = passes === 2 ? "as many as a copy" : `${half} times as many as a copy`;
  const took = measured === null ? "; its time was not measured" : `, and took **${num(copies, 1)} times** as long`;
  const list = steps.map(([step, read, written]) => `${named(step)} ${short(read)} + ${short(written)}`);
  const { name } = data.machines[machine];
  const whence = own ? name : `${name}, at the rate of the largest copy of this type that was recorded`;
  const copy = rate
    ? `A copy ${own ? "takes" : "would take"} **${duration(floor)}** (${whence}). ` +
      `Predicted: ${half} × ${duration(floor)} = **${duration(predicted)}**, `
    : "No copy was measured here; ";
  const found = measured === null ? "not measured." : `measured **${duration(measured)}**.`;
  return (
    `**${form}** makes **${short(passes)} passes** over memory, ${many}${took}.\n` +
    `${list.join(", ")} (read + written): ${short(passes)} × ${size(bytes)} = **${size(passes * bytes)}**. ` +
    `${copy}${found}`
  );
}

const NAMES = { _to_copy: "convert" };
const named = (name) => NAMES[name] ?? name.replace(/_$/, "");

const LABEL =
  "Every way of writing the rotation is a row: its passes over memory as blocks that end at the predicted time, and " +
  "under them a bar for the measured time; all rows have one time axis";
const NOTICE =
  "For one new token of a few texts the blocks are not all: a call has a cost, too, on the GPU the program's time.";

const SIZES = {
  broad: { left: 252, right: 108, top: 44, row: 32, blocks: 5, size: 13 },
  slim: { left: 4, right: 8, top: 58, row: 30, blocks: 15, size: 12 },
};
const sizesOf = (width) => (wide(width) ? SIZES.broad : SIZES.slim);

export default figure((fig) => {
  const data = fig.model.get("data");
  const forms = data.order;
  let played = Infinity; // blocks of the chosen row drawn so far while "Show me" plays

  const plot = fig.canvas({
    label: LABEL,
    help: "Point at a row, or use the arrow keys ↑ ↓.",
    height(width) {
      const { top, row } = sizesOf(width);
      return top + forms.length * row + 38;
    },
    point({ y }) {
      const { top, row } = sizesOf(plot.width);
      const form = forms[Math.floor((y - top) / row)];
      if (form) fig.set({ form });
    },
    keys({ dx, dy }) {
      fig.set({ form: forms[clamp(forms.indexOf(fig.traits.form) + (dy || dx), 0, forms.length - 1)] });
    },
  });

  fig.draw(() => {
    const { traits } = fig;
    if (!fig.root.dataset.playing) played = Infinity;
    const { width, height } = plot.clear();
    const { left, right, top, row } = sizesOf(width);
    const end = longest(data, traits);
    const [unit, of] = end >= 1000 ? ["ms", 1000] : ["µs", 1];
    const box = { left, right, top, bottom: height - top - forms.length * row };
    const xFormat = (us) => short(us / of);
    const at = axes(plot, { x: [0, end], y: [0, 1], yTicks: [], xFormat, xLabel: `time (${unit})`, box });
    forms.forEach((form, i) => {
      const chosen = form === traits.form;
      const now = budget(data, { ...traits, form });
      drawRow(plot, form, now, { y: top + i * row, x: at.x, chosen, played: chosen ? played : Infinity });
    });
    const now = budget(data, traits);
    if (now.rate) {
      text(plot, `a copy: ${duration(now.floor)}`, at.x(now.floor) + 5, top - 9, { size: 11.5 });
    }
    drawKey(plot);
    fig.say(words(data, traits, now));
    fig.root.dataset.values = JSON.stringify({ ...traits, ...now, steps: now.steps.length });
  });

  const play = async (form, step, rest) => {
    const { passes } = budget(data, { ...fig.traits, form });
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
    fig.set({ shape: first, dtype: "float32", machine: "CPU" });
    for (const [form, rest] of TOUR) await play(form, 90, rest);
  });
  fig.notice(NOTICE);
});

const ALPHA = { read: 0.35, written: 0.85 };

/** A form's row: its blocks as far as they are `played`, up to the predicted time, and the measured time below. */
function drawRow(plot, form, now, { y, x, chosen, played }) {
  const { ctx, colors, width } = plot;
  const broad = wide(width);
  const { left, row, blocks: down, size } = sizesOf(width);
  if (chosen) {
    ctx.fillStyle = colors.ink;
    ctx.globalAlpha = colors.dark ? 0.13 : 0.07;
    ctx.fillRect(0, y, width, row);
    ctx.globalAlpha = 1;
  }
  const middle = broad ? y + row / 2 : y + 8;
  text(plot, form, broad ? left - 12 : 5, middle, {
    align: broad ? "right" : "left",
    size,
    bold: chosen,
    color: colors.ink,
  });
  const { steps, passes, predicted, measured } = now;
  if (predicted === null) return;

  const fill = (color, alpha, from, to, top, tall) => {
    ctx.fillStyle = color;
    ctx.globalAlpha = alpha;
    ctx.fillRect(from, top, Math.max(to - from, 0.5), tall);
    ctx.globalAlpha = 1;
  };
  const top = y + down;
  const [tall, under] = broad ? [9, 12] : [6, 8];
  const place = (count) => x((count / passes) * predicted);
  const gap = place(1) - place(0) > 4 ? 1 : 0;
  const zone = { y0: top - 2, y1: top + under + tall + 2 };
  upright(plot, x(now.floor), zone, colors.muted, { width: 1, dash: [4, 3] });
  let done = 0;
  for (const [, read, written] of steps) {
    for (const [kind, count] of [
      ["read", read],
      ["written", written],
    ]) {
      for (let rest = count; rest > 0 && done < played; rest -= 1) {
        const next = done + Math.min(rest, 1);
        fill(chosen ? colors.accent : colors.muted, ALPHA[kind], place(done), place(next) - gap, top, tall);
        done = next;
      }
    }
  }
  if (done < passes) return;
  upright(plot, place(passes), zone, colors.ink, { width: 1.5 });
  if (measured !== null) {
    const strong = chosen ? 1 : 0.55;
    fill(colors.ink, strong, x(0), x(Math.min(measured, predicted)), top + under, tall);
    if (measured > predicted) fill(colors.warm, strong, x(predicted), x(measured), top + under, tall);
  }
  const said = measured === null ? `predicted ${duration(predicted)}` : duration(measured);
  const [at, align] = broad ? [x(Math.max(predicted, measured ?? 0)) + 7, "left"] : [width - 5, "right"];
  text(plot, said, at, middle, { align, size, bold: chosen, color: measured === null ? colors.muted : colors.ink });
}

function drawKey(plot) {
  const { ctx, colors, width } = plot;
  const entries = [
    [14, "pass that reads", colors.muted, ALPHA.read],
    [14, "that writes", colors.muted, ALPHA.written],
    [2, "predicted", colors.ink, 1],
    [14, "measured", colors.ink, 0.75],
    [14, "beyond its bytes", colors.warm, 0.75],
  ];
  let [x, y] = [4, 9];
  for (const [long, label, color, alpha] of entries) {
    ctx.font = `11.5px ${colors.font}`;
    const needs = long + 6 + ctx.measureText(label).width + 16;
    if (x + needs - 16 > width) [x, y] = [4, y + 18];
    ctx.fillStyle = color;
    ctx.globalAlpha = alpha;
    ctx.fillRect(x, y - 6, long, 11);
    ctx.globalAlpha = 1;
    text(plot, label, x + long + 6, y, { size: 11.5 });
    x += needs;
  }
}
