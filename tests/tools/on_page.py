"""A figure on a page of the built book, driven by its own controls."""

import json

from tests.tools.browser import wait_for

NEAR = {"rel": 1e-9, "abs": 1e-9}


class OnPage:
    """One figure on a page, driven by its own controls."""

    def __init__(self, page, name: str) -> None:
        self.page = page
        self.box = page.locator(f".rope-box:has(.rope-figure[data-figure='{name}'])").first
        self.figure = self.box.locator(".rope-figure")

    def control(self, label: str):
        return self.box.locator(".rope-controls > *").filter(has_text=label).first

    def write(self, label: str, value: float) -> None:
        """Type a number into a slider's readout."""
        readout = self.control(label).locator(".rope-value")
        readout.fill(repr(value))
        readout.press("Enter")

    def press(self, label: str, option: str) -> None:
        control = self.control(label)
        control.get_by_role("button", name=option, exact=True).click()

    def choose(self, label: str, option: str) -> None:
        self.control(label).locator("select").select_option(option)

    def button(self, name: str) -> None:
        self.figure.get_by_role("button", name=name, exact=True).click()

    def values(self, **expected) -> dict:
        """Wait until the figure shows these settings; return all that it says.

        What was set last is drawn in the next frame, so that one is waited for first.
        """
        self.page.evaluate("new Promise(requestAnimationFrame)")
        wait_for(
            self.page,
            """([figure, expected]) => {
                const values = JSON.parse(figure.dataset.values);
                return Object.entries(expected).every(([name, wanted]) => values[name] === wanted);
            }""",
            arg=[self.figure.element_handle(), expected],
        )
        return json.loads(self.figure.get_attribute("data-values"))
