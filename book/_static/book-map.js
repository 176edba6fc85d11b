// The map of the book: each reading path becomes a button above it that lights the path's own pages.
document.addEventListener("DOMContentLoaded", () => {
  const map = document.querySelector("nav.book-map");
  const paths = [...document.querySelectorAll(".reading-paths li")];
  if (!map) return;

  const pageOf = (link) => new URL(link.getAttribute("href"), location.href).pathname;
  const stops = [...map.querySelectorAll(".map-stop")].map((stop) => ({
    stop,
    page: pageOf(stop.matches("a") ? stop : stop.querySelector("a")),
  }));

  const row = document.createElement("div");
  row.className = "map-paths";
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", "Reading paths");
  map.prepend(row);

  const buttons = paths.map((path) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = path.querySelector("em").textContent;
    button.setAttribute("aria-pressed", "false");
    row.append(button);
    const pages = new Set([...path.querySelectorAll("a")].map(pageOf));
    button.addEventListener("click", () => {
      const chosen = button.getAttribute("aria-pressed") === "false";
      for (const other of buttons) other.setAttribute("aria-pressed", String(chosen && other === button));
      for (const other of paths) other.classList.toggle("map-path", chosen && other === path);
      for (const { stop, page } of stops) stop.classList.toggle("map-off", chosen && !pages.has(page));
    });
    return button;
  });
});
