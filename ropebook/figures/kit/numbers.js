// numbers.js: limits, numbers for reading, and the ticks of an axis.

export const TURN = 2 * Math.PI;

/** x kept in low .. high. */
export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** A number for reading: `digits` after the point, groups of three, a true minus sign. */
export function num(x, digits = 2) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "not a number";
  if (x !== 0 && Number(x.toFixed(digits)) === 0) return small(x);
  return grouped(x, digits);
}

/** The same for numbers that may show as zero; toLocaleString would load tables first. */
export function grouped(x, digits) {
  const [whole, part] = Math.abs(x).toFixed(digits).split(".");
  return (x < 0 ? "−" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
}

function small(x) {
  const [mantissa, exponent] = Math.abs(x).toExponential(1).split("e");
  return `${x < 0 ? "−" : ""}${mantissa}·10${superscript(exponent)}`;
}

/** The same without zeros at its end: 0.50 is 0.5, and 1.00 is 1. */
export function short(x, digits = 2) {
  const written = num(x, digits);
  return written.includes(".") ? written.replace(/\.?0+$/, "") : written;
}

/** A part in percent; what is not quite all is not rounded to it. */
export function percent(part, digits = 0) {
  const size = Math.abs(part);
  if (size >= 0.995 && size < 1 - 1e-9) return `${num(clamp(100 * part, -99.9, 99.9), 1)}%`;
  return `${num(digits ? 100 * part : Math.round(100 * part), digits)}%`;
}

/** A whole number as an exponent: −4 is ⁻⁴. */
export const superscript = (n) => [...String(n)].map((d) => (d === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])).join("");

/** Round values for the ticks of an axis, about `count` of them. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(i * step + 0); // no -0
  return out;
}

/** The powers of ten in low .. high. */
export function decades(low, high) {
  const out = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); 10 ** e <= high * 1.000001; e++) out.push(10 ** e);
  return out;
}

/** The text of a tick: as many digits as its size needs. */
export function tickText(value) {
  const size = Math.abs(value);
  return short(value, size >= 10 || Number.isInteger(value) ? 0 : size < 0.1 ? 3 : 2);
}
