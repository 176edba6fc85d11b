// controls.js: names for the controls of a figure, and a fold for those that are seldom wanted.
import { make, onceShown } from "./dom.js";

const WATCHED = { subtree: true, childList: true, characterData: true, attributes: true };

/**
 * ipywidgets gives its sliders' handles no name. Name them after their labels, wherever the figure
 * is shown, and let them speak the number that is shown instead of the handle's own. Returns a
 * function that stops.
 */
export function nameControls(root) {
  let box = null;
  // a control may come after the figure; what the figure itself writes is no control
  const changes = new MutationObserver((records) => {
    if (records.some(({ target }) => !root.contains(target))) nameIn(box);
  });
  const stopWaiting = onceShown(root, () => {
    box = root.closest(".rope-box");
    if (!box) return;
    changes.observe(box, { ...WATCHED, attributeFilter: ["class", "aria-valuetext"] });
    nameIn(box);
  });
  return () => {
    stopWaiting();
    changes.disconnect();
  };
}

function nameIn(box) {
  for (const more of box.querySelectorAll(".rope-more:not([id])")) fold(more);
  for (const control of box.querySelectorAll(".rope-controls > *")) {
    const label = control.querySelector(".widget-label")?.textContent.trim();
    if (label) nameControl(control, label);
  }
}

function nameControl(control, label) {
  const readout = control.querySelector(".widget-readout");
  for (const node of control.querySelectorAll('[title="null"]')) node.removeAttribute("title");
  for (const handle of control.querySelectorAll(".noUi-handle")) {
    set(handle, "aria-label", label);
    if (readout) set(handle, "aria-valuetext", readout.textContent);
  }
  if (readout) {
    set(readout, "role", "textbox");
    set(readout, "aria-label", `${label}, value`);
  }
  if (control.classList.contains("widget-toggle-buttons")) {
    set(control, "role", "group");
    set(control, "aria-label", label);
    for (const button of control.querySelectorAll("button")) {
      set(button, "aria-pressed", String(button.classList.contains("mod-active")));
    }
  }
}

let folds = 0;

/** Put a button in front of the controls that a reader seldom wants, which shows and hides them. */
function fold(more) {
  more.id = `rope-more-${++folds}`;
  const button = make("button", { type: "button", className: "rope-button rope-unfold", "aria-controls": more.id });
  button.textContent = "More settings";
  const show = (open) => {
    more.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => show(more.hidden));
  show(false);
  more.before(button);
}

/** Set an attribute unless it is so already: every change calls the observer again. */
function set(node, attribute, wanted) {
  if (node.getAttribute(attribute) !== wanted) node.setAttribute(attribute, wanted);
}
