"""The bug bench on the published page: symptoms, two guesses, the truth, the score."""

import re

import pytest
from playwright.sync_api import expect

from ropebook.figures.bug_bench import cases

from .figures import settle

pytestmark = pytest.mark.drawn(1)

PAGE = "notebooks/09-attention.html"
BENCH = ".rope-box:has(.rope-figure[data-figure='bug-bench'])"


def test_a_wrong_guess_is_told_what_does_not_fit_and_the_second_the_truth(visit):
    seen = visit()
    page = seen.open(PAGE)
    bench = page.locator(BENCH).last
    answer, verdict = bench.locator(".rope-answer"), bench.locator(".rope-verdict")
    caption, options = bench.locator(".rope-caption"), bench.locator("input[type=radio]")
    before = answer.inner_text()
    assert re.match(r"(All )?\d (of 7 )?examinations sees? the bug; the first wrong token", before)
    assert options.count() == 4
    assert verdict.inner_text() == ""

    first = second = 0
    for number, patient in enumerate(cases()["patients"][:3], 1):
        assert bench.locator("legend").inner_text() == f"What is wrong with patient {number}?"
        right = patient["right"]
        tries = [right] if number % 3 == 0 else [(right + 1) % 4, right]
        if number % 3 == 2:
            tries[1] = (right + 2) % 4
        for guess in tries:
            options.nth(guess).focus()
            options.nth(guess).press("Space")
            settle(page)
            told = verdict.inner_text()
            if guess == tries[-1]:
                break
            assert re.match("Not “.*”: .*One guess is left.", told)
            expect(answer).to_have_text(told)
            assert options.nth(guess).is_disabled()
        named = right in tries
        first += named and len(tries) == 1
        second += named and len(tries) == 2
        assert told.startswith("Yes: " if named else "No. It was this: ")
        assert re.search(r"Caught by tests/package/test_\w+\.py::test_\w+\.", told)
        assert "\n+ " in told
        assert verdict.locator("a").get_attribute("href").startswith("https://github.com/")
        assert options.evaluate_all("inputs => inputs.every(input => input.disabled)")
        score = f"Named: {first} at once, {second} at the second guess, {number - first - second}"
        expect(caption).to_contain_text(f"{score} not.")
        bench.get_by_role("button", name="Next patient").click()
        settle(page)

    bench.get_by_role("button", name="Reset").click()
    settle(page)
    assert answer.inner_text() == before
    assert "Named" not in caption.inner_text()
    assert verdict.inner_text() == ""
    assert not options.evaluate_all("inputs => inputs.some(i => i.disabled || i.checked)")
    assert seen.problems == []
    assert seen.foreign == []


def test_nothing_of_show_me_stays_after_reset(visit):
    page = visit(reduced_motion="reduce").open(PAGE)
    bench = page.locator(BENCH).last
    answer, caption = bench.locator(".rope-answer"), bench.locator(".rope-caption")
    before = answer.inner_text(), caption.inner_text()
    bench.get_by_role("button", name="Show me").click()
    expect(answer).to_contain_text("Look here: ")
    expect(caption).to_contain_text("Token 47")
    bench.get_by_role("button", name="Reset").click()
    settle(page)
    assert (answer.inner_text(), caption.inner_text()) == before


def test_the_chart_is_read_by_keyboard(visit):
    page = visit(width=390, height=800, theme="dark").open(PAGE)
    bench = page.locator(BENCH).last
    caption, chart = bench.locator(".rope-caption"), bench.locator("canvas[tabindex]")
    chart.focus()
    chart.press("Home")
    expect(caption).to_contain_text("Token 0 is right wherever it is examined.")
    chart.press("End")
    expect(caption).to_contain_text("Token 47 is off by ")


def test_its_data_are_loaded_when_a_reader_comes_near(visit):
    seen = visit(width=390, height=844)
    name = "notebooks/12-serving.html"
    seen.page.goto(seen.site + name)
    seen.page.wait_for_load_state("networkidle")
    data = lambda: [url for url in seen.requests if "bug-bench-" in url]  # noqa: E731
    assert data() == []
    assert seen.page.locator("[data-figure='bug-bench']").count() == 0
    seen.page.goto(f"{seen.site}{name}#figure-3")
    seen.page.locator("[data-figure='bug-bench'][data-drawn]").wait_for()
    assert len(data()) == 1
    assert seen.problems == []
