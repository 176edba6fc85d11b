// Predict, then look: one of some answers.
import { make, setRich } from "./kit/dom.js";
import { question } from "./question.js";

export default question((form, model, prompt) => {
  const options = model.get("options");
  const inputs = options.map((option) => {
    const input = make("input", { type: "radio", name: prompt });
    const words = make("span");
    setRich(words, option);
    form.append(make("label", { className: "rope-option" }, input, words));
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
