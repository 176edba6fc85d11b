// The chapters as cards: the button of a reading path leaves its own pages and says what they are for.
document.addEventListener("DOMContentLoaded", () => {
  const buttons = [...document.querySelectorAll(".map-paths button")];
  const paths = [...document.querySelectorAll(".reading-paths > li")];
  const cards = [...document.querySelectorAll(".map-cards > li")];
  const pageOf = (link) => new URL(link.getAttribute("href"), location.href).pathname;

  for (const [index, button] of buttons.entries()) {
    button.addEventListener("click", () => {
      const chosen = button.getAttribute("aria-pressed") === "false" ? index : -1;
      for (const [i, other] of buttons.entries()) other.setAttribute("aria-pressed", String(i === chosen));
      for (const [i, path] of paths.entries()) path.classList.toggle("map-path", i === chosen);
      const pages = chosen < 0 ? null : new Set([...paths[chosen].querySelectorAll("a")].map(pageOf));
      for (const card of cards) card.hidden = pages !== null && !pages.has(pageOf(card.querySelector("a")));
    });
  }
});
