// Search as one types, under the theme's field in a dialog (Ctrl+K) and on the page of results. What it needs,
// 0.3 MB compressed, is loaded when somebody begins; book/_search knows how to find.
(() => {
  const here = document.currentScript.src; // .../_static/search.js
  const at = (path) => new URL(path, here).href;
  const SHOWN = { dialog: 8, page: 50 };
  const element = (tag, properties, ...inside) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...inside);
    return made;
  };

  const script = (name) =>
    new Promise((loaded, failed) => {
      const made = element("script", { src: at(`search/${name}.js`), onload: loaded });
      made.onerror = () => failed(new Error(name));
      document.head.append(made);
    });
  let begun = null;
  const begin = () => {
    begun ??= script("engine").then(() => Promise.all([script("index"), script("texts")]));
    return begun;
  };

  const hit = ({ url, page, title, show }) => {
    const pieces = show().map(([text, found]) => (found ? element("mark", {}, text) : text));
    const where = page === title ? [] : [element("span", { className: "hit-page" }, page)];
    const text = element("span", { className: "hit-text" }, ...pieces);
    const name = element("span", { className: "hit-title" }, title);
    return element("li", {}, element("a", { href: at(`../${url}`) }, name, " ", ...where, " ", text));
  };

  const serve = (form) => {
    const input = form.querySelector("input");
    const dialog = form.closest("dialog");
    const said = element("p", { className: "hits-said", role: "status" });
    const list = element("ol", { className: "hits-list" });
    const all = element("a", { className: "hits-all", href: at("../search.html"), hidden: true });
    const hits = element("div", { className: "hits" }, said, list, ...(dialog ? [all] : []));
    form.after(hits);

    const answer = async () => {
      const query = input.value.trim();
      hits.hidden = !query;
      if (!query) return;
      try {
        await begin();
      } catch {
        said.textContent = "The index of this search did not load. Ask again when you are back on line.";
        begun = null;
        return;
      }
      if (query !== input.value.trim()) return; // somebody typed on
      const found = window.bookSearch.find(query);
      const some = found.slice(0, dialog ? SHOWN.dialog : SHOWN.page);
      list.replaceChildren(...some.map(hit));
      said.textContent = found.length
        ? `${found.length} ${found.length === 1 ? "place" : "places"}`
        : `Nothing found for “${query}”. Part of a word, or fewer words, may find more.`;
      all.hidden = found.length <= some.length;
      all.textContent = `All ${found.length} places`;
      all.href = `${at("../search.html")}?q=${encodeURIComponent(query)}`;
      if (!dialog) window.history.replaceState(null, "", `?q=${encodeURIComponent(query)}`);
    };
    input.addEventListener("focus", () => begin().catch(() => {}), { once: true });
    input.addEventListener("input", answer);
    if (!dialog) {
      form.addEventListener("submit", (event) => event.preventDefault());
      input.value = new URLSearchParams(window.location.search).get("q") ?? "";
      input.focus();
    }
    answer();

    // arrows lead from the field through the places and back
    const go = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || event.ctrlKey || event.metaKey) return;
      const stops = [input, ...hits.querySelectorAll("a:not([hidden])")];
      const next = stops[stops.indexOf(document.activeElement) + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
    };
    form.addEventListener("keydown", go);
    hits.addEventListener("keydown", go);
    hits.addEventListener("click", (event) => event.target.closest("a") && dialog?.close());
  };

  for (const form of document.querySelectorAll("form.bd-search")) serve(form);
})();
