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
});
