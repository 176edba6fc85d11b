// Small corrections of the theme, on every page.
document.addEventListener("DOMContentLoaded", () => {
  // The theme opens a notebook's JSON in a new tab; a reader wants the file.
  for (const link of document.querySelectorAll("a.btn-download-source-button, a.btn-download-notebook-button")) {
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
  // A link finds what it leads to unfolded, and a second check open.
  const unfold = () => {
    const at = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    if (at?.matches(".second-check")) at.querySelector("details").open = true;
    for (let fold = at?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  };
  unfold();
  window.addEventListener("hashchange", unfold);
  // A box is cited by its name, the book's and an address; the link itself leads there, too.
  for (const link of document.querySelectorAll("a.cite")) {
    const name = link.getAttribute("aria-label");
    link.addEventListener("click", async () => {
      const title = document.title.replace(" \u2014 ", ". ");
      await navigator.clipboard?.writeText(`${name.replace("Cite ", "")}. In: ${title}. ${link.href}`);
      link.textContent = "copied";
      link.setAttribute("aria-label", `${name}: copied`);
      setTimeout(() => {
        link.textContent = "cite";
        link.setAttribute("aria-label", name);
      }, 2000);
    });
  }
  // Fifty buttons of one name tell nobody what they copy: each says how its block begins.
  for (const button of document.querySelectorAll("button.copybtn")) {
    const [line] = button.closest("div.highlight").querySelector("pre").textContent.trim().split("\n");
    button.setAttribute("aria-label", `Copy the code that begins: ${line.slice(0, 60)}`);
  }
  // Figures and formulas come later and push down what a link led to: hold it in view until the
  // reader does something, or the page has come to rest.
  const stay = () => {
    const at = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    if (!at) return;
    const hold = new ResizeObserver(() => at.scrollIntoView({ behavior: "instant" }));
    const end = () => hold.disconnect();
    hold.observe(document.body);
    setTimeout(end, 10_000);
    for (const type of ["wheel", "touchstart", "pointerdown", "keydown"]) {
      window.addEventListener(type, end, { once: true, passive: true });
    }
  };
  stay();
  window.addEventListener("hashchange", stay);
  // To lay out a chapter at once takes a phone long: its sections wait (book.css), and get a frame each.
  // The theme measures all of them to mark in the contents what is read: that begins when they stand.
  document.body.removeAttribute("data-bs-spy");
  window.addEventListener("load", async () => {
    const frame = () => new Promise(requestAnimationFrame);
    for (const section of document.querySelectorAll(".openings ~ section[id], .openings ~ section section[id]")) {
      await frame();
      section.classList.add("laid-out");
    }
    await frame();
    window.bootstrap.ScrollSpy.getOrCreateInstance(document.body);
  });
  // Paper is white: a page is printed in the light theme.
  const root = document.documentElement;
  let worn = null;
  window.addEventListener("beforeprint", () => {
    worn ??= root.dataset.theme;
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    root.dataset.theme = worn ?? root.dataset.theme;
    worn = null;
  });
  // Handouts are printed with all their answers unfolded or with none, and are then as they were.
  for (const button of document.querySelectorAll("button[data-answers]")) {
    button.addEventListener("click", () => {
      const folds = [...document.querySelectorAll("details.answer")];
      const open = folds.map((fold) => fold.open);
      const fold = (wanted) => {
        for (const [i, answer] of folds.entries()) answer.open = wanted(i);
      };
      fold(() => button.dataset.answers === "with");
      window.addEventListener("afterprint", () => fold((i) => open[i]), { once: true });
      window.print();
    });
  }
  // What is wider than its place fades at the right edge until it is scrolled to its end.
  const goesOn = (box) => box.scrollWidth - box.clientWidth - box.scrollLeft > 2;
  const fade = (box, more) => box.classList.toggle("goes-on", more);
  // Formulas (book/_ext/formulas.py) and the colours of code (book/_ext/colours.py) come when a
  // reader comes near, and for paper all of them.
  const fill = (place) => {
    near.unobserve(place);
    if (place.matches("mjx-container")) {
      place.innerHTML = place.firstElementChild.textContent;
      place.classList.remove("later");
      return;
    }
    const words = place.textContent;
    let at = 0;
    const parts = place.dataset.colours.split(" ").map((run) => {
      const length = Number.parseInt(run, 10);
      const word = words.slice(at, at + length);
      at += length;
      const className = run.slice(String(length).length);
      return className ? Object.assign(document.createElement("span"), { className, textContent: word }) : word;
    });
    place.replaceChildren(...parts, words.slice(at));
    place.removeAttribute("data-colours");
  };
  const near = new IntersectionObserver(
    (all) => {
      for (const { isIntersecting, target } of all) if (isIntersecting) fill(target);
    },
    { rootMargin: "100% 0%" },
  );
  const waiting = () => document.querySelectorAll("mjx-container.later, pre[data-colours]");
  for (const place of waiting()) near.observe(place);
  window.addEventListener("beforeprint", () => waiting().forEach(fill));
  // What is wider than its place can be scrolled with the keyboard, too. All is measured before anything
  // changes: after each change, what is measured next would have the browser lay out the page again.
  const widths = new ResizeObserver((entries) => {
    const boxes = entries.map(({ target }) => target);
    const found = boxes.map((box) => [box, goesOn(box), box.scrollWidth > box.clientWidth]);
    for (const [box, more, wider] of found) {
      fade(box, more);
      if (wider) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  });
  const watch = (selector) => {
    for (const box of document.querySelectorAll(selector)) {
      widths.observe(box);
      box.addEventListener("scroll", () => fade(box, goesOn(box)), { passive: true });
    }
  };
  const wide = "pre, .pst-scrollable-table-container, .derivation-statement, mjx-container[display]";
  watch(`.bd-article :is(${wide}, .cell_output > .text_html, .cell_output:has(> a > img))`);
});
