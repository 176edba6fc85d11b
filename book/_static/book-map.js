// The map of the book: each reading path below it becomes a button that lights its own pages.
document.addEventListener("DOMContentLoaded", () => {
  const map = document.querySelector("nav.book-map");
  const paths = [...document.querySelectorAll(".reading-paths li")];
  if (!map) return;

  const pageOf = (link) => new URL(link.getAttribute("href"), location.href).pathname;
  const stops = [...map.querySelectorAll(".map-stop")].map((stop) => ({
    stop,
    page: pageOf(stop.matches("a") ? stop : stop.querySelector("a")),
  }));

  const buttons = paths.map((path) => {
    const name = path.querySelector("em");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name.textContent;
    button.setAttribute("aria-pressed", "false");
    name.replaceWith(button);
    const pages = new Set([...path.querySelectorAll("a")].map(pageOf));
    button.addEventListener("click", () => {
      const chosen = button.getAttribute("aria-pressed") === "false";
      for (const other of buttons) other.setAttribute("aria-pressed", String(chosen && other === button));
      for (const { stop, page } of stops) stop.classList.toggle("map-off", chosen && !pages.has(page));
    });
    return button;
  });
});
