"""What the record says: costs by text, needles, and which predictions held."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent
TEXTS = ("Carroll", "workshop", "Milton", "encode.c", "bit stream", "metablock")
GROUPS = ("0-3", "4-7", "8-11", "12-15", "16-18", "19-21", "22-25", "26-28", "29-31")
LONG_TEXTS = ("workshop", "encode.c")


@cache
def load() -> dict[str, Any]:
    """Return the record."""
    return json.loads((FOLDER / "record.json").read_text("utf8"))


def predictions() -> list[dict[str, Any]]:
    """Return what was predicted before the runs."""
    file = FOLDER.parent / "predictions-real.json"
    return json.loads(file.read_text("utf8"))["predictions"]


def cost(section: str, change: str, part: str = "loss") -> NDArray:
    """Return by how many nats a token a change raises the loss of each text, (6,).

    It is measured against the section's own ``as released``, where it has one.
    """
    own = load()[section]
    base = own.get("as released", load()["released"]["as released"])
    return np.array([own[change][text][part] - base[text][part] for text in own[change]])


def look(name: str) -> NDArray:
    """Return what the heads' queries and keys say, a row for each text."""
    return np.array([load()["look"]["all heads"][text][name] for text in TEXTS])


def sink(pairs: str = "as released") -> NDArray:
    """Return the first token's share of attention by text and layer, (6, 30)."""
    return np.array([load()["sink"]["by pairs"][text][pairs] for text in TEXTS])


def long_loss(change: str, section: str = "past the length") -> NDArray:
    """Return the loss of the two long texts in stretches of 1,024 tokens, (2, up to 12)."""
    return np.array([load()[section][change][text]["loss"] for text in LONG_TEXTS])


def needles(change: str, asked_at: int, section: str = "past the length") -> list[list[dict]]:
    """Return the needles asked for at a place of each long text."""
    found = load()[section][change]
    return [found[text]["needles"][str(asked_at)] for text in LONG_TEXTS]


def needle_loss(change: str, asked_at: int) -> NDArray:
    """Return the mean loss of a digit, by text, (2,)."""
    return np.array([np.mean([n["loss"] for n in ns]) for ns in needles(change, asked_at)])


def ranks(values: Any) -> NDArray:
    return np.argsort(np.argsort(values))


def judged() -> dict[str, bool]:
    """Return which predictions held."""
    median, record = np.median, load()
    released = record["released"]["as released"]
    harm = cost("left out", "22-25")

    def layout(change: str) -> NDArray:
        return cost("layout", change)

    def doubted(change: str) -> NDArray:
        return cost("the four, doubted", change)

    def doubt(change: str) -> NDArray:
        return cost("doubts", change)

    def served(change: str) -> NDArray:
        return cost("serving", change, "second half")

    def share(change: str) -> float:
        return float(median(doubt(change) / harm))

    others = [cost("left out", name) for name in GROUPS if name != "22-25"]
    shares = np.array([record["shares"]["by pair"][text]["by pair"] for text in TEXTS]).mean(0)
    bounds = [tuple(map(int, name.split("-"))) for name in GROUPS]
    of_groups = [shares[a : b + 1].sum() for a, b in bounds]
    costs = [median(cost("left out", name)) for name in GROUPS]
    rounding = record["rounding"]["Q4_1"]["weights"]
    wins, flat = look("nearer wins").mean(0), look("nearer wins, Gaussian").mean(0)
    flips = look("better key changes").mean(0)
    bfloat = "positions in bfloat16 from 7,000"
    nothing, pi, yarn = (long_loss(name) for name in ("none", "PI", "YaRN"))
    still = long_loss("22-25 not turned")
    far = {
        name: np.array([sum(n["right"] == 4 for n in ns if n["distance"] > 8192)
                        for ns in needles(name, 12288)])
        for name in ("none", "PI", "YaRN")
    }  # fmt: skip
    masked = "packed, masked", "packed, masked, restarted"
    near = [
        n for text in LONG_TEXTS for n in record["needles near"]["as released"][text]["needles"]
    ]
    twice = {name: np.array([v["second half"] for v in record["said twice"][name].values()])
             for name in record["said twice"]}  # fmt: skip
    held = {
        "1": layout("the other layout").min() > 1.5,
        "2": median(layout("the other direction")) > median(layout("the other layout")),
        "3": (layout("queries alone turned") > layout("nothing turned")).all(),
        "4": (cost("base", "10,000") > 0.03).all() and (cost("base", "10,000") < 0.4).all(),
        "5": max(cost("base", b).max() for b in ("90,000", "110,000")) < 0.02
        and (cost("base", "500,000") > cost("base", "200,000")).all(),
        "6": harm.min() > 3 and all((harm > other).all() for other in others),
        "7": cost("not turned", "22-25").max() < 0.05,
        "8": median(doubted("their mean stays") / harm) <= 0.2,
        "9": median(doubted("their keys shuffled") / harm) <= 0.5,
        "10": median(doubted("of the first token alone")) < 0.3
        and median(doubted("of all but the first")) > 1,
        "11": median(doubted("128 and more")) < median(doubted("near, below 16")),
        "12": (cost("distance", "0-3, near") > cost("distance", "0-3, far")).all()
        and (doubted("near, below 16") > doubted("128 and more")).all(),
        "13": wins[2] > 0.9 and 0.45 < flat[2] < 0.55,
        "14": 0.3 < flips[3] < 0.45,
        "15": sink("22-25")[:, 12:].mean() < sink()[:, 12:].mean() / 4,
        "16": np.abs(cost("table", "positions from 7,000")).max() < 0.001
        and median(cost("table", "bfloat16 from 7,000")) > 0.02
        and median(cost("table", bfloat)) > 1,
        "17": ((nothing - yarn)[:, 10:].mean(1) > 0.7).all()
        and ((pi - nothing)[:, :8].mean(1) > 0.3).all(),
        "18": median(cost("short text", "YaRN")) < 0.05 and median(cost("short text", "PI")) > 0.5,
        "19": (far["YaRN"] >= far["PI"]).all() and far["none"].sum() == 0,
        "20": median(served("window")) > 1 and median(served("window and first four")) < 0.3,
        "21": abs(median(served("gap closed") - served("gap left"))) < 0.01,
        "22": all(median(served(f"packed, {free}") - served(masked[0])) > 0
                  for free in ("nothing done", "restarted"))
        and np.abs(served(masked[0]) - served(masked[1])).max() < 0.001,
        "23": median(doubt("spread restored")) > 3,
        "24": median(doubt("three quarters kept")) < 0.3 and share("half kept") < 0.5,
        "25": (doubt("of the others, half kept") > doubt("half kept")).all(),
        "26": (doubt("random directions") > harm).all(),
        "27": share("first token's weight restored") < 0.25,
        "28": share("all but the first's weight restored") > 0.5,
        "29": median(doubt("29-31, first token's weight restored")
                     / cost("left out", "29-31")) < 0.5
        and median(doubt("0-3, first token's weight restored") / cost("left out", "0-3")) > 0.5
        and median(doubt("the others, first token's weight restored")
                   / doubted("all the others")) > 0.5,
        "30": share("keys of the token before") > 0.5,
        "31": share("mean query") < 1 / 3,
        "32": median(doubt("own length, mean direction"))
        < median(doubt("own direction, mean length")),
        "33": median(doubt("turning as 12-15")) > 0.5 and median(doubt("turning as 28-31")) < 0.02,
        "34": share("largest four besides") > 0.5 and median(doubt("layer 0 alone")) < 0.05,
        "35": share("four in the 9 largest") < 0.2 and share("four in the other 81") > 0.5,
        "36": all(np.ptp(v) < 0.1 * np.mean(v) for v in rounding.values())
        and median(doubt("four rounded again")) < 0.05,
        "37": shares[22:26].sum() > 0.5
        and np.corrcoef(ranks(of_groups), ranks(costs))[0, 1] > 0.6,
        "38": cost("2,048 tokens", "22-25 left out").min() > 3
        and 0.01 < median(cost("2,048 tokens", "22-25 not turned")) < 0.3
        and median(cost("first mark", "22-25 left out")) > 3,
        "39": twice["as released"].max() < 1.5 and twice["22-25 left out"].min() > 5
        and (twice["22-25 not turned"] - twice["as released"]).max() < 0.2
        and (twice["0-3 left out"] - twice["as released"]).min() > 3,
        "40": np.mean([n["loss"] for n in near]) < 0.5 and np.mean([n["first"] for n in near]) > 0.8
        and needle_loss("none", 6144).max() < 2.3 < needle_loss("none", 12288).min()
        and (needle_loss("none", 12288) - needle_loss("YaRN", 12288)).min() >= 0.5
        and (needle_loss("PI", 12288) > needle_loss("YaRN", 12288)).all(),
        "41": ((still - nothing)[:, 4:8].mean(1) > 0.3).all()
        and (still[:, 10:].mean(1) < nothing[:, 10:].mean(1)).all(),
    }  # fmt: skip
    assert set(released) == set(TEXTS)
    return {name: bool(so) for name, so in held.items()}
