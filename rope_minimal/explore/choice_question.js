// Predict, then look: one of some answers.
import { setRich } from "./kit.js";
import { question } from "./question.js";

export default question((ask, model) => {
  // a group of its own: every question of a page is a module of its own, so counting would not do
  const group = `rope-question-${Math.random().toString(36).slice(2)}`;
  const options = model.get("options");
  const inputs = options.map((option) => {
    const label = Object.assign(document.createElement("label"), { className: "rope-option" });
    const input = Object.assign(document.createElement("input"), { type: "radio", name: group });
    const words = document.createElement("span");
    setRich(words, option);
    label.append(input, words);
    ask.append(label);
    return input;
  });
  return {
    given() {
      const index = inputs.findIndex((input) => input.checked);
      return index < 0 ? null : index;
    },
    right: (index) => index === model.get("answer"),
    truth: `${options[model.get("answer")]}.`.replace(/([.!?])\.$/, "$1"),
    missing: "Choose an answer first.",
  };
});
