// Predict, then look: what the two kinds of question share.
import { figureName, followTheme, setRich } from "./kit.js";

/**
 * Render a question. inputs(ask, model) puts native inputs into the fieldset and returns
 * { given: () => answer or null, right: (answer) => boolean, truth: text, missing: text }.
 */
export function question(inputs) {
  return {
    render({ model, el }) {
      const root = node("div", "rope-figure");
      root.dataset.figure = figureName(model);
      const ask = node("fieldset", "rope-ask");
      const legend = node("legend", "rope-prompt");
      setRich(legend, model.get("prompt"));
      ask.append(legend);
      const { given, right, truth, missing } = inputs(ask, model);

      const row = node("div", "rope-answer-row");
      const check = button(row, "Check", "rope-show");
      const show = button(row, "Show the answer", "rope-reset");
      const verdict = node("p", "rope-verdict");
      verdict.setAttribute("role", "status");
      ask.append(row, verdict);
      root.append(ask);
      el.append(root);

      const tell = (state, content) => {
        root.dataset.verdict = state;
        verdict.className = `rope-verdict rope-${state}`;
        setRich(verdict, content);
      };
      const grade = () => {
        const answer = given();
        if (answer === null) tell("missing", missing);
        else if (right(answer)) tell("right", `**Yes.** ${model.get("why")}`);
        else tell("wrong", "**Not so.** Look again, or show the answer.");
      };
      check.addEventListener("click", grade);
      show.addEventListener("click", () => tell("shown", `**${truth}** ${model.get("why")}`));
      ask.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && event.target.tagName === "INPUT") {
          event.preventDefault();
          grade();
        }
        event.stopPropagation(); // typing an answer is no command to the notebook
      });
      return followTheme(root);
    },
  };
}

function node(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function button(row, label, className) {
  const made = node("button", `rope-button ${className}`, label);
  made.type = "button";
  row.append(made);
  return made;
}
