"""The verdict cards on their page: what a reader leaves out is hidden, a link shows its card."""

SHOWN = "all => all.filter(e => e.checkVisibility()).length"


def test_a_box_hides_its_cards_and_a_link_to_a_hidden_card_shows_it(visit):
    page = visit().open("notebooks/papers.html")
    cards = page.locator(".paper")
    every = cards.evaluate_all(SHOWN)
    assert every == cards.count()
    parts = page.locator(".paper-holds-in-part")
    page.uncheck("#show-holds-in-part")
    assert parts.evaluate_all(SHOWN) == 0
    assert cards.evaluate_all(SHOWN) == every - parts.count()
    page.evaluate("location.hash = 'fope'")
    assert parts.evaluate_all(SHOWN) == 1
    assert page.locator("#fope .paper").is_visible()
    page.uncheck("#show-small-models")
    assert page.locator("#fope .paper").is_visible()
    page.check("#show-holds-in-part")
    assert (
        parts.evaluate_all(SHOWN)
        == parts.count() - len(page.locator(".paper-holds-in-part.paper-small-models").all()) + 1
    )


def test_the_tables_of_comparisons_fit_on_a_phone(visit):
    page = visit(width=360, height=740).open("notebooks/papers.html")
    wide = "all => all.filter(e => e.getBoundingClientRect().right > innerWidth).length"
    tables = page.locator(".paper-cells, .paper-filter")
    assert tables.count() > 12
    assert tables.evaluate_all(wide) == 0
