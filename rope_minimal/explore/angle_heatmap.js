// Positions x pairs in colour. One canvas: the key, the map, and the selected pair below it.
import {
  axes,
  cellAt,
  colorBar,
  crosshair,
  curve,
  disc,
  paintCells,
  pairAxis,
  TURN_TICKS,
  text,
  upright,
} from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN, ticks } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { inverseFrequencies, wrappedAngle } from "./rope.js";

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

/** What is said of a cell: a position, a pair and its speed in radians per token. */
export function words(position, pair, theta) {
  const angle = position * theta;
  return (
    `Position **${num(position, 0)}**, pair **${pair}**: true angle **${num(angle, 3)}** rad ` +
    `(${num((angle * 180) / Math.PI, 1)}°), wrapped **${num(wrappedAngle(angle), 3)}** rad, ` +
    `cosine **${num(Math.cos(angle), 3)}**. ` +
    `This pair needs **${num(TURN / theta, 1)}** positions for one full turn (its wavelength).`
  );
}

const LABEL =
  "Heatmap of the rotation angle over positions (across) and pairs (down, fastest first), " +
  "and below it the selected pair over the positions";
const NOTICE =
  "The stripes are a way of showing: a wrapped angle falls back to 0 after every full turn. Show the true angle, " +
  "and each pair is one smooth ramp; what does swing is the cosine. The dashed line is each pair's first full " +
  "turn: below it, no pair has finished one.";

const LEFT = 50; // margins, in pixels
const RIGHT = 12;
const TOP = 44;
const mapHeight = (width) => clamp(Math.round(width * 0.4), 190, 280);

export default figure((fig) => {
  let map = null; // where the heatmap lies, in CSS pixels
  const cursor = ({ dim, first, count, position, pair }) => ({
    position: clamp(position, first, first + count - 1),
    pair: clamp(pair, 0, dim / 2 - 1),
  });

  const plot = fig.canvas({
    label: LABEL,
    help: "Point at the map, or focus it and use the arrow keys, to read a cell.",
    height: (width) => TOP + mapHeight(width) + 30 + 118 + 40,
    point({ x, y, type }) {
      if (!map || (type === "pointermove" && (y > map.y1 + 8 || y < map.y0 - 8))) return;
      const { dim, first, count } = fig.traits;
      const { column, row } = cellAt(x, y, map, count, dim / 2);
      if (y <= map.y1) fig.set({ position: first + column, pair: row });
      else fig.set({ position: first + column });
    },
    keys({ dx, dy }) {
      const { position, pair } = cursor(fig.traits);
      fig.set(cursor({ ...fig.traits, position: position + dx, pair: pair + dy }));
    },
  });

  fig.draw(() => {
    const { dim, base, first, count, show } = fig.traits;
    const { position, pair } = cursor(fig.traits);
    const { width } = plot.clear();
    const pairs = dim / 2;
    const theta = inverseFrequencies(dim, base);
    const largest = (first + count - 1) * theta[0];
    map = { x0: LEFT, y0: TOP, x1: width - RIGHT, y1: TOP + mapHeight(width) };

    drawKey(plot, map, show, largest);
    paintCells(plot, map, count, pairs, TABLE[show], (p, i) => colorIndex((first + p) * theta[i], show, largest));
    const yOf = pairAxis(plot, map, pairs, pairs > 1 ? ticks(0, pairs - 1, 4).filter(Number.isInteger) : [0]);
    const columnWidth = (map.x1 - map.x0) / count;
    const xOf = (p) => map.x0 + (p - first + 0.5) * columnWidth;
    drawFullTurn(plot, map, { dim, base, first, count }, xOf);

    crosshair(plot, map, xOf(position), yOf(pair), pairColor(pair, pairs));
    const shown = { show, pair, theta: theta[pair], color: pairColor(pair, pairs), columnWidth };
    drawPair(plot, map.y1, shown, { first, count, position }, xOf);
    fig.say(words(position, pair, theta[pair]));
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
  fig.notice(NOTICE);
});

// at equal steps of the key
const MARKS = {
  "wrapped angle": ["0", "π/2", "π", "3π/2", "2π"],
  "true angle": ["0"],
  cosine: ["−1", "0", "1"],
};

function drawKey(plot, map, show, largest) {
  const title = { "wrapped angle": "wrapped angle (rad)", "true angle": "true angle (rad)", cosine: "cosine" }[show];
  text(plot, title, map.x0, 12, { color: plot.colors.ink, size: 12.5 });
  const width = Math.min(240, map.x1 - map.x0 - 132);
  const marks = MARKS[show].map((label, i, all) => [i / Math.max(all.length - 1, 1), label]);
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

// The selected pair over the positions, below the map.
function drawPair(plot, bottom, { show, pair, theta, color, columnWidth }, { first, count, position }, xOf) {
  const values = Array.from({ length: count }, (_, p) => shownValue((first + p) * theta, show));
  const ranges = {
    "wrapped angle": { y: [0, TURN], ...TURN_TICKS },
    "true angle": { y: [first * theta, Math.max((first + count) * theta, 1e-12)] },
    cosine: { y: [-1, 1], yTicks: [-1, 0, 1] },
  };
  const at = axes(plot, {
    x: [first - 0.5, first + count - 0.5],
    xTicks: ticks(first, first + count - 1, plot.width / 90).filter(Number.isInteger),
    xLabel: "position",
    box: { left: LEFT, right: RIGHT, top: bottom + 30, bottom: 40 },
    ...ranges[show],
  });
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
  upright(plot, xOf(position), at.box, plot.colors.muted, { width: 1 });
  disc(plot, xOf(position), at.y(values[position - first]), 4.5, color);
  const title = `pair ${pair}: ${show}${show === "cosine" ? "" : " (rad)"}`;
  text(plot, title, LEFT, bottom + 16, { color: plot.colors.ink, size: 12.5, halo: true });
}
