// theme.js: the colours of the book's palette, and those of the page's theme.
import { PALETTE } from "../palette.js";
import { clamp } from "./numbers.js";

// ---- the palette --------------------------------------------------------------------------------

/** [r, g, b] in 0..255 at t in 0..1 of one of the palette's tables. */
export function paletteColor(name, t) {
  const table = name === "phase" ? [...PALETTE.phase, PALETTE.phase[0]] : PALETTE[name];
  const at = clamp(t, 0, 1) * (table.length - 1);
  const low = Math.min(Math.floor(at), table.length - 2);
  const channel = (hex, c) => parseInt(hex.slice(1 + 2 * c, 3 + 2 * c), 16);
  return [0, 1, 2].map((c) => {
    const from = channel(table[low], c);
    return Math.round(from + (channel(table[low + 1], c) - from) * (at - low));
  });
}

/** The same as CSS writes it. */
export const cssColor = (name, t) => `rgb(${paletteColor(name, t).join(", ")})`;
/** The hue of pair i of `pairs`: fast is rose, slow is violet. */
export const pairColor = (i, pairs) => cssColor("pair", pairs > 1 ? i / (pairs - 1) : 0);

const lookups = {};

/** The table `name` as 256 pixels for ImageData. */
export function lookup(name) {
  lookups[name] ??= Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = paletteColor(name, name === "phase" ? i / 256 : i / 255);
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
  return lookups[name];
}

// ---- the page -----------------------------------------------------------------------------------

/** Whether the reader wants motion reduced. */
export const reducedMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Whether the page is dark: the book says it of the whole document, JupyterLab of its body. */
export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme === undefined ? document.body.dataset.jpThemeLight === "false" : theme === "dark";
}

const COLORS = ["ink", "muted", "rule", "paper", "accent", "warm", "q", "k"];

/** { dark, font, ink, muted, ... }: what figure.css sets in the theme that `root` is marked with. */
export function themeColors(root) {
  const style = getComputedStyle(root);
  const read = (name) => [name, style.getPropertyValue(`--rope-${name}`).trim()];
  return { ...Object.fromEntries(COLORS.map(read)), font: style.fontFamily, dark: root.dataset.ropeTheme === "dark" };
}

/** Mark `root` with the page's theme, now and whenever it changes; returns a function that stops. */
export function followTheme(root, changed = () => {}) {
  const mark = () => {
    root.dataset.ropeTheme = isDark() ? "dark" : "light";
    changed();
  };
  const themes = new MutationObserver(mark);
  const watched = { attributes: true, attributeFilter: ["data-theme", "data-jp-theme-light"] };
  themes.observe(document.documentElement, watched);
  themes.observe(document.body, watched);
  mark();
  return () => themes.disconnect();
}
