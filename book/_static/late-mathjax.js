// MathJax comes when something first writes a formula: a live cell that has run, or a figure. Those
// of the text were typeset when the book was built (book/_ext/formulas.py).
const { mathjax } = document.currentScript.dataset;
const settings = { typeset: false };
let real;
let loading;

function load() {
  loading ??= new Promise((loaded, failed) => {
    const script = document.createElement("script");
    document.head.append(Object.assign(script, { src: mathjax, onload: loaded, onerror: failed }));
  }).then(async () => {
    real = window.MathJax;
    await real.startup.promise;
  });
  return loading;
}

const later =
  (name) =>
  (...given) =>
    load().then(() => real[name](...given));

// until then this stands in its place; MathJax reads it as its settings
const stub = {
  options: { processHtmlClass: "tex2jax_process|mathjax_process" },
  get startup() {
    return real?.startup ?? settings;
  },
  typesetPromise: later("typesetPromise"),
  tex2chtmlPromise: later("tex2chtmlPromise"),
};
window.MathJax = stub;
