// What the page of a figure does beside drawing it (alone.py): it tells the page around its frame
// how high it is, and copies the code of a frame, or its address, in the state that it shows.
(() => {
  const framed = window.parent !== window;
  const root = document.documentElement;
  // the theme that a reader of the book has chosen there, unless the address names one
  const asked = new URLSearchParams(window.location.search).has("theme");
  try {
    const { mode } = localStorage;
    if (!asked && (mode === "light" || mode === "dark")) root.dataset.theme = mode;
  } catch {} // another site's frame, or a file

  if (framed) {
    for (const link of document.querySelectorAll("footer a"))
      Object.assign(link, { target: "_blank", rel: "noopener" });
    const tell = () => {
      const height = Math.ceil(document.body.getBoundingClientRect().height);
      window.parent.postMessage({ type: "rope-figure", height }, "*"); // no secret, and anybody's frame
    };
    new ResizeObserver(tell).observe(document.body);
  }

  /** The address of what is shown. */
  const address = () => {
    const url = new URL(window.location.href);
    const theme = url.searchParams.get("theme");
    url.search = window.ropeHost.shown.address();
    if (theme) url.searchParams.set("theme", theme);
    url.hash = "";
    return url.href;
  };
  const quoted = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const texts = {
    address,
    // as high as the figure is on a phone or on a desk, by the width of the window: no script needed
    frame: ({ desk, phone }) =>
      `<iframe src="${quoted(address())}" title="${quoted(document.title)}" loading="lazy" ` +
      `width="100%" height="${phone}" ` +
      `style="border: 0; height: max(${desk}px, min(${phone}px, (700px - 100vw) * 99))"></iframe>`,
  };
  const shown = document.createElement("textarea");
  Object.assign(shown, { readOnly: true, rows: 3, ariaLabel: "To copy" });
  /** Copy a text; where that is not allowed show it to be copied by hand. */
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      shown.remove();
      return true;
    } catch {
      shown.value = text;
      document.querySelector("footer").append(shown);
      shown.select();
      return document.execCommand("copy");
    }
  };
  for (const button of document.querySelectorAll("button[data-copies]")) {
    // nobody can frame a file of somebody else's disk
    if (button.dataset.copies === "frame" && window.location.protocol === "file:") button.hidden = true;
    const name = button.textContent;
    button.addEventListener("click", async () => {
      const done = await copy(texts[button.dataset.copies](button.parentElement.dataset));
      button.textContent = done ? "Copied" : "Copy the text below";
      setTimeout(() => {
        button.textContent = name;
      }, 2000);
    });
  }
})();
