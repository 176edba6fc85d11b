// Predict, then look: a number.
import { make } from "./kit/dom.js";
import { question } from "./question.js";

/** A number as people write it, or null: 1e4, 10,000, 0,5, −3, 3/4. */
export function readNumber(written) {
  let plain = written
    .trim()
    .replace(/[\s\u202f_]/g, "")
    .replace("−", "-");
  if (/^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(plain)) plain = plain.replaceAll(",", "");
  else if (/^[+-]?\d*,\d+$/.test(plain)) plain = plain.replace(",", ".");
  const parts = plain.split("/");
  if (parts.length > 2 || parts.some((part) => !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part))) return null;
  const value = parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : Number(parts[0]);
  return Number.isFinite(value) ? value : null;
}

export default question((form, model, prompt) => {
  const input = make("input", { type: "text", inputMode: "decimal", autocomplete: "off", "aria-labelledby": prompt });
  const unit = model.get("unit") ? ` ${model.get("unit")}` : "";
  form.append(make("div", {}, input, make("span", {}, unit)));
  return {
    given: () => readNumber(input.value),
    right: (value) => Math.abs(value - model.get("answer")) <= model.get("tolerance"),
    truth: `${model.get("answer")}${unit}.`,
    missing: "Write a number first, for instance 0.5 or 1e4.",
  };
});
