// Walk through a derivation card by card. Without JavaScript all cards stand on the page, in order;
// this script shows one at a time, above it the statements that it rests on.
//
// On every move it dispatches "rope:step" on the document, with { derivation, step } as detail, so
// that a figure can follow.

const MOVES = { ArrowLeft: -1, ArrowRight: 1 };

function element(tag, className, text = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

function makeStepper(derivation) {
  const cards = [...derivation.querySelectorAll(".derivation-step")];
  const list = derivation.querySelector(".derivation-steps");
  const title = derivation.querySelector(".derivation-title").textContent;

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
    for (const name of card.dataset.follows.split(" ")) {
      const source = cards.find((other) => other.dataset.step === name);
      const link = element("a", "stepper-premise");
      link.href = `#${source.id}`;
      link.append(element("span", "stepper-premise-name", name.replaceAll("-", " ")));
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
    const name = card.dataset.step.replaceAll("-", " ");
    where.textContent = open
      ? `${cards.length} steps`
      : `Step ${at + 1} of ${cards.length}: ${name}, ${card.dataset.kind}`;
    derivation.dataset.at = card.dataset.step;
    if (!quiet) {
      const detail = { derivation: derivation.id, step: card.dataset.step };
      document.dispatchEvent(new CustomEvent("rope:step", { detail }));
    }
  }

  previous.addEventListener("click", () => show(at - 1));
  next.addEventListener("click", () => show(at + 1));
  all.addEventListener("click", () => {
    open = !open;
    show(at);
  });
  bar.addEventListener("keydown", (event) => {
    if (open || !(event.key in MOVES)) return;
    event.preventDefault();
    show(at + MOVES[event.key]);
    // a disabled button would lose the focus
    const wanted = event.key === "ArrowLeft" ? previous : next;
    (wanted.disabled ? (wanted === next ? previous : next) : wanted).focus();
  });

  function follow() {
    const index = cards.findIndex((card) => `#${card.id}` === decodeURIComponent(location.hash));
    if (index < 0) return;
    show(index);
    cards[index].scrollIntoView({ block: "center" });
  }
  window.addEventListener("hashchange", follow);
  window.addEventListener("beforeprint", () => {
    open = true;
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
