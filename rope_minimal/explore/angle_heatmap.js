// Positions x pairs in colour. One canvas: the key, the map, and the selected pair below it.
import { figure, axes, colorBar, crosshair, curve, disc, num, pairAxis, pairColor, paintCells, text, ticks } from "./kit.js";
import { inverseFrequencies, wrappedAngle } from "./rope.js";

const TURN = 2 * Math.PI;
const TABLE = { "wrapped angle": "phase", "true angle": "angle", cosine: "cosine" };
const SMALL = 0.01; // rad: below it the scale of true angles is linear, above logarithmic

/** Where a true angle lies on its colour scale, 0..1. */
export function angleScale(angle, largest) {
  return Math.log1p(angle / SMALL) / Math.log1p(Math.max(largest, SMALL) / SMALL);
}

/** The colour index 0..255 of an angle in one of the three ways to show it. */
export function colorIndex(angle, show, largest) {
  if (show === "wrapped angle") return Math.floor((wrappedAngle(angle) / TURN) * 256) & 255;
  if (show === "cosine") return Math.round((Math.cos(angle) + 1) * 127.5);
  return Math.round(angleScale(angle, largest) * 255);
}

/** What is plotted for an angle in one of the three ways to show it. */
export function shownValue(angle, show) {
  if (show === "wrapped angle") return wrappedAngle(angle);
  return show === "cosine" ? Math.cos(angle) : angle;
}

/** The column and row under a point of the box, kept inside the map. */
export function cellAt(x, y, box, columns, rows) {
  const cell = (at, from, to, n) => Math.min(Math.max(Math.floor(((at - from) / (to - from)) * n), 0), n - 1);
  return { column: cell(x, box.x0, box.x1, columns), row: cell(y, box.y0, box.y1, rows) };
}

export default figure((fig) => {
  let map = null; // where the heatmap lies, in CSS pixels
  const keep = (value, low, high) => Math.min(Math.max(value, low), high);
  const cursor = ({ dim, first, count, position, pair }) => ({
    position: keep(position, first, first + count - 1),
    pair: keep(pair, 0, dim / 2 - 1),
  });
  const mapHeight = (width) => keep(Math.round(width * 0.4), 190, 280);

  const plot = fig.canvas({
    label: "Heatmap of the rotation angle over positions (across) and pairs (down, fastest first), and below it the selected pair over the positions",
    help: "Point at the map, or focus it and use the arrow keys, to read a cell.",
    height: (width) => 44 + mapHeight(width) + 30 + 118 + 40,
    point({ x, y, type }) {
      if (!map || (type === "pointermove" && (y > map.y1 + 8 || y < map.y0 - 8))) return;
      const { dim, first, count } = fig.traits;
      const { column, row } = cellAt(x, y, map, count, dim / 2);
      if (y <= map.y1) fig.set({ position: first + column, pair: row });
      else fig.set({ position: first + column });
    },
    keys({ dx, dy }) {
      const { dim, first, count } = fig.traits;
      const { position, pair } = cursor(fig.traits);
      fig.set({
        position: keep(position + dx, first, first + count - 1),
        pair: keep(pair + dy, 0, dim / 2 - 1),
      });
    },
  });

  fig.draw(() => {
    const { dim, base, first, count, show } = fig.traits;
    const { position, pair } = cursor(fig.traits);
    const { ctx, width } = plot.clear();
    const { ink, muted } = fig.colors;
    const pairs = dim / 2;
    const theta = inverseFrequencies(dim, base);
    const largest = (first + count - 1) * theta[0];
    const left = 50;
    const right = 12;
    const top = 44;
    const bottom = top + mapHeight(width);
    map = { x0: left, y0: top, x1: width - right, y1: bottom };

    drawKey(plot, map, show, largest);
    paintCells(plot, map, count, pairs, TABLE[show], (p, i) =>
      colorIndex((first + p) * theta[i], show, largest),
    );

    const yOf = pairAxis(plot, map, pairs, pairs > 1 ? ticks(0, pairs - 1, 4).filter(Number.isInteger) : [0]);

    const columnWidth = (map.x1 - map.x0) / count;
    const xOf = (p) => map.x0 + (p - first + 0.5) * columnWidth;
    drawFullTurn(plot, map, { dim, base, first, count }, xOf);

    // the cursor
    const cx = xOf(position);
    crosshair(plot, map, cx, yOf(pair), pairColor(pair, pairs));

    // the selected pair over the positions
    const values = Array.from({ length: count }, (_, p) => shownValue((first + p) * theta[pair], show));
    const range = show === "cosine" ? [-1, 1] : show === "wrapped angle" ? [0, TURN] : [first * theta[pair], Math.max((first + count) * theta[pair], 1e-12)];
    const at = axes(plot, {
      x: [first - 0.5, first + count - 0.5],
      y: range,
      xLabel: "position",
      box: { left, right, top: bottom + 30, bottom: 40 },
      ...(show === "wrapped angle" && { yTicks: [0, Math.PI, TURN], yFormat: (v) => ["0", "π", "2π"][Math.round(v / Math.PI)] }),
      ...(show === "cosine" && { yTicks: [-1, 0, 1], yFormat: (v) => num(v, 0) }),
      xTicks: ticks(first, first + count - 1, width / 90).filter(Number.isInteger),
    });
    const color = pairColor(pair, pairs);
    let run = [[], []];
    values.forEach((value, p) => {
      if (show === "wrapped angle" && p && value < values[p - 1]) {
        curve(plot, ...run, color);
        run = [[], []];
      }
      run[0].push(xOf(first + p));
      run[1].push(at.y(value));
      if (columnWidth > 6) disc(plot, xOf(first + p), at.y(value), 2.5, color);
    });
    curve(plot, ...run, color);
    ctx.strokeStyle = muted;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(cx, at.box.y0);
    ctx.lineTo(cx, at.box.y1);
    ctx.stroke();
    disc(plot, cx, at.y(values[position - first]), 4.5, color);
    text(plot, `pair ${pair}: ${show}${show === "cosine" ? "" : " (rad)"}`, left, bottom + 16, { color: ink, size: 12.5 });

    const angle = position * theta[pair];
    fig.say(
      `Position **${num(position, 0)}**, pair **${pair}**: true angle **${num(angle, 3)}** rad ` +
        `(${num((angle * 180) / Math.PI, 1)}°), wrapped **${num(wrappedAngle(angle), 3)}** rad, cosine **${num(Math.cos(angle), 3)}**. ` +
        `This pair needs **${num(TURN / theta[pair], 1)}** positions for one full turn (its wavelength).`,
    );
    fig.root.dataset.cell = `${position},${pair}`;
  });

  fig.showMe(async () => {
    const { first, count } = fig.traits;
    const { pair } = cursor(fig.traits);
    for (const show of ["wrapped angle", "true angle"]) {
      fig.set({ show, position: first, pair });
      await fig.pause(900);
      await fig.glide({ position: first + count - 1 }, 2600);
      await fig.pause(500);
    }
  });
  fig.notice(
    "The stripes are a way of showing: a wrapped angle falls back to 0 after every full turn. Show the true angle, and each pair is one smooth ramp; what does swing is the cosine. The dashed line is each pair's first full turn: below it, no pair has finished one.",
  );
});

function drawKey(plot, map, show, largest) {
  const title = { "wrapped angle": "wrapped angle (rad)", "true angle": "true angle (rad)", cosine: "cosine" }[show];
  text(plot, title, map.x0, 12, { color: plot.colors.ink, size: 12.5, halo: false });
  const width = Math.min(240, map.x1 - map.x0 - 132);
  const marks = {
    "wrapped angle": [[0, "0"], [0.25, "π/2"], [0.5, "π"], [0.75, "3π/2"], [1, "2π"]],
    "true angle": [[0, "0"]],
    cosine: [[0, "−1"], [0.5, "0"], [1, "1"]],
  }[show];
  if (show === "true angle") {
    const every = width < 200 ? 2 : 1;
    for (let e = 1 - every; 10 ** e <= largest; e += every) {
      marks.push([angleScale(10 ** e, largest), num(10 ** e, Math.max(-e, 0))]);
    }
  }
  colorBar(plot, map.x1 - width, 8, width, TABLE[show], marks);
}

// The positions after which each pair has turned once: its wavelength, drawn as a curve.
function drawFullTurn(plot, map, { dim, base, first, count }, xOf) {
  const xs = [];
  const ys = [];
  for (let step = 0; step <= 200; step++) {
    const position = first + ((count - 1) * step) / 200;
    const pair = ((dim / 2) * Math.log(position / TURN)) / Math.log(base);
    if (!(pair >= 0 && pair <= dim / 2 - 1)) continue;
    xs.push(xOf(position));
    ys.push(map.y0 + ((pair + 0.5) * (map.y1 - map.y0)) / (dim / 2));
  }
  curve(plot, xs, ys, "rgba(0,0,0,0.6)", { width: 3.4, dash: [6, 4] });
  curve(plot, xs, ys, "#ffffff", { width: 1.6, dash: [6, 4] });
}
