// dom.js: elements and what is written into them.

/** An element with properties and attributes ("aria-label", "role", "data-..."), and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Put text with **bold** and `code` into a node, never as HTML. */
export function setRich(node, content) {
  if (node.ropeContent === content) return;
  node.ropeContent = content;
  const parts = String(content).split(/(\*\*.+?\*\*|`.+?`)/);
  node.replaceChildren(
    ...parts.map((part) => {
      if (part.startsWith("**")) return make("b", {}, part.slice(2, -2));
      if (part.startsWith("`")) return make("code", {}, part.slice(1, -1));
      return part;
    }),
  );
}

/** The figure's class as words-with-hyphens, for styles and tests: "angle-heatmap". */
export function figureName(model) {
  const name = String(model.get("_anywidget_id") ?? "")
    .split(".")
    .pop();
  return name.replace(/(?!^)([A-Z])/g, "-$1").toLowerCase();
}

/** An id that no other figure has: in a notebook each is a module of its own, so counting would not do. */
export const newId = () => `rope-${Math.random().toString(36).slice(2)}`;
