"""Reading a figure's state and moving its controls, as a reader with a keyboard does."""

# a change is laid out in the next frame and drawn in the one after it, however busy the machine is
FRAMES = "await new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)));"
# pixels of every canvas and the words of a figure, once it has drawn: what a control drives
STATE = (
    f"async figure => {{ {FRAMES}"
    """
    const pixels = [...figure.querySelectorAll('canvas')].map(canvas => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let hash = 0;
        for (const word of new Uint32Array(data.buffer)) hash = (Math.imul(hash, 31) + word) | 0;
        return hash;
    });
    const drawings = [...figure.querySelectorAll('svg')].map(svg => svg.outerHTML);
    // what a screen reader hears comes later, and is no part of what is seen
    const seen = [...figure.querySelectorAll(':scope > :not(.rope-spoken)')];
    return JSON.stringify([seen.map(part => part.innerText), drawings, pixels]);
}"""
)


def settle(page):
    """Wait until what was changed stands on the page."""
    page.evaluate(f"async () => {{ {FRAMES} }}")


def unfold(box):
    """Show the controls of a figure that lie in its fold."""
    closed = box.locator(".rope-unfold[aria-expanded=false]")
    closed.evaluate_all("all => all.forEach(button => button.click())")


def state(figure):
    return figure.evaluate(STATE)


def move(handle):
    """Move a slider by keyboard, away from the end it may stand at."""
    handle.focus()
    before = handle.get_attribute("aria-valuetext")
    for key in ("ArrowRight", "ArrowLeft"):
        for _ in range(3):
            handle.press(key)
        if handle.get_attribute("aria-valuetext") != before:
            return
    raise AssertionError("the slider does not move by keyboard")
