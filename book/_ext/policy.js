// A page of the book in a frame of another site shows a line with a link instead (policy.py).
(() => {
  try {
    if (window.top.location.origin === window.location.origin) return;
  } catch {} // another origin's, or a file's
  if (window.top === window) return;
  window.stop(); // nothing more of the page is read
  const link = Object.assign(document.createElement("a"), {
    href: window.location.href,
    target: "_blank",
    rel: "noopener",
    textContent: "Read it on its own.",
  });
  const line = document.createElement("p");
  line.append(`“${document.title}” cannot be read inside another site. `, link);
  const body = document.createElement("body");
  body.style.cssText = "padding: 1em; font: 1rem/1.5 sans-serif; color: #1d2630; background: #fff";
  body.append(line);
  document.documentElement.replaceChildren(document.head, body);
})();
