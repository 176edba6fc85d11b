"""The bug bench on the published page: symptoms, one answer, the truth, the score."""

import re

from playwright.sync_api import expect

from .figures import settle

PAGE = "notebooks/09-attention.html"


def test_the_bench_tells_the_truth_after_one_answer_and_keeps_score(visit):
    seen = visit()
    page = seen.open(PAGE)
    bench = page.locator(".rope-box:has(.rope-score)")
    score, verdict = bench.locator(".rope-score"), bench.locator(".rope-verdict")
    options = bench.locator("input[type=radio]")
    assert score.inner_text() == "Patient 1 of 12. Named so far: 0, of them right: 0."
    assert options.count() == 4
    assert verdict.inner_text() == ""

    seen_rightly = 0
    for patient in range(1, 13):
        assert bench.locator("legend").inner_text() == f"What is wrong with patient {patient}?"
        option = options.nth(patient % 4)
        option.focus()
        option.press("Space")
        settle(page)
        told = verdict.inner_text()
        seen_rightly += told.startswith("Yes")
        assert re.match("(Yes|No): ", told)
        assert re.search(r"Caught by tests/package/test_\w+\.py::test_\w+\.", told)
        assert "\n+ " in told
        assert verdict.locator("a").get_attribute("href").startswith("https://github.com/")
        assert options.evaluate_all("inputs => inputs.every(input => input.disabled)")
        wanted = f"Patient {patient} of 12. Named so far: {patient}, of them right: {seen_rightly}."
        expect(score).to_have_text(wanted)
        bench.get_by_role("button", name="Next patient").click()
        settle(page)

    assert 0 < seen_rightly < 12
    assert verdict.inner_text() != ""  # patient 1 again, answered
    bench.get_by_role("button", name="Reset").click()
    settle(page)
    assert score.inner_text() == "Patient 1 of 12. Named so far: 0, of them right: 0."
    assert verdict.inner_text() == ""
    assert not options.evaluate_all("inputs => inputs.some(i => i.disabled || i.checked)")
    assert seen.problems == []
    assert seen.foreign == []


def test_the_chart_is_read_by_keyboard(visit):
    page = visit(width=390, height=800, theme="dark").open(PAGE)
    bench = page.locator(".rope-box:has(.rope-score)")
    caption, chart = bench.locator(".rope-caption"), bench.locator("canvas[tabindex]")
    before = caption.inner_text()
    chart.focus()
    chart.press("Home")
    expect(caption).to_contain_text("distance 0: 1.000 from position 0")
    chart.press("End")
    expect(caption).to_contain_text("Score at distance 47")
    assert caption.inner_text() != before
