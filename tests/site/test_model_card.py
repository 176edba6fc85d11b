"""The card of a model on the published page: three tasks from the first page, files, keyboard."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_minimal import inverse_frequencies, rescaled_frequencies
from ropebook import aliasing
from ropescope.__main__ import main
from tests.tools import broken_files
from tests.tools.broken_files import BROKEN, GGUF_LLAMA, gguf, llama3_divisors
from tests.tools.browser import wait_for
from tests.tools.on_page import OnPage

PAGE = "notebooks/check-your-model.html"
META = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256,
        "ffn_dim_multiplier": 1.3, "multiple_of": 1024, "norm_eps": 1e-05, "rope_theta": 500000.0,
        "use_scaled_rope": True}  # fmt: skip


def from_first_page(seen) -> OnPage:
    """Go through the second door."""
    seen.open("book/intro.html")
    seen.page.locator(".home-doors").get_by_role("link", name="Check your model").click()
    seen.page.wait_for_url(f"**/{PAGE}")
    card = OnPage(seen.page, "model-card")
    card.figure.locator("[data-drawn], canvas").first.wait_for()
    return card


def choose(card: OnPage, name: str) -> None:
    seek = card.figure.get_by_label("Choose a model")
    seek.fill(name)
    seek.press("Enter")


def paste(card: OnPage, text: str) -> None:
    card.figure.get_by_label("config.json").fill(text)


def line(card: OnPage, name: str):
    rows = card.figure.locator(".rope-card tr")
    return rows.filter(has=card.page.get_by_role("rowheader", name=name, exact=True))


def block(card: OnPage, title: str) -> str:
    """Return the code under a title."""
    over = card.figure.locator(".rope-over").filter(has_text=title)
    return over.locator("xpath=following-sibling::pre[1]").inner_text()


def drop(card: OnPage, *files: tuple[str, bytes]) -> None:
    payload = [{"name": n, "mimeType": "application/octet-stream", "buffer": b} for n, b in files]
    card.figure.locator("input[multiple]").set_input_files(payload)


def no_new_angle(parameters: dict, wanted: int) -> bool:
    """Whether the package's YaRN leaves no pair with a new angle."""
    base, original = parameters["rope_theta"], parameters["original_max_position_embeddings"]
    plain = inverse_frequencies(128, base)
    told = {"factor": parameters["factor"], "original_max_position_embeddings": original}
    waves, _ = rescaled_frequencies("yarn", 128, base, **told)
    return not aliasing.unseen_pairs(waves, wanted, plain, original).any()


def test_qwen_2_5_to_131072_by_yarn(visit):
    seen = visit()
    card = from_first_page(seen)
    choose(card, "qwen2.5")
    card.write("Length wanted", 131072)
    says = card.values(name="Qwen/Qwen2.5-7B-Instruct", wanted=131072)
    plain = inverse_frequencies(128, 1e6)
    assert says["fresh"] == aliasing.unseen_pairs(plain, 131072, plain, 32768).sum()
    card.button("For a longer text ↓")
    expect(card.figure.locator(".rope-blocks")).to_be_in_viewport()
    scope: dict = {"config": type("Config", (), {})()}
    exec(block(card, "transformers"), scope)
    wanted = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
              "original_max_position_embeddings": 32768}  # fmt: skip
    assert scope["config"].rope_parameters == wanted
    assert no_new_angle(wanted, 131072)
    vllm = block(card, "vLLM")
    assert "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 131072" in vllm
    overrides = json.loads(re.search(r"--hf-overrides '(.*)'", vllm, re.DOTALL)[1])
    assert overrides == {"max_position_embeddings": 131072, "rope_parameters": wanted}
    sglang = re.search(r"--json-model-override-args '(.*)'", block(card, "SGLang"), re.DOTALL)
    assert json.loads(sglang[1]) == {"rope_parameters": wanted}
    llama = block(card, "llama.cpp")
    assert "-c 131072" in llama
    assert "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768" in llama

    # what stands there is a configuration whose card has no new angle, and its address keeps it
    config = json.loads(card.figure.get_by_label("config.json").input_value())
    paste(card, json.dumps(config | {"rope_parameters": wanted}))
    says = card.values(name="", fresh=0)
    expect(line(card, "rescaling")).to_contain_text("YaRN from 32,768 tokens")
    other = visit()
    other.page.goto(seen.page.url)
    again = OnPage(other.page, "model-card")
    again.figure.locator(".rope-card tr").first.wait_for()
    assert again.values(wanted=131072) == says
    assert seen.problems == other.problems == []
    assert seen.foreign == []


def test_metas_llama_3_1_to_hugging_face(visit, capsys):
    card = from_first_page(visit())
    paste(card, json.dumps(META))
    says = card.values(base=500000, rows="interleaved")
    assert says["layout"] == "half-split"
    assert {"assumed", "other-rows"} <= set(says["warnings"])
    expect(card.figure.locator(".rope-warnings")).to_contain_text("permute the rows of each head")
    expect(card.figure.locator(".rope-warnings")).to_contain_text("up to 8 times slower")
    expect(line(card, "layout")).to_contain_text("interleaved in this file; half-split in Hugging")
    expect(line(card, "rescaling")).to_contain_text("Llama 3's, from 8,192 tokens")
    config = json.loads(block(card, "in the words of a config.json"))
    assert config["rope_theta"] == 500000.0
    assert config["rope_scaling"]["factor"] == 8.0
    command = block(card, "the rows of the weights").split()
    assert command[:4] == ["python", "-m", "ropescope", "convert"]
    assert main(command[3:]) == 2  # it is understood, and FOLDER is no folder of ours
    assert "FOLDER" in capsys.readouterr().err


def test_glm_4_5_turns_half_of_each_head(visit):
    card = from_first_page(visit(width=390, height=844))
    choose(card, "glm 4.5")
    says = card.values(name="zai-org/GLM-4.5")
    assert (says["width"], says["head"], says["base"]) == (64, 128, 1000000)
    expect(line(card, "channels")).to_contain_text("the first 64 of 128")
    expect(line(card, "channels")).to_contain_text("partial_rotary_factor")
    warnings = card.figure.locator(".rope-warnings")
    expect(warnings).to_contain_text("do not show the whole config.json")


def test_other_runtimes_and_all_names_are_seen_on_a_phone(visit):
    seen = visit(width=390, height=844)
    card = OnPage(seen.open(PAGE), "model-card")
    chips = card.figure.locator(".rope-chips")
    for name in ("", "llama"):
        card.figure.get_by_label("Choose a model").fill(name)
        hidden = chips.evaluate("node => node.scrollHeight - node.clientHeight")
        assert hidden <= 1
    choose(card, "gpt-oss-20b")
    card.values(name="openai/gpt-oss-20b")
    others = card.figure.locator("details.rope-elsewhere")
    others.locator("summary").click()
    for name, words in (
        ("MLX 0.32.4 (with mlx-lm 0.32.2)", "frequencies off by 9.1 %"),
        ("vLLM 0.32.0", "is_neox_style=True"),
    ):
        row = others.locator("tr").filter(has=card.page.get_by_role("rowheader", name=name))
        expect(row).to_be_visible()
        expect(row).to_contain_text(words)
        box = row.evaluate("row => row.getBoundingClientRect().toJSON()")
        assert 0 <= box["left"] < box["right"] <= 390
    assert seen.problems == []


def test_of_a_gguf_the_header_is_read(visit):
    seen = visit()
    card = OnPage(seen.open(PAGE), "model-card")
    divisors = llama3_divisors(16, 1e4, 8.0, 256)
    data = gguf(GGUF_LLAMA, {"rope_freqs.weight": divisors})
    drop(card, ("mine.gguf", data + bytes(3_000_000)))
    says = card.values(name="mine.gguf")
    assert (says["rows"], says["layout"]) == ("interleaved", "half-split")
    expect(line(card, "rescaling")).to_contain_text("Llama 3's, from 256 tokens")
    drop(card, ("model.safetensors", b"\x02"), ("config.json", b'{"model_type": "qwen2"}'))
    assert card.values(name="config.json")["rows"] == ""
    assert seen.problems == []
    assert seen.foreign == []


def shard(*names: str) -> bytes:
    """Return a safetensors file of 1 MB for each name."""
    ends = [(i << 20, (i + 1) << 20) for i in range(len(names))]
    entries = {name: {"dtype": "F32", "shape": [1 << 18], "data_offsets": list(at)}
               for name, at in zip(names, ends, strict=True)}  # fmt: skip
    return broken_files.safetensors(entries, bytes(len(names) << 20))


def checkpoint(folder: Path) -> Path:
    """Write a folder with a configuration, two files of weights and their index."""
    parts = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    names = [f"model.layers.{n}.self_attn.q_proj.weight" for n in (0, 1)]
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen2", "rope_theta": 77777.0}')
    index = json.dumps({"weight_map": dict(zip(names, parts, strict=True))})
    (folder / "model.safetensors.index.json").write_text(index)
    for name, part in zip(names, parts, strict=True):
        (folder / part).write_bytes(shard(name))
    return folder


# how many bytes a page reads of files
COUNT = """window.bytesRead = 0;
const read = Blob.prototype.arrayBuffer;
Blob.prototype.arrayBuffer = function () { window.bytesRead += this.size; return read.call(this); };
"""


def test_a_folder_is_dropped_or_chosen_and_of_its_weights_the_headers_are_read(visit, tmp_path):
    seen = visit()
    seen.page.add_init_script(COUNT)
    card = OnPage(seen.open(PAGE), "model-card")
    folder = checkpoint(tmp_path / "my-model")
    area = card.figure.get_by_label("config.json")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    place = {"x": box["x"] + 20, "y": box["y"] + 20}
    dragged = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    session = seen.page.context.new_cdp_session(seen.page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "data": dragged, **place})
    assert card.values(name="my-model")["base"] == 77777
    expect(line(card, "weights")).to_contain_text("2 tensors in 2 files, in Hugging Face's names")
    assert 0 < seen.page.evaluate("bytesRead") < 2000
    expect(card.figure.locator(".rope-drop")).to_have_count(0)

    choose(card, "glm 4.5")
    card.values(name="zai-org/GLM-4.5")
    expect(line(card, "weights")).to_have_count(0)
    (folder / "model-00002-of-00002.safetensors").unlink()
    card.figure.locator("input[webkitdirectory]").set_input_files(folder)
    card.values(name="my-model", base=77777)
    warnings = card.figure.locator(".rope-warnings")
    expect(warnings).to_contain_text("which the index names, is not beside it")
    assert seen.page.evaluate("bytesRead") < 4000
    assert seen.problems == []
    assert seen.foreign == []


def test_broken_files_are_refused_in_a_sentence_and_nothing_is_lost(visit):
    seen = visit()
    card = OnPage(seen.open(PAGE), "model-card")
    area = card.figure.get_by_label("config.json")
    paste(card, '{"model_type": "llama", "head_dim": 96}')
    typed = area.input_value()
    problem = card.figure.locator(".rope-problem")
    for broken in BROKEN:
        drop(card, (broken.file, broken.data))
        wait_for(
            card.page,
            """([node, file, word]) => node.textContent.includes(word)
                && node.textContent.toLowerCase().startsWith(file)""",
            arg=[problem.element_handle(), broken.file, broken.word],
        )
        assert area.input_value() == typed
    paste(card, typed[:-1])
    expect(problem).to_contain_text("a comma or } was expected, and there is the end")
    assert area.input_value() == typed[:-1]
    paste(card, json.dumps({"model_type": "llama", "rope_theta": -1}))
    expect(problem).to_contain_text("rope_theta must be a positive number")
    assert seen.problems == []


def test_by_keyboard_in_the_dark_on_a_phone(visit):
    seen = visit(width=390, height=700, theme="dark", reduced_motion="reduce")
    page = seen.open(PAGE)
    card = OnPage(page, "model-card")
    seek = card.figure.get_by_label("Choose a model")
    seek.focus()
    page.keyboard.type("no such model")
    expect(card.figure.locator(".rope-chips")).to_contain_text(
        "No checkpoint here has exactly this name"
    )
    page.keyboard.press("Control+a")
    page.keyboard.type("qwen2.5 72")
    page.keyboard.press("Tab")
    expect(card.figure.get_by_role("button", name="Choose a file")).to_be_focused()
    page.keyboard.press("Tab")
    expect(card.figure.get_by_role("button", name="a folder")).to_be_focused()
    page.keyboard.press("Tab")
    expect(card.figure.get_by_role("button", name="Qwen/Qwen2.5-72B")).to_be_focused()
    page.keyboard.press("Enter")
    assert card.values(name="Qwen/Qwen2.5-72B")["base"] == 1000000
    card.figure.get_by_label("config.json").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"model_type": "qwen2", "hidden_size": 512, "num_attention_heads": 4, ')
    page.keyboard.type('"max_position_embeddings": 8192, "rope_theta": 1e5}')
    assert card.values(base=100000)["name"] == ""
    card.box.locator(".rope-track").focus()
    page.keyboard.press("ArrowRight")
    card.values(wanted=262144)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert seen.problems == []


@pytest.mark.parametrize("state", ["#model=7", "#model={", "#model=%7B%22wanted%22%3A3%7D", "#x"])
def test_an_address_that_says_nothing_leaves_the_start(visit, state):
    seen = visit()
    seen.page.goto(seen.site + PAGE + state)
    card = OnPage(seen.page, "model-card")
    card.figure.locator(".rope-card tr").first.wait_for()
    assert card.values()["wanted"] == 131072
    assert np.isclose(card.values()["base"], 1e6)
    assert seen.problems == []


FINGER = """root => [...root.querySelectorAll('.rope-chips button, .rope-over button')].map(
    node => {
        node.scrollIntoView({block: 'center', behavior: 'instant'});
        const box = node.getBoundingClientRect();
        const hit = y => document.elementFromPoint(box.x + box.width / 2, y) === node;
        let [top, end] = [box.top, box.bottom];
        while (hit(top - 1)) top -= 1;
        while (hit(end + 1)) end += 1;
        return end - top;
    })"""


def test_a_finger_meets_more_of_a_button_than_is_seen(visit):
    """All of 44 pixels where no other button stands near."""
    card = OnPage(visit(width=390, height=844, has_touch=True).open(PAGE), "model-card")
    choose(card, "mixtral 8x7b")
    found = card.figure.evaluate(FINGER)
    assert len(found) > 3
    assert min(found) > 36
    assert sorted(found)[1] >= 44
