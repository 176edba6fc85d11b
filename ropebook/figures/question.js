// Predict, then look: what the two kinds of question share.
import { figureName, make, newId, setRich } from "./kit/dom.js";
import { followTheme } from "./kit/theme.js";

/**
 * Render a question. inputs(form, model, prompt) puts native inputs into the fieldset, named after the
 * element with the id `prompt`, and returns
 * { given: () => answer or null, right: (answer) => boolean, truth: text, missing: text }.
 */
export function question(inputs) {
  return {
    render({ model, el }) {
      const prompt = newId();
      const legend = make("legend", { className: "rope-prompt", id: prompt });
      setRich(legend, model.get("prompt"));
      const form = make("fieldset", { className: "rope-ask" }, legend);
      const root = make("div", { className: "rope-figure", "data-figure": figureName(model) }, form);
      const { given, right, truth, missing } = inputs(form, model, prompt);
      const verdict = make("p", { className: "rope-verdict", role: "status" });
      const answer = (state, content) => {
        root.dataset.verdict = state;
        verdict.className = `rope-verdict rope-${state}`;
        setRich(verdict, content);
      };
      const grade = () => {
        const value = given();
        if (value === null) answer("missing", missing);
        else if (right(value)) answer("right", `**Yes.** ${model.get("why")}`);
        else answer("wrong", "**Not so.** Look again, or show the answer.");
      };
      const show = () => answer("shown", `**${truth}** ${model.get("why")}`);
      const buttons = [button("Check", "rope-show", grade), button("Show the answer", "rope-reset", show)];
      for (const node of buttons) node.setAttribute("aria-describedby", prompt);
      form.append(make("div", { className: "rope-answer-row" }, ...buttons), verdict);
      form.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && event.target.tagName === "INPUT") {
          event.preventDefault();
          grade();
        }
        event.stopPropagation(); // typing an answer is no command to the notebook
      });
      el.append(root);
      return followTheme(root);
    },
  };
}

const button = (label, className, onclick) =>
  make("button", { type: "button", className: `rope-button ${className}`, onclick }, label);
