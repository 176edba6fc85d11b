"""The claims of the page on one theorem, each by another route than the page takes.

Where the page solves with sympy, numbers of the encodings' own code and of x-transformers are
compared with torch's matrix exponential, and the other way round.
"""

import itertools
import math

import numpy as np
import pytest
import torch

from experiments import recent
from rope_minimal import apply_rope, inverse_frequencies, rope_table, rotate_complex
from tests.package.test_recent import scored, shaken

KEPT = [*range(4), *range(20, 40)]
PAIRS = [(39, 0), (39, 39), (20, 13), (1, 0)]


def off(one, other):
    """The difference of two arrays by the size of the second."""
    one, other = np.asarray(one), np.asarray(other)
    return np.linalg.norm(one - other) / np.linalg.norm(other)


def planes(theta, fade=0.0):
    """The generator of pairs of neighbouring channels that turn and fade with the distance."""
    each = [[[-f, t], [-t, -f]] for t, f in np.broadcast(theta, fade)]
    return torch.block_diag(*torch.tensor(each, dtype=torch.float64))


def relative(scores):
    return all(np.ptp(scores.diagonal(d)) < 1e-8 for d in range(1 - len(scores), len(scores)))


# Claim D.1 ---------------------------------------------------------------------------------------


def softplus(x):
    return np.logaddexp(0, x)


def lifted(name, q, k, own):
    """Generator and contents of an encoding of the record, layer 1."""
    rest = [np.zeros((len(q), 1)), np.ones((len(q), 1))]
    if name == "pope":
        size_q, size_k, delta = softplus(q), softplus(k), np.clip(own["1_delta"], -2 * math.pi, 0)
        first = np.stack((size_q, 0 * size_q), -1).reshape(len(q), -1)
        second = np.stack((size_k * np.cos(delta), size_k * np.sin(delta)), -1)
        return planes(inverse_frequencies(64)), first, second.reshape(len(k), -1)
    if name == "grape_a":
        v, u = (own[f"1_fall_{n}"] / np.linalg.norm(own[f"1_fall_{n}"]) for n in "qk")
        gates = (softplus(z @ w / math.sqrt(32))[:, None] for z, w in ((q, v), (k, u)))
        generator = torch.zeros(36, 36, dtype=torch.float64)
        rate = softplus(own["1_omega"].item()) / 256 * math.sqrt(32)
        generator[32, 34] = generator[33, 35] = -rate
        zero, one = rest
        long_q = np.hstack((q, next(gates), one, zero, zero))
        return generator, long_q, np.hstack((k, zero, zero, one, next(gates)))
    theta = inverse_frequencies(32)
    if name == "learned_bank":
        theta = np.exp(own["1_log_theta"])
    if name == "clipped":
        theta = theta * np.r_[np.ones(5), np.hanning(21)[10:]]
    return planes(theta if name != "still" else 0 * theta), q, k


@pytest.mark.parametrize("name", ["learned_bank", "clipped", "pope", "grape_a", "rope", "still"])
def test_a_matrix_exponential_gives_the_encodings_own_scores(name, monkeypatch):
    """Refuted if the scores of an encoding's own code differ from torch's matrix exponential of
    one generator, between contents that know no positions.

    RoPE is the base class of the record's encodings, and "still" is RoPE that does not turn.
    """
    if name in ("rope", "still"):
        still = torch.zeros(16) if name == "still" else torch.tensor(inverse_frequencies(32))
        monkeypatch.setattr(recent.ClippedRoPE, "frequencies", lambda self, layer: still)
    models = shaken("clipped" if name in ("rope", "still") else name)
    found, q, k, _, own = scored(models, 1)
    generator, long_q, long_k = lifted(name, q, k, own)
    for m, n in PAIRS:
        group = torch.matrix_exp((m - n) * generator).numpy()
        wanted = long_q[m] @ group @ long_k[n] / math.sqrt(32)
        assert found[0, m, n] == pytest.approx(wanted, abs=1e-6)


def test_xpos_and_alibi_of_another_package_are_exponentials():
    """Refuted if xPos or ALiBi of x-transformers has other scores than torch's matrix exponential
    of eigenvalues left of the axis, or of a nilpotent corner, where the key is not the later one,
    or ALiBi has the same where it is, or xPos does not overflow in a text of 100,000 tokens."""
    theirs = pytest.importorskip("x_transformers.x_transformers")
    q, k = torch.randn(2, 1, 1, 40, 16, generator=torch.Generator().manual_seed(0))
    peer = theirs.RotaryEmbedding(16, use_xpos=True)
    angle, factor = peer(torch.arange(40))
    turned_q = theirs.apply_rotary_pos_emb(q, angle, factor)
    turned_k = theirs.apply_rotary_pos_emb(k, angle, factor**-1)
    found = (turned_q @ turned_k.mT)[0, 0]
    spiral = planes(inverse_frequencies(16), -np.log(peer.scale.double().numpy()) / 512)
    bias = theirs.AlibiPositionalBias(heads=2)(40, 40)[0]
    corner = torch.zeros(18, 18, dtype=torch.float64)
    corner[16, 17] = -1 / 16
    for m, n in PAIRS:
        one, other = q[0, 0, m].double(), k[0, 0, n].double()
        wanted = one @ torch.matrix_exp((m - n) * spiral) @ other
        assert found[m, n].item() == pytest.approx(wanted.item(), abs=1e-4)
        one, other = torch.cat((one, torch.eye(2)[0])), torch.cat((other, torch.eye(2)[1]))
        wanted = one @ torch.matrix_exp((m - n) * corner) @ other
        assert (one @ other + bias[m, n]).item() == pytest.approx(wanted.item(), abs=1e-5)
    ahead = torch.matrix_exp(-5 * corner)[16, 17].item()
    assert ahead == pytest.approx(5 / 16)
    assert bias[10, 15].item() == pytest.approx(-5 / 16)
    assert peer(torch.arange(100_000))[1].max() == math.inf


@pytest.mark.parametrize("encoding", ["polar_pos_emb", "rotary_xpos"])
def test_another_package_caches_raw_keys(encoding):
    """Refuted if x-transformers' cache of PoPE is wider than the head, if its keys of PoPE or xPos
    change when the text goes on, or if token by token it says other than the text at once."""
    theirs = pytest.importorskip("x_transformers.x_transformers")
    torch.manual_seed(0)
    wide = {"rotary_emb_dim": 32} if encoding == "rotary_xpos" else {}
    model = theirs.Decoder(dim=32, depth=1, heads=2, attn_dim_head=32, **{encoding: True}, **wide)
    x = torch.randn(1, 20, 32)

    def keys(cache):
        return cache.attn_intermediates[0].cached_kv[0]

    with torch.no_grad():
        whole, (_, cache) = model(x), model(x[:, :10], return_hiddens=True)
        first = keys(cache)
        for n in range(11, 21):
            said, cache = model(x[:, :n], cache=cache, return_hiddens=True)
            assert torch.allclose(said[:, -1], whole[:, n - 1], atol=1e-5)
    assert first.shape == (1, 2, 10, 32)
    assert torch.equal(keys(cache)[:, :, :10], first)


def test_a_block_above_a_plane_is_the_wave_of_a_neighbouring_frequency():
    """Refuted if the corner of a Jordan block's powers is not the change of RoPE's score with its
    frequency, which is the distance times a wave."""
    step = torch.matrix_exp(
        torch.from_numpy(
            np.kron(np.eye(2), [[0, 0.3], [-0.3, 0]]) + np.kron([[0, 1], [0, 0]], [[0, 1], [-1, 0]])
        )
    ).numpy()
    for s in (1, 7, 40):
        corner = np.linalg.matrix_power(step, s)[:2, 2:]
        near = [torch.matrix_exp(s * planes([0.3 + d])).numpy() for d in (1e-5, -1e-5)]
        assert corner == pytest.approx((near[0] - near[1]) / 2e-5, abs=1e-6 * s**3 + 1e-6)


# Claim D.2 ---------------------------------------------------------------------------------------


def generators(seed, count, width):
    rng = np.random.default_rng(seed)
    for a, b in rng.normal(size=(count, 2, width)):
        yield np.outer(a, b) - np.outer(b, a), math.sqrt((a @ a) * (b @ b) - (a @ b) ** 2)


@pytest.mark.parametrize("seed", range(5))
def test_overlapping_planes_are_rope_in_one_basis(seed):
    """Refuted if three terms miss the exponential of a plane of two random vectors, or the sum of
    three overlapping planes has scores that RoPE in one orthonormal basis does not give."""
    (one, r), *others = generators(seed, 3, 6)
    series = np.eye(6) + math.sin(0.7 * r) / r * one + (1 - math.cos(0.7 * r)) / r**2 * one @ one
    assert series == pytest.approx(torch.matrix_exp(torch.from_numpy(0.7 * one)).numpy())
    total = (one + sum(other for other, _ in others)) / 20
    assert np.abs(one @ others[0][0] - others[0][0] @ one).max() > 0.1  # they do not commute
    values, vectors = np.linalg.eig(total)
    ahead = values.imag > 1e-9
    basis, theta = math.sqrt(2) * vectors[:, ahead], values.imag[ahead]
    q, k = np.random.default_rng(seed + 50).normal(size=(2, 6))

    def rope(vector, m):
        pairs = (basis.conj().T @ vector).view(float)[None]
        return rotate_complex(pairs, np.array([m]), inv_freq=theta, interleaved=True)[0]

    for m, n in [(0, 0), (9, 4), (10, 5), (200, 3)]:
        turned_q, turned_k = (
            torch.matrix_exp(torch.from_numpy(p * total)).numpy() @ z for z, p in ((q, m), (k, n))
        )
        assert turned_q @ turned_k == pytest.approx(rope(q, m) @ rope(k, n), abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_turns_one_after_the_other_in_overlapping_planes_are_not_relative(seed):
    """Refuted if the product of the exponentials of two overlapping planes gives scores that are
    constant along a diagonal, or that of planes without overlap does not, or that of three of
    which two undo each other."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, 4))
    apart = np.zeros((2, 4, 4))
    apart[0, 0, 1], apart[0, 1, 0], apart[1, 2, 3], apart[1, 3, 2] = 1, -1, 0.3, -0.3
    overlap = [g / r for g, r in generators(seed, 2, 4)]
    undone = [overlap[0], -overlap[0], overlap[1]]
    for factors, expected in ((apart, True), (overlap, False), (undone, True)):
        steps = [torch.matrix_exp(torch.from_numpy(g)).numpy() for g in factors]
        at = [
            np.linalg.multi_dot([np.linalg.matrix_power(step, m) for step in steps])
            for m in range(6)
        ]
        scores = np.array([[(A @ q) @ (B @ k) for B in at] for A in at])
        assert relative(scores) == expected


# Claim D.3 ---------------------------------------------------------------------------------------


def test_no_exponential_comes_near_a_mirror():
    """Refuted if a search over all real generators finds one whose exponential is nearer to a
    mirror than 0.99, where it finds a rotation to rounding."""
    nearest = {}
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    for name, target in (
        ("turn", turn),
        ("mirror", torch.diag(torch.tensor([1.0, -1.0])).double()),
    ):
        found = []
        for seed in range(10):
            start = torch.randn(2, 2, generator=torch.Generator().manual_seed(seed)).double()
            A = start.requires_grad_()
            search = torch.optim.LBFGS([A], max_iter=200, line_search_fn="strong_wolfe")

            def loss(A=A, target=target, search=search):
                search.zero_grad()
                value = (torch.matrix_exp(A) - target).square().sum()
                value.backward()
                return value

            search.step(loss)
            found.append(loss().item() ** 0.5)
        nearest[name] = min(found)
    assert nearest["turn"] < 1e-3
    assert nearest["mirror"] > 0.99


def test_the_sign_of_a_frequency_is_a_choice_of_basis():
    """Refuted if scores at negative frequencies differ from those at positive ones with one
    channel of each pair reversed on both sides."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 30, 16, dtype=torch.float64)
    cos, sin = rope_table(torch.arange(30), 16, dtype=torch.float64)
    flip = torch.tensor([1.0, -1.0] * 8, dtype=torch.float64)
    ways = [(q, k, -sin), (q * flip, k * flip, sin)]
    one, other = (
        apply_rope(a, cos, w, interleaved=True) @ apply_rope(b, cos, w, interleaved=True).T
        for a, b, w in ways
    )
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert (one - (q @ k.T)).abs().max() > 0.1


# Claim D.4 ---------------------------------------------------------------------------------------


def test_the_imaginary_part_adds_no_function_of_the_distance():
    """Refuted if the imaginary head's scores of one query and one key are not a sum of RoPE's own
    waves, far beyond where they were fitted, or are not the real head's for another query."""
    models = shaken("rope_pp")
    generator = torch.Generator().manual_seed(4)
    q, k = torch.randn(2, 1, 1, 1, 1, 32, generator=generator, dtype=torch.float64)
    x = torch.zeros(1, 1, 120, 32, dtype=torch.float64)
    same = [z.expand(-1, -1, -1, 120, -1) for z in (q, k)]
    imaginary = models.scores(*same, x, 1)[0, 0, 1, :, 0].numpy()
    fast = np.outer(np.arange(120), inverse_frequencies(32))
    waves = np.hstack((np.cos(fast), np.sin(fast)))
    heights = np.linalg.lstsq(waves[:80], imaginary[:80], rcond=None)[0]
    assert waves[80:] @ heights == pytest.approx(imaginary[80:], abs=1e-4)
    a, b = same[0].unflatten(-1, (-1, 2)).unbind(-1)
    back = torch.stack((b, -a), -1).flatten(-2)
    real = models.scores(back, same[1], x, 1)[0, 0, 0, :, 0].numpy()
    assert real == pytest.approx(imaginary, abs=1e-12)


# Claim D.5 ---------------------------------------------------------------------------------------


def test_a_pair_of_two_waves_is_never_relative():
    """Refuted if a pair with two waves of different frequencies is relative for some coefficients
    of a grid, or is not where one coefficient is 0 or the frequencies agree."""
    at = np.arange(12)
    others = (-0.7, 0.3, 0.7, 2.0, 0.7 + math.pi)  # the first: unequal sums in cos and sin
    for c, d, phi in itertools.product((-1, -0.5, 0, 0.5, 1), (-1, 0, 0.3, 1, 1j), others):
        if c == d == 0:
            continue
        turned = c * np.exp(0.7j * at) + d * np.exp(1j * phi * at)
        scores = np.outer((0.4 + 1j) * turned, np.conj((1 - 0.2j) * turned)).real
        assert relative(scores) == (c == 0 or d == 0 or phi == 0.7), (c, d, phi)


def test_fourier_series_of_the_record_know_where_they_stand():
    """Refuted if a query and a key at one place have the same score wherever that place is, in
    FoPE's form of the record, or have not, with clipped frequencies."""
    spread = {}
    torch.manual_seed(0)
    for name in ("fourier", "clipped"):
        q, k = torch.randn(2, 1, 1, 1, 1, 32, dtype=torch.float64).expand(-1, -1, -1, -1, 30, -1)
        x = torch.zeros(1, 1, 30, 32, dtype=torch.float64)
        spread[name] = np.ptp(shaken(name).scores(q, k, x, 1)[0, 0, 0].diagonal().numpy())
    assert spread["clipped"] < 1e-9
    assert spread["fourier"] > 0.1


# Claim D.6 ---------------------------------------------------------------------------------------


def test_token_aware_phases_need_a_channel_for_each_token():
    """Refuted if the record's TAPA, at one distance, gives 60 queries and 60 keys a matrix of
    scores of rank below 60, or RoPE one of a rank other than 32."""
    rank = {}
    torch.manual_seed(0)
    for name in ("tapa", "clipped"):
        q, k = torch.randn(2, 60, 32, dtype=torch.float64)
        q = q[:, None].expand(60, 60, 32).reshape(1, -1, 1, 1, 32).expand(-1, -1, -1, 9, -1)
        k = k[None].expand(60, 60, 32).reshape(1, -1, 1, 1, 32).expand(-1, -1, -1, 9, -1)
        x = torch.zeros(1, 3600, 9, 32, dtype=torch.float64)
        scores = shaken(name).scores(q, k, x, 1)[0, :, 0, 8, 0].reshape(60, 60)
        rank[name] = int(torch.linalg.matrix_rank(scores))
    assert rank == {"tapa": 60, "clipped": 32}


# Claim D.7 ---------------------------------------------------------------------------------------


def contributed(name, x, own):
    """What each token adds to the angles of later ones, and of its own: steps (T, 16)."""
    if name == "clipped":
        return np.tile(
            inverse_frequencies(32) * np.r_[np.ones(5), np.hanning(21)[10:]], (len(x), 1)
        )
    if name == "grape_m":
        gate = (x @ own["1_gate"][:, 0] + own["1_gate_bias"].item()) / 16
        return np.outer(1 / (1 + np.exp(-gate)), np.exp(own["1_log_theta"]))
    if name == "repo":
        return np.zeros((len(x), 16))
    steps = np.vstack((np.zeros((3, 16)), x / np.linalg.norm(x, axis=1)[:, None] @ own["1_phi"]))
    steps = sum(own["1_taps"][j] * steps[j : j + len(x)] for j in range(4))
    return steps * inverse_frequencies(32)


@pytest.mark.parametrize("name", ["clipped", "grape_m", "repo", "selective"])
def test_the_scores_of_the_record_are_repaired_as_the_table_says(name):
    """Refuted if cached keys, moved by a sum written here, miss the scores that the encoding's own
    code gives the kept tokens, where the table says exact, or meet them where it does not."""
    models = shaken(name).requires_grad_(False)
    _, q, k, x, own = scored(models, 1)

    def turned(part):
        """Queries and keys of some tokens, read alone, as complex pairs."""
        wide = [torch.from_numpy(z[part])[None, None, None] for z in (q, k)]
        angle = models.angles(torch.from_numpy(x[part])[None, None], 1).reshape(-1, 16)
        both = recent.rotated(*wide, angle.expand(len(x[part]), 16))
        return [z[0, 0, 0].numpy().copy().view(complex) for z in both]

    def fresh(part):
        one, other, given = (torch.from_numpy(z[part])[None, None] for z in (q, k, x))
        return models.scores(one[None], other[None], given, 1)[0, 0, 0].numpy()

    def right(keys, wanted, ways):
        """The ways of moving that leave the last eight tokens' scores as a fresh reading's."""
        good, errors = set(), []
        for way, by in ways.items():
            a, b = (z * np.exp(1j * by) for z in keys)
            error = off((a @ b.conj().T).real[-8:, :-8] / math.sqrt(32), wanted[-8:, :-8])
            good |= {way} if error < 1e-6 else set()
            errors += [error] if error >= 1e-6 else []
        assert min(errors, default=1) > 1e-3
        return good

    steps, theta = contributed(name, x, own), models.frequencies(1).double().flatten().numpy()
    expected = {"clipped": {"count", "sum"}, "grape_m": {"sum"}, "repo": {"left", "sum"}}
    expected = {*expected.get(name, ()), "sum, steps made again"}

    behind, dropped = np.arange(24)[:, None] >= 4, steps[4:20].sum(0)
    made_again = contributed(name, x[KEPT], own) - steps[KEPT]
    ways = {"left": 0, "count": -16 * theta * behind, "sum": -dropped * behind}
    ways["sum, steps made again"] = made_again.cumsum(0) - dropped * behind
    assert right([z[KEPT] for z in turned(slice(None))], fresh(KEPT), ways) == expected
    changed = np.flatnonzero(np.abs(made_again).max(axis=1) > 1e-9)
    assert changed.tolist() == ([4, 5, 6] if name == "selective" else [])

    behind, before = np.arange(40)[:, None] >= 20, steps[:20].sum(0)
    made_again = steps - np.vstack((steps[:20], contributed(name, x[20:], own)))
    ways = {"left": 0, "count": 20 * theta * behind, "sum": before * behind}
    ways["sum, steps made again"] = made_again.cumsum(0) + before * behind
    apart = zip(turned(slice(20)), turned(slice(20, None)), strict=True)
    assert right([np.concatenate(z) for z in apart], fresh(slice(None)), ways) == expected


def test_scores_of_repo_know_no_order_of_the_text():
    """Refuted if, in a layer with places of RePo, tokens in another order have other scores than
    the same tokens where they stood, or if they have not with RoPE's frequencies, clipped."""
    order = torch.randperm(40, generator=torch.Generator().manual_seed(5))
    for name in ("repo", "clipped"):
        models = shaken(name).requires_grad_(False)
        q, k, x = (torch.from_numpy(z)[None, None] for z in scored(models, 1)[1:4])
        there = models.scores(q[None], k[None], x, 1)[0, 0, 0]
        mixed = models.scores(q[None, :, :, order], k[None, :, :, order], x[:, :, order], 1)
        assert (off(mixed[0, 0, 0], there[order][:, order]) < 1e-6) == (name == "repo")


def test_a_gain_behind_the_turn_has_to_be_divided_out():
    """Refuted if cached keys that were normed with a gain for each channel behind their turn are
    right after a further turn, or are not once the gain is divided out and put back."""
    rng = np.random.default_rng(1)
    keys, gain, place = rng.normal(size=(50, 32)), rng.uniform(0.7, 1.3, 32), rng.random((50, 1))
    place = place.cumsum(axis=0)

    def turn(z, by):
        return (z.view(complex) * np.exp(-1j * by * inverse_frequencies(32))).view(float)

    def normed(z):
        return gain * z / np.sqrt((z**2).mean(axis=1, keepdims=True))

    cached, needed = normed(turn(keys, place)), normed(turn(keys, place - 5.2))
    assert off(turn(cached, -5.2), needed) > 0.05
    assert off(gain * turn(cached / gain, -5.2), needed) < 1e-12


def path(q, k, w):
    """PaTH's scores by the formula of its parallel form; w carries the root of beta."""
    lower = np.tril(np.ones((len(q), len(q))))
    below = lower - np.eye(len(q))
    inner = np.linalg.inv(np.eye(len(q)) + w @ w.T * below)
    return q @ k.T * lower - (q @ w.T * lower) @ inner @ (w @ k.T * below)


def test_path_attention_by_its_closed_form():
    """Refuted if dropping tokens leaves PaTH's scores on earlier keys as a fresh reading has them,
    or a beginning changes the scores within a piece, or keys behind a gap notice it, or the
    product of a piece does not carry the keys of a beginning to its last token."""
    rng = np.random.default_rng(0)
    q, k, w = rng.normal(size=(3, 40, 32))
    beta = 2 / (1 + np.exp(-rng.normal(size=40)))
    w *= (np.sqrt(beta) / np.linalg.norm(w, axis=1))[:, None]
    whole, fresh, alone = (path(q[p], k[p], w[p]) for p in (slice(None), KEPT, slice(20, None)))
    H = np.eye(32) - w[:, :, None] * w[:, None]
    piece, early = np.linalg.multi_dot(H[39:19:-1]), np.zeros((0, 32))
    for step, key in zip(H[:20], k[:20], strict=True):
        early = np.vstack((early @ step, key))
    assert whole[39, :20] == pytest.approx(early @ piece.T @ q[39], abs=1e-9)
    assert off(early @ q[39], whole[39, :20]) > 0.1
    kept = whole[np.ix_(KEPT, KEPT)]
    assert off(kept[4:, 4:], fresh[4:, 4:]) < 1e-9
    assert off(kept[4:, :4], fresh[4:, :4]) > 0.1
    assert off(whole[20:, 20:], alone) < 1e-9


def test_a_key_of_path_before_a_gap_is_no_turn_away_from_the_one_that_is_needed():
    """Refuted if a key behind which 16 tokens were dropped has the length of the one needed."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        w = rng.normal(size=(36, 32))
        beta = 2 / (1 + np.exp(-rng.normal(size=(len(w), 1))))
        w *= np.sqrt(beta) / np.linalg.norm(w, axis=1)[:, None]
        H, key = np.eye(32) - w[:, :, None] * w[:, None], rng.normal(size=32)
        held, needed = key @ np.linalg.multi_dot(H), key @ np.linalg.multi_dot(H[16:])
        assert abs(np.linalg.norm(held) / np.linalg.norm(needed) - 1) > 0.01


def test_the_product_of_path_is_harder_to_divide_by_in_a_narrow_head():
    """Refuted if after 60 tokens PaTH's product has no larger condition number, by the median of
    ten draws, at width 32 than at width 128."""

    def condition(width, seed):
        rng = np.random.default_rng(seed)
        w, beta = rng.normal(size=(60, width)), 2 / (1 + np.exp(-rng.normal(size=(60, 1))))
        w *= np.sqrt(beta) / np.linalg.norm(w, axis=1)[:, None]
        return np.linalg.cond(np.linalg.multi_dot(np.eye(width) - w[:, :, None] * w[:, None]))

    narrow, wide = (np.median([condition(d, seed) for seed in range(10)]) for d in (32, 128))
    assert narrow > 1e3 * wide


def test_forgetting_and_counting_of_another_package():
    """Refuted if, in x-transformers, the gates of dropped tokens do not make up what FoX's bias
    between kept tokens is off, or CoPE's scores within a piece notice a beginning, or those on
    kept keys do not notice dropped ones."""
    theirs = pytest.importorskip("x_transformers.x_transformers")
    torch.manual_seed(0)
    x = torch.randn(1, 40, 32)
    gate = theirs.DataDependentAlibi(32, 1, bias_init=0.0)
    with torch.no_grad():
        dropped = gate.to_forget_gates(x)[0, 0, 4:20].sum()
        whole, fresh = gate(x)[0, 0][KEPT][:, KEPT], gate(x[:, KEPT])[0, 0]
        gap = (whole - fresh)[4:, :4]
        assert torch.allclose(gap, dropped.expand_as(gap), atol=1e-4)
        assert torch.allclose(whole[4:, 4:], fresh[4:, 4:], atol=1e-4)
        assert dropped < -1

        counts = theirs.CoPE(32, 1, 64)
        counts.pos_emb.normal_()
        q, k = torch.randn(2, 1, 1, 40, 32)

        def scores(part):
            raw = q[:, :, part] @ k[:, :, part].mT / 8
            size = raw.shape[-1]
            hidden = torch.ones(size, size).triu(1).bool()
            added = counts(q[:, :, part], raw.masked_fill(hidden, -1e9))
            return (raw + added)[0, 0].tril()

        everything, kept, piece = scores(slice(None)), scores(KEPT), scores(slice(20, None))
        assert torch.allclose(everything[20:, 20:].tril(), piece, atol=1e-3)
        assert off(everything[KEPT][4:, :4], kept[4:, :4]) > 0.1


# Claim D.8 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["clipped", "learned_bank", "grape_m", "selective", "repo"])
def test_above_the_first_layer_the_place_itself_has_seen_the_dropped_text(name, monkeypatch):
    """Refuted if, in a model of two layers with an encoding whose angles come from data, the
    second layer's angles of the tokens behind a gap differ from a fresh reading's by one and the
    same turn, or, with fixed frequencies, do not.

    The first layer has the encoding, too. The three tokens whose steps see the gap are left out.
    """
    models = shaken(name)
    seen, angles = [], models.angles
    monkeypatch.setattr(
        models, "angles", lambda x, layer: seen.append(angles(x, layer)) or seen[-1]
    )
    tokens = torch.randint(16, (1, 1, 40), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        models(tokens), models(tokens[..., KEPT])
    whole, fresh = (seen[i].reshape(-1, 16).double() for i in (1, 3))
    everywhere = whole[KEPT] - fresh
    if name in ("clipped", "learned_bank"):  # the gap itself is closed by a move
        assert (everywhere[7] - everywhere[0]).abs().max() > 1
    difference = everywhere[7:]
    spread = (difference - difference[0]).abs().max()
    assert spread < 1e-9 if name in ("clipped", "learned_bank") else spread > 1e-4


# Claim D.9 ---------------------------------------------------------------------------------------


def test_keys_that_grow_lose_their_digits_far_out():
    """Refuted if, in float32 at position 100,000, a shear or a Jordan block keeps five digits of a
    score, or RoPE does not keep six, or an xPos pair does not overflow."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 200)) + 1j * rng.normal(size=(2, 200))
    q2, k2 = rng.normal(size=(2, 200)) + 1j * rng.normal(size=(2, 200))
    m, n, single = 100_000, 99_995, np.complex64

    def at(z, p):
        return (z * np.exp(0.3j * p)).astype(single)

    near = (q * k.conj() * np.exp(1.5j)).real
    assert off((at(q, m) * at(k, n).conj()).real.astype(float), near) < 1e-6

    # a line beside the contents: the encoded query holds (1, -m/16), the key (n/16, 1)
    exact = (q * k.conj()).real - 5 / 16 * q.real * k.imag
    query = np.stack((q.real, q.imag - m / 16 * q.real)).astype(np.float32)
    key = np.stack((k.real + n / 16 * k.imag, k.imag)).astype(np.float32)
    assert off((query * key).sum(0).astype(float), exact) > 1e-5

    # ALiBi's line alone, 1 times n / 16
    line = torch.tensor(n / 16, dtype=torch.float64)
    assert line.float() == line
    assert 9 < abs(line.bfloat16() - line) < 10

    # the same corner above a plane that turns
    exact = ((q * k.conj() + q2 * k2.conj() + 5 / 16 * q * k2.conj()) * np.exp(1.5j)).real
    parts = at(q, m) * at(k - n / 16 * k2, n).conj() + at(q2 + m / 16 * q, m) * at(k2, n).conj()
    assert off(parts.real.astype(float), exact) > 1e-5

    with np.errstate(over="ignore"):
        assert np.isinf(np.float32(math.exp(0.0025)) ** np.float32(n))
