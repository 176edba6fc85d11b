"""What the build does to every page before a reader gets it: text, weight, policy, address."""

import base64
import hashlib
import json
import re
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import chapter  # noqa: E402
import colours  # noqa: E402
import figures  # noqa: E402
import formulas  # noqa: E402
import page as pages  # noqa: E402
import policy  # noqa: E402
import published  # noqa: E402

from ropebook.figures.alone import as_script  # noqa: E402

HEAD = '<html><head>\n    <meta charset="utf-8" />\n</head><body>'


DATA = '<script type="application/vnd.jupyter.widget-state+json">{}</script>'


def test_a_formula_and_the_full_stop_after_it_stay_together():
    formula = r'<span class="math notranslate nohighlight">\(m &lt; n\)</span>'
    body = f"<p>Where {formula}, and {formula} or ({formula}).</p>"
    glued = '<span class="glued">'
    assert pages.keep_punctuation_with_formula(body) == (
        f"<p>Where {glued}{formula},</span> and {formula} or {glued}({formula}).</span></p>"
    )


def test_a_long_name_breaks_between_its_words():
    name, short = "test_a.py::test_of_it", "max_seq_len"
    code = '<code class="docutils literal"><span class="pre">{}</span></code>'
    broken = "test_a.py::<wbr>test_<wbr>of_<wbr>it"
    body = code.format(name) + code.format(short)
    assert pages.break_long_names(body) == code.format(broken) + code.format(short)


def test_a_style_sheet_stands_once():
    page = "<style>a</style>x<style>a</style><style>b</style>"
    assert pages.drop_repeated_styles(page) == "<style>a</style>x<style>b</style>"


def test_the_page_of_a_wide_table_is_wide_from_the_start():
    page = '<div class="bd-article-container"><p>a</p><section id="{}"></section></div>'
    wide = page.format("rosetta-one-rotation-in-many-runtimes-and-notations")
    assert pages.widen_page_of_notations(wide) == wide.replace("container", "container wide-page")
    assert pages.widen_page_of_notations(page.format("notation")) == page.format("notation")


def test_the_text_comes_before_the_figures():
    page = f"<head>{DATA.format('1')}</head><body>text</body>"
    assert pages.move_state_to_end(page) == f"<head></head><body>text{DATA.format('1')}\n</body>"


def page_of(models, *shown):
    style = '<link rel="stylesheet" type="text/css" href="../_static/book.css?v=1" />'
    views = "".join(map(VIEW.format, shown))
    return f"<head>{style}</head><body>{views}{DATA.format(as_script({'state': models}))}</body>"


def test_a_page_carries_the_state_of_its_figures_and_loads_each_script_once(monkeypatch):
    addresses = {name: f"figures/{name}?v=2" for name in ("two-hands.js", "host.js")}
    monkeypatch.setattr(figures, "addresses", addresses)
    hands = {"_anywidget_id": "a.b.TwoHands", "_esm": "</script>", "_css": "a", "m": "<b>"}
    one, two, box = "0a" * 16, "1b" * 16, "2c" * 16
    models = {key: {"state": {**hands, "layout": "x"}} for key in (one, two)}
    models[box] = {"state": {"children": [f"IPY_MODEL_{two}", f"IPY_MODEL_{'3d' * 16}"]}}
    models["3d" * 16] = {"model_name": "IntSliderModel", "state": {}}
    page = figures.share_code(page_of(models, one, box))
    data = re.search(r"state\+json\">(.*?)</script>", page)[1]
    assert "<" not in data
    kept = {"_anywidget_id": "a.b.TwoHands", "m": "<b>"}
    assert json.loads(data) == {"state": {"0": kept, "1": kept}}
    assert re.findall(r'"model_id": "(\w+)"', page) == ["0", "1"]
    loaded = re.findall(r'(?:src|href)="../_static/([^"]*)"', page)
    assert loaded == [
        "book.css?v=1",
        *(addresses[n] for n in ("host.js", "two-hands.js")),
    ]
    assert page.count("<script defer") == 2
    assert figures.share_code("<p>a</p>") == "<p>a</p>"


def test_many_data_stand_in_a_script_that_the_page_does_not_name(monkeypatch, tmp_path):
    addresses = {n: f"figures/{n}?v=2" for n in ("real-head.js", "host.js")}
    monkeypatch.setattr(figures, "addresses", addresses)
    monkeypatch.setattr(figures, "outputs", [tmp_path])
    state = {"_anywidget_id": "a.b.RealHead", "_esm": "", "data": {"q": "</script>"}, "m": 1}
    page = figures.share_code(page_of({"a1": {"state": state}}, "a1"))
    kept = json.loads(re.search(r"state\+json\">(.*?)</script>", page)[1])["state"]["0"]
    (script,) = tmp_path.iterdir()
    assert kept.pop("_data") == f"../_static/figures/{script.name}"
    assert kept == {"_anywidget_id": "a.b.RealHead", "data": {}, "m": 1}
    assert f'src="../_static/figures/{script.name}"' not in page
    code = script.read_text("utf8")
    assert code.startswith("(window.ropeData ??= {})[document.currentScript.src] = ")
    assert json.loads(code.partition(" = ")[2].rstrip(";\n")) == {"q": "</script>"}


def test_a_widget_that_is_no_figure_stops_the_build():
    with pytest.raises(ValueError, match="shows figures, and this Accordion holds 0 of them"):
        figures.share_code(page_of({"a": {"model_name": "AccordionModel", "state": {}}}, "a"))


def test_every_figure_has_a_script_of_its_own_for_the_whole_site():
    texts = figures.texts()
    assert {"clock.js", "rotor.js", "choice-question.js", "host.js", "figure.css"} < set(texts)
    for name, text in texts.items():
        if name.endswith(".js"):
            assert "export" not in re.findall(r"^\w+", text, re.MULTILINE), name
            in_a_worker = name in figures.LATE.values()
            assert ("window.rope" in text) != in_a_worker


def test_a_picture_holds_its_place_by_the_ratio_of_its_size():
    body = '<img alt="x" src="../_images/a.svg" style="width: 960.0px; height: 432.6px;" />'
    held = figures.hold_pictures(body)
    assert held == body.replace('style="', 'width="960" height="433" style="')
    assert figures.hold_pictures('<img src="a.png">') == '<img src="a.png">'


def test_all_pictures_but_the_first_are_loaded_when_they_come_near():
    body = '<img src="../_static/a.svg"/>' + '<img alt="b" src="../_images/b.png"/>' * 3
    late = figures.load_pictures_late(body)
    assert late.count('<img loading="lazy" alt="b"') == 2
    assert late.index('<img alt="b"') < late.index("lazy")
    assert figures.load_pictures_late("a") == "a"


LINK = '<a class="headerlink" href="#x" title="Link to this heading">#</a>'
CELL = """<div class="cell docutils container">
<div class="cell_input docutils container">
<div class="highlight-ipython3 notranslate"><div class="highlight"><pre><span></span>{}
</pre></div>
</div>
</div>
</div>
"""


def test_a_chapter_opens_with_its_question_and_figure_and_folds_what_it_needs():
    imports, code = CELL.format('<span class="kn">import</span> a'), CELL.format("a = 1")
    title = "<h1>A</h1>\n<p><em>Which?</em></p>\n"
    body = (
        f'{title}<p>Remember</p>\n<section id="after-this-chapter-you-can">\n'
        f"<h2>You can{LINK}</h2>\n<ol>1</ol></section>\n"
        f'<section id="what-you-need-first">\n<h2>You need{LINK}</h2>\n<div><table>2</table>\n'
        f"</div>\n{imports}{imports}<p>Try</p>\n{code}<p>More</p>\n</section>\n<p>Once</p>"
    )
    folded = chapter.fold_opening(body)
    titles = re.findall(r'<details class="opening" id="([^"]*)">\n<summary>([^<]*)', folded)
    assert titles == [
        ("after-this-chapter-you-can", "You can"),
        ("what-you-need-first", "You need"),
        ("imports", "What the cells import"),
    ]
    before, _, _ = folded.partition("<details")
    opening = '<p>Remember</p>\n<div class="openings">\n'
    assert before == f"{title}{code}<p>Try</p>\n{opening}"
    inside, _, after = folded.rpartition("</details>")
    assert "<ol>1</ol>" in inside
    assert inside.count(">import<") == 2
    assert after == "\n</div>\n<p>More</p>\n\n<p>Once</p>"
    assert chapter.fold_opening("<p>Once</p>") == "<p>Once</p>"


def test_a_link_to_the_head_of_a_chapter_leads_to_its_figure():
    link = '<a href="{}#{}">the figure</a>'.format
    for page in ("", "04-many-planes.html"):
        assert chapter.link_heads(link(page, "what-you-need-first")) == link(page, "figure-1")
    assert chapter.link_heads(link("", "zebra")) == link("", "zebra")


def test_a_box_says_where_it_stands_and_how_to_cite_it():
    title = 'Claim 4.1 <a class="reference" href="claims.html">second check</a>'
    box = f'<div class="claim admonition" id="claim-4-1">\n<p class="admonition-title">{title}</p>'
    linked = chapter.link_boxes(box)
    assert linked.startswith(box.removesuffix("</p>"))
    assert '<a class="cite" href="#claim-4-1" aria-label="Cite Claim 4.1">cite</a>' in linked
    assert 'href="#claim-4-1" title="Link to this claim">#</a></p>' in linked


def notebook(path, *cells):
    """Write a notebook of cells: (kind, text, tags)."""
    source = [
        {"cell_type": kind, "source": [text], "metadata": {"tags": tags}}
        for kind, text, tags in cells
    ]
    path.write_text(json.dumps({"cells": source}))
    return path


def test_the_time_to_read_counts_words_shown_code_figures_and_questions(tmp_path):
    path = tmp_path / "a.ipynb"
    prose = "word " * 1440  # 8 minutes
    lines = "\n\n".join(["a = 1"] * 40)  # 2 minutes
    more = [
        ("code", "import a\n\n", []),
        ("code", lines, ["hide-input"]),
        ("markdown", "word " * 900, ["remove-cell"]),
    ]
    assert chapter.minutes(notebook(path, ("markdown", prose, []), *more)) == 10
    both = [("markdown", prose, []), ("code", lines, []), *more]
    assert chapter.minutes(notebook(path, *both)) == 10
    figure = ("code", "x = 1\nfigures.rotor()", ["hide-input"])
    assert chapter.minutes(notebook(path, *both, figure)) == 15


def test_of_a_link_the_text_is_read_and_of_a_fold_nothing():
    prose = 'Two [words here](../a.md#b "and (no) title").<!-- not this -->'
    assert chapter.words(prose) == 3
    assert chapter.words("One.\n<details><summary>a</summary>\n\nb c</details>") == 1


def test_formulas_are_typeset_and_code_is_not():
    body = r"<p>\(a &lt; b\) and \[\frac{1}{2}\]</p><pre>\(a\)</pre><code>\[b\]</code>"
    style, page = formulas.typeset_formulas(body).split("</style>\n")
    assert "mjx-container" in style
    assert page.count("<mjx-container") == 2
    assert "<mi>a</mi><mo>&lt;</mo><mi>b</mi>" in page
    assert 'display="true"' in page
    assert page.endswith(r"<pre>\(a\)</pre><code>\[b\]</code>")
    assert formulas.typeset_formulas("<p>a</p>") == "<p>a</p>"


def test_after_the_first_few_a_formula_waits_in_its_place():
    _, page = formulas.typeset_formulas(r"\(x_1\)" * 9).split("</style>\n")
    first, later = page[: page.index("MathJax later")], page[page.index("MathJax later") :]
    assert first.count("<math ") == formulas.AT_ONCE
    assert "noscript" not in first
    waiting = (
        r".*--wide: 1\.009em; --high: 0\.442em; --deep: 0\.15em;.*?<noscript><mjx-math .*</math>"
    )
    assert re.match(waiting + "</mjx-assistive-mml></noscript></mjx-container>$", later)


def test_a_block_of_code_is_text_that_knows_its_colours():
    start = '<div class="highlight"><pre>'
    words = (
        '<span class="n">q</span><span class="p">,</span> <span class="mi">1</span> &lt; \U0001d465'
    )
    coloured = f'{start}<span></span>{words}<span class="o">+</span>\n</pre></div>'
    plain = colours.colour_code_late(coloured)
    text = "q, 1 &lt; \U0001d465+\n</pre></div>"
    assert plain == f'<div class="highlight"><pre data-colours="3 1mi 5 1o 1">{text}'
    other = f"{start}<a>q</a></pre></div>"
    assert colours.colour_code_late(other) == other


def test_the_style_of_the_site_is_one_file_and_scripts_wait():
    link = '<link rel="stylesheet" type="text/css" href="../_static/{}?v=1" />\n'
    styles = "".join(map(link.format, ("pygments.css", "mystnb.1a.css", "book.css")))
    page = pages.load_one_sheet(f"<head>{styles}</head>")
    assert re.findall(r'href="([^"?]*)', page) == ["../_static/style.css"]
    with pytest.raises(ExtensionError, match=r"no place is known for the style in \['new.css'\]"):
        pages.load_one_sheet(link.format("new.css"))
    script = '<script data-a="b" src="../_static/{}.js?v=1"></script>'
    waits = script.format("live-cells").replace(" src", ' defer="defer" src')
    assert pages.run_scripts_after_the_text(waits) == waits
    page = pages.run_scripts_after_the_text(script.format("a") + "<script>let a = 1</script>")
    assert (
        page
        == f"{script.format('a').replace('script d', 'script defer d')}<script>let a = 1</script>"
    )


def test_a_formula_that_is_none_fails_the_build():
    with pytest.raises(ExtensionError, match="frac"):
        formulas.typeset_formulas(r"<p>\(\frac{a\)</p>")


def test_mathjax_comes_only_with_what_writes_formulas_and_late():
    source = "../_static/vendor/mathjax/tex-chtml.js?v=1"
    script = f'<script>window.MathJax = {{}}</script><script defer src="{source}"></script>'
    assert formulas.load_mathjax_late(f"{script}<p>a</p>") == "<p>a</p>"
    late = formulas.load_mathjax_late(f"{script}{policy.LIVE}")
    assert re.findall(r' src="([^"]*)"', late) == ["../_static/late-mathjax.js"]
    assert f'data-mathjax="{source}"' in late


VIEW = """<div class="cell_output docutils container">
<script type="application/vnd.jupyter.widget-view+json">{{"model_id": "{}"}}</script></div>
"""


def test_a_figure_has_its_place_before_it_is_there(tmp_path, monkeypatch):
    table = tmp_path / "figures.json"
    table.write_text('{"notebooks/a": [[500, 700]]}')
    monkeypatch.setattr(figures, "HEIGHTS", table)
    named = "<script>DOCUMENTATION_OPTIONS.pagename = 'notebooks/{}';</script>"
    views = VIEW.format("a") + VIEW.format("b")
    held = figures.hold_places(named.format("a") + views)
    assert held.count('container place" style="--desk: 500px; --phone: 700px">') == 1
    assert held.endswith(VIEW.format("b"))  # nobody has measured it
    assert figures.hold_places(named.format("b") + views) == named.format("b") + views


def page_of_two_figures_and_a_question():
    asked = {"a": "Is a < b?", "b": "", "c": "Is c?"}
    state = {name: {"state": {"_esm": "", "_question": asked[name]}} for name in asked}
    opening = f"<p>Why?</p>\n{figures.OPENINGS}</div>"
    return opening + "".join(map(VIEW.format, asked)) + DATA.format(json.dumps({"state": state}))


def test_the_tab_key_can_pass_a_figure_and_go_to_the_next():
    page = figures.skip_figures(page_of_two_figures_and_a_question())
    assert re.findall(r'href="#([^"]*)"', page) == ["after-figure-1", "figure-2", "after-figure-2"]
    places = ['id="figure-1"', '"model_id": "a"', 'id="after-figure-1"', '"model_id": "b"']
    places += ['id="figure-2"', '"model_id": "c"', 'id="after-figure-2"']
    assert sorted(places, key=page.index) == places


def test_a_chapter_lists_what_its_figures_ask_under_its_question():
    page = figures.list_figures(page_of_two_figures_and_a_question())
    links = re.findall(r'<a href="#(figure-\d)">([^<]*)</a>', page)
    assert links == [("figure-1", "Is a &lt; b?"), ("figure-2", "Is c?")]
    assert page.index("Why?") < page.index("Is a &lt;") < page.index(figures.OPENINGS)
    assert figures.list_figures(figures.OPENINGS) == figures.OPENINGS


@pytest.fixture
def build(monkeypatch, tmp_path):
    """Return a build of two pages, of which each of two functions changes one."""

    def first(html):
        return html.replace("one", "ONE")

    def second(html):
        return html.replace("two", "TWO")

    monkeypatch.setattr(pages, "BODY", [])
    monkeypatch.setattr(pages, "PAGE", [first, second])
    templates = SimpleNamespace(render=lambda name, context: f"{context['text']}</html>")
    builder = SimpleNamespace(format="html", templates=templates)
    env = SimpleNamespace(found_docs={"a", "b"})
    app = SimpleNamespace(builder=builder, env=env, doctreedir=tmp_path)
    hook = pages.Hook()
    hook.install(app)

    def write(page, text):
        hook.prepare(app, page, "page.html", {}, None)
        return app.builder.templates.render("page.html", {"text": text})

    return SimpleNamespace(write=write, finish=lambda: hook.finish(app, None))


def test_what_changes_some_page_is_well(build):
    assert build.write("a", "one") == "ONE</html>"
    assert build.write("b", "two") == "TWO</html>"
    build.finish()


def test_what_changes_no_page_of_a_whole_build_stops_it(build):
    build.write("a", "one")
    build.write("b", "three")
    with pytest.raises(ExtensionError, match="no page was changed by \\['second'\\]"):
        build.finish()


def test_a_build_of_some_pages_proves_nothing(build):
    build.write("a", "three")
    build.finish()


def test_a_policy_allows_the_scripts_of_its_page_by_their_text():
    text = "let a = 1;"
    page = f'{HEAD}<script>{text}</script><script type="text/json">2</script></body></html>'
    allowed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert policy.inline_hashes(page) == [f"'sha256-{allowed}'"]
    assert "unsafe" not in policy.policy(page).replace("style-src 'self' 'unsafe-inline'", "")
    assert "blob:" not in policy.policy(page)


def test_handlers_in_attributes_are_handed_to_the_books_script():
    page = f'{HEAD}<p>a onb="c"</p><button class="d" onclick="window.print()">e</button>'
    assert '<p>a onb="c"</p>' in policy.hand_over_events(page)
    assert '<button class="d" data-onclick="window.print()">' in policy.hand_over_events(page)
    script = (ROOT / "book" / "_static" / "book.js").read_text("utf8")
    assert '"window.print()":' in script


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ""),
        ({"GITHUB_REPOSITORY": "Somebody/rope"}, "https://somebody.github.io/rope/"),
        ({"GITHUB_REPOSITORY": "a/a.github.io"}, "https://a.github.io/"),
        ({"SITE_URL": "http://b.example/c"}, "http://b.example/c/"),
    ],
)
def test_the_address_comes_from_the_environment(monkeypatch, environment, expected):
    for name in ("GITHUB_REPOSITORY", "SITE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert published.address() == expected


def test_an_address_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("SITE_URL", "book")
    with pytest.raises(ValueError, match="SITE_URL must start with http"):
        published.address()


def book(folder, base):
    (folder / "_static" / "vendor").mkdir(parents=True)
    titles = {"book/intro": "Intro", "notebooks/a": "A & B"}
    env = SimpleNamespace(
        toctree_includes={"book/intro": ["notebooks/a"]},
        titles={k: SimpleNamespace(astext=lambda v=v: v) for k, v in titles.items()},
    )
    config = SimpleNamespace(html_baseurl=base, html_title="Rotary", root_doc="book/intro")
    builder = SimpleNamespace(format="html")
    return SimpleNamespace(outdir=folder, srcdir=ROOT, config=config, env=env, builder=builder)


@pytest.mark.parametrize("base", ["", "https://somebody.github.io/rope/"])
def test_the_files_beside_the_pages(tmp_path, monkeypatch, base):
    monkeypatch.setattr(published, "social_card", lambda: b"card")
    published.write_entry_files(book(tmp_path, base), None)
    lost = (tmp_path / "404.html").read_text("utf8")
    root = "/rope/" if base else "/"
    assert f'<a href="{root}notebooks/a.html">A &amp; B</a>' in lost
    assert not re.search(r"\bsrc=|<link", lost)  # nothing to look for beside a wrong address
    assert "url=book/intro.html" in (tmp_path / "index.html").read_text("utf8")
    assert (tmp_path / "sitemap.xml").exists() == bool(base)
    assert ("Sitemap:" in (tmp_path / "robots.txt").read_text("utf8")) == bool(base)
    if base:
        assert f"<loc>{base}notebooks/a.html</loc>" in (tmp_path / "sitemap.xml").read_text("utf8")


@pytest.mark.parametrize("base", ["", "https://somebody.github.io/rope/"])
def test_a_link_to_a_page_has_a_picture_where_the_address_is_known(monkeypatch, base):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setenv("SITE_URL", base)
    config = SimpleNamespace(ogp_custom_meta_tags=[], ogp_image=None)
    published.set_address(None, config)
    assert config.html_baseurl == config.ogp_site_url == base
    assert config.ogp_image == (base + published.CARD if base else None)
    assert len(config.ogp_custom_meta_tags) == (2 if base else 0)


def test_the_social_card_is_a_small_picture_of_the_usual_size():
    drawn = published.social_card()
    assert len(drawn) < 150_000
    assert Image.open(BytesIO(drawn)).size == (1200, 630)
