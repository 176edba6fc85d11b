// Small corrections of the theme, on every page.
document.addEventListener("DOMContentLoaded", () => {
  // The theme opens a notebook's JSON in a new tab; a reader wants the file.
  for (const link of document.querySelectorAll(
    "a.btn-download-source-button, a.btn-download-notebook-button",
  )) {
    link.setAttribute("download", "");
    link.removeAttribute("target");
  }
  // A button's accessible name has to contain the words seen on it.
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.removeAttribute("aria-label");
  }
  // The page's policy runs no onclick attributes (book/_ext/policy.py); these are the theme's.
  const actions = {
    "window.print()": () => window.print(),
    "toggleFullScreen()": () => window.toggleFullScreen(),
  };
  for (const button of document.querySelectorAll("[data-onclick]")) {
    button.addEventListener("click", actions[button.dataset.onclick]);
  }
  // A line does not begin with the comma after a formula, nor end with the bracket before one.
  for (const formula of document.querySelectorAll(".bd-article span.math")) {
    const [before, after] = [formula.previousSibling, formula.nextSibling];
    const open = before?.nodeType === 3 ? before.data.match(/[\p{Ps}\p{Pi}]+$/u)?.[0] : "";
    const close = after?.nodeType === 3 ? after.data.match(/^[\p{P}s]+/u)?.[0] : "";
    if (!open && !close) continue;
    const whole = document.createElement("span");
    whole.className = "unbroken";
    formula.before(whole);
    if (open) whole.append(before.splitText(before.length - open.length));
    whole.append(formula);
    if (close) {
      after.splitText(close.length);
      whole.append(after);
    }
  }
  // A formula that is wider than its place can be scrolled with the keyboard too.
  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  window.MathJax?.startup?.promise?.then(() => {
    for (const formula of document.querySelectorAll("mjx-container[display]")) {
      widths.observe(formula);
    }
  });
});
