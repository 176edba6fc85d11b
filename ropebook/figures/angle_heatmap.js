// Positions x pairs in colour, twice: the true angle, and what is shown of it; below each, the chosen pair.

import { drawFullTurn } from "./hands.js";
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
import { inverseFrequencies, ownFrequencies, wrappedAngle } from "./rope.js";

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

const WHY = {
  "wrapped angle": "The stripes come from leaving whole turns out.",
  cosine: "What swings is the cosine of an angle that only grows.",
};

/** What is said of a cell: a position, a pair, its frequency in radians per token, and what stands beside. */
export function words(position, pair, theta, show) {
  const angle = position * theta;
  const turns = angle / TURN;
  const digits = (x) => (x >= 1000 ? 0 : x >= 100 ? 1 : 3);
  if (theta === 0) {
    return (
      `No: pair **${pair}** stands still, and none turns back.\n` +
      `Position **${num(position, 0)}**, pair **${pair}**: angle **0**, cosine **1**, wherever a token stands.`
    );
  }
  const far = `**${num(turns, digits(turns))}** turns by position **${num(position, 0)}**`;
  return (
    `No, none turns back${position ? `: pair **${pair}** has made ${far}` : ""}. ${WHY[show]}\n` +
    `Position **${num(position, 0)}**, pair **${pair}**: true angle **${num(angle, digits(angle))}** rad, ` +
    `wrapped **${num(wrappedAngle(angle), 3)}** rad, cosine **${num(Math.cos(angle), 3)}**. ` +
    `One full turn takes this pair **${num(TURN / theta, 1)}** positions (its wavelength).`
  );
}

const LABEL =
  "Two heatmaps over positions (across) and pairs (down, fastest first): on the left the true rotation angle, a " +
  "smooth ramp; on the right the wrapped angle or the cosine, with stripes. Below each the chosen pair over the " +
  "positions";
const NOTICE = "The dashed line is each pair’s first full turn: below it, no pair has finished one.";

const LEFT = 50; // margins, in pixels
const RIGHT = 12;
const KEY = 44; // height of title and key above a map
const wide = (width) => width >= 560;
const mapHeight = (width) => (wide(width) ? 230 : 98);
const curveHeight = (width) => (wide(width) ? 92 : 38);
const blockHeight = (width) => KEY + mapHeight(width) + 10 + curveHeight(width);

/** Where both maps lie: side by side, or one above the other. */
function layout(width) {
  const block = (x0, x1, top) => ({ x0, x1, y0: top + KEY, y1: top + KEY + mapHeight(width) });
  if (!wide(width)) return [block(LEFT, width - RIGHT, 0), block(LEFT, width - RIGHT, blockHeight(width) + 8)];
  const each = (width - LEFT - RIGHT - 44) / 2;
  return [block(LEFT, LEFT + each, 0), block(width - RIGHT - each, width - RIGHT, 0)];
}

export default figure((fig) => {
  let maps = []; // where the heatmaps lie, in CSS pixels
  const own = ownFrequencies(fig);
  const pairsOf = ({ dim }) => own?.length ?? dim / 2;
  const cursor = ({ dim, first, count, position, pair }) => ({
    position: clamp(position, first, first + count - 1),
    pair: clamp(pair, 0, pairsOf({ dim }) - 1),
  });

  const plot = fig.canvas({
    label: LABEL,
    help: "Point at a cell, or use the arrow keys.",
    height: (width) => (wide(width) ? blockHeight(width) : 2 * blockHeight(width) + 8) + 40,
    point({ x, y, type }) {
      const map = maps.find(({ x1, y1 }) => x <= x1 + RIGHT && y <= y1 + 10 + curveHeight(plot.width));
      if (!map || (type === "pointermove" && (y > map.y1 + 8 || y < map.y0 - 8))) return;
      const { first, count } = fig.traits;
      const { column, row } = cellAt(x, y, map, count, pairsOf(fig.traits));
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
    const { ctx, width, height } = plot.clear();
    const theta = own ?? inverseFrequencies(dim, base);
    const pairs = theta.length;
    const largest = (first + count - 1) * theta[0];
    const color = pairColor(pair, pairs);
    maps = layout(width);
    maps.forEach((map, side) => {
      const shows = side ? show : "true angle";
      const columnWidth = (map.x1 - map.x0) / count;
      const xOf = (p) => map.x0 + (p - first + 0.5) * columnWidth;
      ctx.globalAlpha = fig.colors.dark ? 0.8 : 1; // a white map glares on a dark page
      drawKey(plot, map, shows, largest);
      paintCells(plot, map, count, pairs, TABLE[shows], (p, i) => colorIndex((first + p) * theta[i], shows, largest));
      ctx.globalAlpha = 1;
      const row = (i) => map.y0 + ((i + 0.5) * (map.y1 - map.y0)) / pairs;
      if (map.x0 === LEFT)
        pairAxis(plot, map, pairs, pairs > 1 ? ticks(0, pairs - 1, 4).filter(Number.isInteger) : [0]);
      const steps = Array.from({ length: 201 }, (_, step) => first + ((count - 1) * step) / 200);
      drawFullTurn(plot, theta, steps, row, xOf);
      crosshair(plot, map, xOf(position), row(pair), color);
      const last = side === 1 || wide(width);
      const shown = { show: shows, pair, theta: theta[pair], color, columnWidth, last };
      drawPair(plot, map, height, shown, { first, count, position }, xOf);
    });
    fig.say(words(position, pair, theta[pair], show));
    fig.root.dataset.cell = `${position},${pair}`;
  });

  fig.showMe(async () => {
    const { first, count } = fig.traits;
    const { pair } = cursor(fig.traits);
    for (const show of ["wrapped angle", "cosine"]) {
      fig.set({ show, position: first, pair });
      await fig.pause(700);
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
  const y = map.y0 - KEY;
  text(plot, title, map.x0, y + 12, { color: plot.colors.ink, size: 12.5, bold: true });
  const width = Math.min(200, map.x1 - map.x0 - 138);
  const marks = MARKS[show]
    .map((label, i, all) => [i / Math.max(all.length - 1, 1), label])
    .filter(([, label]) => width >= 130 || !label.endsWith("/2")); // or they meet
  if (show === "true angle") {
    for (let e = Math.floor(Math.log10(Math.max(largest, SMALL))); e >= -1; e--) {
      const at = angleScale(10 ** e, largest);
      if (marks.every(([other]) => Math.abs(other - at) * width > 46)) marks.push([at, num(10 ** e, Math.max(-e, 0))]);
    }
  }
  colorBar(plot, map.x1 - width, y + 8, width, TABLE[show], marks);
}

// The selected pair over the positions, below a map.
function drawPair(plot, map, height, { show, pair, theta, color, columnWidth, last }, { first, count, position }, xOf) {
  const values = Array.from({ length: count }, (_, p) => shownValue((first + p) * theta, show));
  const ranges = {
    "wrapped angle": { y: [0, TURN], ...TURN_TICKS },
    "true angle": { y: theta ? [first * theta, (first + count) * theta] : [0, 1] },
    cosine: { y: [-1, 1], yTicks: [-1, 0, 1] },
  };
  const top = map.y1 + 10;
  const at = axes(plot, {
    x: [first - 0.5, first + count - 0.5],
    xTicks: last ? ticks(first, first + count - 1, (map.x1 - map.x0) / 80).filter(Number.isInteger) : [],
    xLabel: last ? "position" : "",
    box: { left: map.x0, right: plot.width - map.x1, top, bottom: height - top - curveHeight(plot.width) },
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
    if (columnWidth > 4) disc(plot, xOf(first + p), at.y(value), 2.5, color);
  });
  curve(plot, ...run, color);
  upright(plot, xOf(position), at.box, plot.colors.muted, { width: 1 });
  disc(plot, xOf(position), at.y(values[position - first]), 4.5, color);
  if (show === "true angle") {
    text(plot, `pair ${pair}`, at.box.x0 + 6, at.box.y0 + 8, { color: plot.colors.ink, halo: true });
  }
}
