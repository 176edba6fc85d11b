// plot.js: one canvas of a figure, as wide as the figure and sharp on every screen.

const KEYS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  Home: [-Infinity, 0],
  End: [Infinity, 0],
  PageUp: [0, -10],
  PageDown: [0, 10],
};

/** A plot of `fig` on a canvas: { canvas, ctx, width, height, colors, fit(), clear() }; see figure.js. */
export function makePlot(fig, canvas, { label, height, point, drag, sideways = false, keys }) {
  const heightOf = typeof height === "function" ? height : () => height;
  const plot = {
    canvas,
    ctx: canvas.getContext("2d"),
    width: 0,
    height: 0,
    ratio: 1,
    get colors() {
      return fig.colors;
    },
    /** Take the figure's width; false as long as it has none. */
    fit() {
      const width = Math.floor(canvas.parentElement.clientWidth);
      if (!width) return false;
      const size = { width, height: Math.round(heightOf(width)), ratio: window.devicePixelRatio || 1 };
      if (Object.entries(size).some(([name, value]) => plot[name] !== value)) {
        Object.assign(plot, size);
        canvas.style.height = `${size.height}px`;
        canvas.width = Math.round(width * size.ratio);
        canvas.height = Math.round(size.height * size.ratio);
      }
      return true;
    },
    clear() {
      plot.ctx.setTransform(plot.ratio, 0, 0, plot.ratio, 0, 0);
      plot.ctx.clearRect(0, 0, plot.width, plot.height);
      return plot;
    },
  };
  canvas.setAttribute("aria-label", label);
  canvas.setAttribute("role", keys ? "application" : "img");
  if (point) onPointer(fig, canvas, point);
  if (drag) onDrag(canvas, drag, sideways);
  if (keys) onKeys(canvas, keys);
  return plot;
}

const TAP = 10; // pixels: a finger that moves farther does not tap
const TURNED = 8; // pixels after which it is clear where a finger goes

const place = (canvas, { clientX, clientY }) => {
  const { left, top } = canvas.getBoundingClientRect();
  return { x: clientX - left, y: clientY - top };
};

/** A mouse points where it is; a finger where it taps, for while it moves it scrolls the page. */
function onPointer(fig, canvas, point) {
  canvas.classList.add("rope-touch");
  let down = null; // where the finger came down
  let last = null; // where the mouse was: a page that scrolls under one that stays points at nothing
  const moved = ({ clientX: x, clientY: y }) => {
    const stays = last?.x === x && last.y === y;
    last = { x, y };
    return !stays;
  };
  const on = (event, type, wanted) =>
    canvas.addEventListener(event, (at) => {
      if (wanted(at) && !fig.root.dataset.playing) point({ ...place(canvas, at), type });
    });
  const finger = ({ pointerType }) => pointerType === "touch";
  const tap = (at) => finger(at) && Math.hypot(at.clientX - down?.clientX, at.clientY - down?.clientY) < TAP;
  on("pointerdown", "pointerdown", (at) => !finger(at));
  on("pointermove", "pointermove", (at) => moved(at) && !finger(at));
  canvas.addEventListener("pointerdown", (at) => (down = at));
  on("pointerup", "pointerdown", tap); // a finger that scrolls ends with pointercancel, one that swipes elsewhere
}

/** What can be taken; what moves only sideways is let go by a finger that goes up or down, and scrolls the page. */
function onDrag(canvas, drag, sideways) {
  let held = false;
  let from = null; // where a finger came down that may still go either way
  if (sideways) canvas.style.touchAction = "pan-y";
  canvas.addEventListener("pointerdown", (event) => {
    held = event.button === 0 && drag({ ...place(canvas, event), begins: true });
    if (!held) return;
    from = sideways && event.pointerType === "touch" ? event : null;
    canvas.setPointerCapture(event.pointerId);
    event.preventDefault();
    canvas.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held && from) {
      const [across, along] = [event.clientX - from.clientX, event.clientY - from.clientY].map(Math.abs);
      if (Math.max(across, along) < TURNED) return;
      held = across >= along;
      from = null;
    }
    if (held) drag({ ...place(canvas, event), begins: false });
  });
  const release = () => {
    held = false;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  // a finger that holds something moves it; anywhere else it scrolls the page
  canvas.addEventListener("touchmove", (event) => held && !sideways && event.preventDefault(), { passive: false });
}

function onKeys(canvas, keys) {
  canvas.tabIndex = 0;
  const pointed = (yes) => canvas.classList.toggle("rope-pointed", yes); // then its focus has no frame
  canvas.addEventListener("pointerdown", () => pointed(true), true);
  canvas.addEventListener("blur", () => pointed(false));
  canvas.addEventListener("keydown", (event) => {
    pointed(false);
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // or the notebook moves to another cell
    const [dx, dy] = KEYS[event.key].map((step) => (event.shiftKey ? 10 * step : step));
    keys({ dx: dx || 0, dy: dy || 0 });
  });
}
