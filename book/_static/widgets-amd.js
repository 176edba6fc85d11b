// Tell RequireJS where this site keeps the widget code, so that no page asks another host for it.
// Loaded between require.js and embed-amd.js, on pages that carry widgets only.
(() => {
  const vendor = new URL(`${document.documentElement.dataset.content_root}_static/vendor/`, document.location.href)
    .href;
  window.requirejs.config({
    paths: {
      anywidget: `${vendor}anywidget/index`,
      // all of them are in embed-amd.js; they ask for their icon fonts beside these addresses
      "@jupyter-widgets": `${vendor}html-manager`,
      "@jupyter-widgets/html-manager/dist": `${vendor}html-manager`,
    },
  });
  // the page carries the code of the figures once (book/_ext/page.py), the widgets want it in each
  const code = JSON.parse(document.getElementById("widget-code").textContent);
  const state = document.querySelector("script[type$='widget-state+json']");
  const data = JSON.parse(state.textContent);
  for (const model of Object.values(data.state)) {
    for (const name of ["_esm", "_css"]) {
      if (name in model.state) model.state[name] = code[model.state[name]];
    }
  }
  state.textContent = JSON.stringify(data);
})();
