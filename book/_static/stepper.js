// Walk through a derivation card by card. Without JavaScript all cards stand on the page, in order;
// this script shows one at a time, above it the statements that it rests on. Cards that stand beside
// their prose, a part of a derivation in each cell, stay as they are.
//
// On every move it dispatches "rope:step" on the document, with { derivation, step } as detail, so
// that a figure can follow; and it follows a figure that dispatches "rope:show" with the same.

const MOVES = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

function element(tag, className, text = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

const number = (card) => card.querySelector(".derivation-number").textContent;

function makeStepper(derivation) {
  const cards = [...derivation.querySelectorAll(".derivation-step")];
  const list = derivation.querySelector(".derivation-steps");
  const title = derivation.querySelector(".derivation-title, .derivation-above a").textContent;
  const name = derivation.dataset.derivation;

  const bar = element("div", "stepper-bar");
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", `Steps of: ${title}`);
  const previous = element("button", "stepper-button", "Previous");
  const next = element("button", "stepper-button stepper-next", "Next step");
  const where = element("span", "stepper-where");
  where.setAttribute("aria-live", "polite");
  const all = element("button", "stepper-button stepper-all", "Show all");
  for (const button of [previous, next, all]) button.type = "button";
  bar.append(previous, next, where, all);
  const track = element("div", "stepper-track");
  track.setAttribute("aria-hidden", "true");
  const dots = cards.map((card) => {
    const dot = element("span", "stepper-dot");
    dot.dataset.kind = card.dataset.kind;
    return dot;
  });
  track.append(...dots);
  const premises = element("div", "stepper-premises");
  derivation.insertBefore(bar, list);
  derivation.insertBefore(track, list);
  derivation.insertBefore(premises, list);

  let at = 0;
  let open = false;

  function showPremises(card) {
    premises.replaceChildren();
    premises.hidden = open || !card.dataset.follows;
    if (premises.hidden) return;
    premises.append(element("span", "stepper-from", "From"));
    for (const premise of card.dataset.follows.split(" ")) {
      const source = document.getElementById(`${name}-${premise}`);
      const link = element("a", "stepper-premise");
      link.href = `#${source.id}`;
      link.append(element("span", "stepper-premise-name", premise.replaceAll("-", " ")));
      link.append(source.querySelector(".derivation-statement").cloneNode(true));
      for (const math of link.querySelectorAll("mjx-assistive-mml, [tabindex]")) {
        math.removeAttribute("tabindex");
      }
      premises.append(link);
    }
  }

  function show(index, { quiet = false } = {}) {
    at = Math.min(Math.max(index, 0), cards.length - 1);
    const card = cards[at];
    cards.forEach((other, i) => {
      other.hidden = !open && i !== at;
      dots[i].toggleAttribute("data-current", i === at);
      dots[i].toggleAttribute("data-done", i < at);
    });
    showPremises(card);
    previous.disabled = at === 0;
    next.disabled = at === cards.length - 1;
    previous.hidden = next.hidden = track.hidden = open;
    all.textContent = open ? "One at a time" : "Show all";
    const words = card.dataset.step.replaceAll("-", " ");
    where.textContent = open
      ? `${cards.length} steps`
      : `Step ${number(card)} of ${number(cards.at(-1))}: ${words}, ${card.dataset.kind}`;
    derivation.dataset.at = card.dataset.step;
    if (!quiet) {
      const detail = { derivation: name, step: card.dataset.step };
      document.dispatchEvent(new CustomEvent("rope:step", { detail }));
    }
  }

  for (const [button, by] of [[previous, -1], [next, 1]]) {
    button.addEventListener("click", () => {
      show(at + by);
      if (button.disabled) keepFocus(button);
    });
  }
  all.addEventListener("click", () => {
    open = !open;
    show(at);
  });
  bar.addEventListener("keydown", (event) => {
    if (open || !(event.key in MOVES)) return;
    event.preventDefault();
    show(at + MOVES[event.key]);
    keepFocus(MOVES[event.key] < 0 ? previous : next);
  });

  // a button that has just been disabled would lose the focus
  function keepFocus(wanted) {
    (wanted.disabled ? (wanted === next ? previous : next) : wanted).focus();
  }

  // A link to a card of this derivation, also to the one that the address already names.
  derivation.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const href = event.target.closest?.("a[href^='#']")?.getAttribute("href");
    const index = cards.findIndex((card) => `#${card.id}` === href);
    if (index < 0) return;
    event.preventDefault();
    if (location.hash !== href) history.pushState(null, "", href);
    openAt(index);
  });
  function openAt(index) {
    show(index);
    const card = cards[index];
    card.tabIndex = -1; // the link that was followed may be gone: the card takes the focus
    card.focus({ preventScroll: true });
    const { top, bottom } = card.getBoundingClientRect();
    if (top < 80 || bottom > innerHeight) card.scrollIntoView({ block: "center" });
  }
  document.addEventListener("rope:show", ({ detail }) => {
    if (detail?.derivation !== name) return;
    const index = cards.findIndex((card) => card.dataset.step === detail.step);
    if (index >= 0 && index !== at) show(index);
  });

  function follow() {
    const index = cards.findIndex((card) => `#${card.id}` === decodeURIComponent(location.hash));
    if (index < 0) return;
    openAt(index);
  }
  window.addEventListener("hashchange", follow);
  let wasOpen = false;
  window.addEventListener("beforeprint", () => {
    wasOpen = open;
    open = true;
    show(at, { quiet: true });
  });
  window.addEventListener("afterprint", () => {
    open = wasOpen;
    show(at, { quiet: true });
  });
  derivation.classList.add("stepper");
  show(0, { quiet: true });
  follow();
}

async function start() {
  const derivations = document.querySelectorAll(".derivation");
  if (!derivations.length) return;
  await window.MathJax?.startup?.promise; // statements are copied as they are typeset
  derivations.forEach(makeStepper);
}

if (document.readyState === "complete") start();
else window.addEventListener("load", start);
