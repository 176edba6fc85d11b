// Query and key in one plane: both turn with their positions, the angle between them keeps m - n.
import { arrow, disc, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { num, TURN } from "./kit/numbers.js";
import { rotatePair, wrappedAngle } from "./rope.js";

const HIGHEST = 60; // of the positions, as in rotor.py
const Q = { length: 1, angle: 1.15 }; // before any turn
const K = { length: 0.82, angle: 0.35 };

/** The two arrows and the angle from key to query, for a plane that turns by theta a position. */
export function arrows(m, n, theta) {
  const turned = ({ length, angle }, position) =>
    rotatePair(length * Math.cos(angle), length * Math.sin(angle), position * theta);
  const q = turned(Q, m);
  const k = turned(K, n);
  return { q, k, between: Q.angle - K.angle + (m - n) * theta, score: q[0] * k[0] + q[1] * k[1] };
}

/** The largest shift of both positions towards `by` that stays in 0..HIGHEST. */
export function shift(m, n, by) {
  const room = by > 0 ? HIGHEST - Math.max(m, n) : -Math.min(m, n);
  return Math.abs(room) < Math.abs(by) ? room : by;
}

/** The caption; `seen` is the angle from k to q as the picture shows it. */
export function words(m, n, theta, seen, score) {
  return (
    `Query turned by mθ = **${num(m * theta)}** rad, key by nθ = **${num(n * theta)}** rad. ` +
    `Distance m − n = **${num(m - n, 0)}**, angle from k to q **${degrees(seen)}**, score q·k = **${num(score, 3)}**.`
  );
}

const degrees = (angle) => `${num((angle * 180) / Math.PI, 1)}°`;

const LABEL =
  "A circle with two arrows, the query at position m and the key at position n, and the angle between them as an arc";
const NOTICE =
  "Both arrows turn, the wedge between them turns along, and its angle stays: it changes only when the distance " +
  "m − n does.";

export default figure((fig) => {
  const plot = fig.canvas({ label: LABEL, height: (width) => Math.min(width * 0.86, 340) });

  fig.draw(() => {
    const { m, n, theta } = fig.traits;
    const { ctx, width, height } = plot.clear();
    const { ink, muted, rule, accent, q: qColor, k: kColor } = fig.colors;
    const now = arrows(m, n, theta);
    const radius = Math.min(width / 2, height / 2) - 26;
    const [cx, cy] = [width / 2, height / 2];
    const at = ([x, y]) => [cx + radius * x, cy - radius * y];
    const onCircle = (angle, r = 1) => at([r * Math.cos(angle), r * Math.sin(angle)]);

    ctx.lineWidth = 1;
    ctx.strokeStyle = rule;
    ctx.beginPath();
    ctx.arc(cx, cy, radius, 0, TURN);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(...at([-1.06, 0]));
    ctx.lineTo(...at([1.06, 0]));
    ctx.moveTo(...at([0, -1.06]));
    ctx.lineTo(...at([0, 1.06]));
    ctx.stroke();

    // where every position up to the present one has been
    const trail = (start, position, color) => {
      for (let p = 0; p < position; p++) {
        ctx.globalAlpha = 0.22 + 0.5 * (p / position) ** 3;
        disc(plot, ...onCircle(start.angle + p * theta, start.length), 3, color);
      }
      ctx.globalAlpha = 1;
      arrow(plot, cx, cy, ...onCircle(start.angle, start.length), color, { width: 1.5, alpha: 0.35, dash: [3, 4] });
    };
    trail(Q, m, qColor);
    trail(K, n, kColor);

    // the angle between, from the key on
    const seen = wrappedAngle(now.between);
    const begin = K.angle + n * theta;
    const wedge = () => ctx.arc(cx, cy, radius * 0.34, -begin, -(begin + seen), true);
    ctx.beginPath();
    ctx.moveTo(cx, cy);
    wedge();
    ctx.closePath();
    ctx.fillStyle = accent;
    ctx.globalAlpha = 0.14;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.beginPath();
    wedge();
    ctx.strokeStyle = accent;
    ctx.lineWidth = 2;
    ctx.stroke();

    arrow(plot, cx, cy, ...at(now.k), kColor, { width: 3, label: "k" });
    arrow(plot, cx, cy, ...at(now.q), qColor, { width: 3, label: "q" });
    disc(plot, cx, cy, 4, muted);
    const label = { align: "center", color: ink, bold: true, size: 14, halo: true };
    text(plot, degrees(seen), ...onCircle(begin + seen / 2, 0.34 + 30 / radius), label);
    fig.say(words(m, n, theta, seen, now.score));
  });

  const shiftBoth = (by) => {
    const { m, n } = fig.traits;
    const step = shift(m, n, by);
    return { m: m + step, n: n + step };
  };
  fig.showMe(async () => {
    const { m, n } = fig.traits;
    const down = shift(m, n, -HIGHEST);
    await fig.glide({ m: m + down, n: n + down }, 900);
    await fig.glide(shiftBoth(HIGHEST), 4500);
  });
  fig.button("Shift both by 5", () => fig.glide(shiftBoth(5), 700));
  fig.button("Shift both back by 5", () => fig.glide(shiftBoth(-5), 700));
  fig.notice(NOTICE);
});
