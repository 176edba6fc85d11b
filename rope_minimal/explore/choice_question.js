// Predict, then look: one of some answers.
import { setRich } from "./kit.js";
import { question } from "./question.js";

let asked = 0; // to give each question's radio buttons a group of their own

export default question((ask, model) => {
  const group = `rope-question-${model.model_id ?? ""}-${asked++}`;
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
