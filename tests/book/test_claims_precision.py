"""The claims of chapter 10, asked in another way: integers, 50 digits, other packages.

What is true comes from mpmath or from whole numbers here, never from torch in a longer type.
"""

import importlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rope_minimal import RotaryEmbedding, apply_rope, rope_table, rotate_complex

DIM, PAIRS, LAST = 128, 64, 131_071
THETA = 10_000.0 ** (-np.arange(PAIRS) / PAIRS)  # written out: no function of the package
DIGITS = 40


def exact_theta(pair):
    return mpmath.power(10_000, -mpmath.mpf(pair) / PAIRS)


def exact_cosines(positions):
    """Cosines of all pairs, (len(positions), 64), each right to the last bit of a float64."""
    with mpmath.workdps(DIGITS):
        bank = [exact_theta(i) for i in range(PAIRS)]
        return np.array([[float(mpmath.cos(int(p) * theta)) for theta in bank] for p in positions])


def sample(low, high, count, seed=0):
    """Some positions of a range, its ends among them."""
    drawn = np.random.default_rng(seed).integers(low, high, count)
    return np.unique([low, high, *drawn])


def nearest_whole(n, bits):
    """Round a whole number to so many significant bits, ties to even, in integers."""
    step = 1 << max(0, n.bit_length() - bits)
    whole, rest = divmod(n, step)
    return step * (whole + (2 * rest > step or (2 * rest == step and whole % 2)))


def nearest_float(value, bits):
    """Round a Fraction > 0 to so many significant bits, ties to even."""
    exponent = bits - 1 - math.floor(math.log2(value))
    exponent += (value * Fraction(2) ** exponent < 2 ** (bits - 1)) - (
        value * Fraction(2) ** exponent >= 2**bits
    )
    return Fraction(round(value * Fraction(2) ** exponent)) / Fraction(2) ** exponent


def bfloat16_bits(x):
    """Round float32 numbers to bfloat16, half to even, on their bits; the result is float32."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


# Counting ------------------------------------------------------------------------------------


def test_how_far_the_dtypes_count():
    """Refuted if whole numbers, rounded in integers, leave other counts."""
    kept = {n: {nearest_whole(p, 8) for p in range(n)} for n in (4096, 131_072)}
    assert {n: len(values) for n, values in kept.items()} == {4096: 769, 131_072: 1409}
    assert next(p for p in range(4096) if nearest_whole(p, 8) != p) == 257
    assert len({nearest_whole(p, 11) for p in range(4096)}) == 3073
    assert next(p for p in range(4096) if nearest_whole(p, 11) != p) == 2049
    assert nearest_whole(2**24 + 1, 24) == 2**24  # float32; below, no number has more than 24 bits
    # float16 ends at 65,504; what rounds to the next number of 11 bits, 65,536, overflows
    assert next(p for p in range(65_504, 65_600) if nearest_whole(p, 11) > 65_504) == 65_520
    positions = torch.arange(131_072)
    assert positions.bfloat16().tolist() == [nearest_whole(p, 8) for p in range(131_072)]
    assert positions.half().isinf().nonzero()[0] == 65_520


# Angles --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def early():
    positions = sample(0, 4095, 60)
    return torch.from_numpy(positions), exact_cosines(positions)


@pytest.fixture(scope="module")
def late():
    # the worst of pair 1 is among them: where it is worst was found by looking at all
    positions = np.union1d(sample(122_880, LAST, 60), [131_056])
    return torch.from_numpy(positions), exact_cosines(positions)


def off(cosine, truth):
    return float(np.abs(cosine.double().numpy() - truth).max())


def test_cast_last(early, late):
    """Refuted if a cosine differs from 40 digits by more than the claim says."""
    bank = torch.from_numpy(THETA)
    for positions, truth in (early, late):
        assert off((positions.double()[:, None] * bank).cos(), truth) < 2e-11  # ten decimals
        assert off(rope_table(positions, DIM)[0], truth) < 3.0e-8
        assert 1.5e-3 < off(rope_table(positions, DIM, dtype=torch.bfloat16)[0], truth) < 2.0e-3
    positions, truth = early
    assert off((positions.double()[:, None] * bank.bfloat16().double()).cos(), truth) > 1.8
    assert off((positions.bfloat16().double()[:, None] * bank).cos(), truth) > 1.8


def test_float32_throughout_is_what_transformers_computes(early, late):
    """Refuted if transformers' own table, against 40 digits, has another error."""
    transformers = pytest.importorskip("transformers")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = transformers.LlamaConfig(hidden_size=2 * DIM, num_attention_heads=2, head_dim=DIM)
    module = llama.LlamaRotaryEmbedding(config)
    found = []
    for positions, truth in (early, late):
        cosine = module(torch.zeros(1, 1, DIM), positions[None])[0][0, :, :PAIRS]
        found.append(off(cosine, truth))
    assert found[0] < 3e-4
    assert 5e-3 < found[1] < 7.8e-3


def test_float32_angles_err_in_proportion():
    """Refuted if a position breaks the bound in exact fractions, or another pair is worst."""
    worst = {}
    with mpmath.workdps(DIGITS):
        for pair in (0, 1, 2, 32, 63):
            theta = exact_theta(pair)
            stored = nearest_float(Fraction(float(theta)), 24)
            assert stored == Fraction(float(np.float32(float(theta))))
            errors = []
            for p in np.union1d(sample(1, LAST, 300, seed=pair), [131_056]).tolist():
                angle = nearest_float(p * stored, 24)
                error = abs(mpmath.mpf(angle.numerator) / angle.denominator - p * theta)
                assert error <= 2.0**-23 * (1 + 2.0**-24) * p * theta
                errors.append(float(error))
            worst[pair] = max(errors)
    assert worst[0] == 0
    assert round(worst[1], 4) == 0.0078
    assert worst[1] > worst[2] > worst[32] > worst[63]


class Types(TorchDispatchMode):
    """Collect the types of all tensors that are made."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.seen |= {t.dtype for t in tree_leaves(out) if isinstance(t, torch.Tensor)}
        return out


def test_exact_angles_without_float64(early, late):
    """Refuted if a float64 is made on the way, or a cosine is off by more."""
    with mpmath.workdps(DIGITS):  # tables and steps from 40 digits
        steps = [int(mpmath.nint(mpmath.mpf(2) ** 64 * exact_theta(i) / (2 * mpmath.pi)))
                 for i in range(PAIRS)]  # fmt: skip
        tables = [
            np.array([[complex(mpmath.expj(p * exact_theta(i))) for i in range(PAIRS)] for p in ps])
            for ps in (range(0, 131_072, 512), range(512))
        ]
    steps = torch.tensor(steps)
    high, low = (torch.from_numpy(table).to(torch.complex64) for table in tables)

    def joined(positions):
        return (high[positions // 512] * low[positions % 512]).real

    def counted(positions):
        turns = positions[:, None] * steps >> 40
        return (turns.float() * (2 * math.pi / 2**24)).cos()

    for positions, truth in (early, late):
        with Types() as types:
            results = joined(positions), counted(positions)
        assert not types.seen & {torch.float64, torch.complex128}
        assert off(results[0], truth) < 1.5e-7
        assert off(results[1], truth) < 6e-7
    far = np.array([2**20 - 1, 10**7, 2**30])
    assert off(counted(torch.from_numpy(far)), exact_cosines(far)) < 6e-7
    # the integer does overflow: 2**30 steps of the fastest hand are millions of turns
    assert int(steps[0]) * 2**30 > 2**63


# Scores --------------------------------------------------------------------------------------


def rotated(x, angle, table=np.float64):
    """Turn half-split real vectors (..., 128) by angles (..., 64) whose table is rounded."""
    cos, sin = table(np.cos(angle)).astype(float), table(np.sin(angle)).astype(float)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)


def spreads(angles, pairs=slice(None), table=np.float64, store=np.float64, distance=5):
    """Largest minus smallest logit over 128 offsets, for 20 queries and keys on some pairs."""
    mask = np.zeros(PAIRS)
    mask[pairs] = 1
    q, k = np.random.default_rng(7).normal(size=(2, 20, 1, DIM)) * np.tile(mask, 2)
    offsets = np.linspace(0, LAST - distance, 128).round().astype(np.int64)
    q, k = (
        store(rotated(x, angles(at)[None], table)).astype(float)
        for x, at in ((q, offsets + distance), (k, offsets))
    )
    return np.ptp((q * k).sum(-1) / math.sqrt(DIM), axis=1)


def exact_angles(positions):
    return positions[:, None] * THETA


def float32_angles(positions):
    return (positions.astype(np.float32)[:, None] * THETA.astype(np.float32)).astype(float)


def test_relativity_is_lost_with_rounded_angles():
    """Refuted if 20 other queries and keys, rounded on bits, spread otherwise."""
    bf16 = bfloat16_bits
    found = {
        "exact": spreads(exact_angles, table=np.float32),
        "float32": spreads(float32_angles, table=np.float32),
        "table": spreads(exact_angles, table=bf16),
        "stored": spreads(exact_angles, store=bf16),
        "positions": spreads(lambda p: bf16(p)[:, None].astype(float) * THETA),
        "angles": spreads(lambda p: bf16(exact_angles(p)).astype(float)),
    }
    assert (found["exact"] < 3e-7).all()
    assert ((found["float32"] > 5e-4) & (found["float32"] < 1e-2)).all()
    assert ((found["table"] > 2e-3) & (found["table"] < 2e-2)).all()
    assert ((found["stored"] > 2e-3) & (found["stored"] < 2e-2)).all()
    assert (found["positions"] > 0.2).all()
    assert (found["angles"] > 0.4).all()
    # a head that uses all pairs: what is stored in 16 bits costs more than float32 angles ...
    assert np.median(found["stored"]) > 2 * np.median(found["float32"])
    assert (found["stored"] > found["float32"]).mean() >= 0.9
    # ... and one that uses pair 1 alone feels both: no more than a factor of three between them
    few = [np.median(spreads(angles, slice(1, 2), store=store)) for angles, store in
           ((float32_angles, np.float64), (exact_angles, bf16))]  # fmt: skip
    assert 1 / 3 < few[0] / few[1] < 3


def test_shift_invariance_cannot_see_a_wrong_frequency():
    """Refuted if a shift moves such scores, or they agree with the right ones more or less."""
    wrong = torch.from_numpy(THETA).bfloat16().double()
    q, k = torch.randn(2, 20_000, 1, DIM, dtype=torch.float64, generator=torch.manual_seed(5))

    def scores(frequencies, m, n):
        at = [rope_table([p], DIM, inv_freq=frequencies, dtype=torch.float64) for p in (m, n)]
        return (apply_rope(q, *at[0]) * apply_rope(k, *at[1])).sum((1, 2))

    for distance, expected in ((1000, 0.97), (10_000, 0.66), (100_000, 0.41)):
        near, far = (scores(wrong, s + distance, s) for s in (0, 30_000))
        assert (near - far).abs().max() < 1e-9
        right = scores(torch.from_numpy(THETA), distance, 0)
        assert np.corrcoef(near, right)[0, 1] == pytest.approx(expected, abs=0.03)


def test_the_first_40_positions_hardly_see_a_wrong_frequency():
    """Refuted if a rounded frequency moves a cosine more among the first 40 positions."""
    rounded = bfloat16_bits(THETA).astype(float)
    with mpmath.workdps(DIGITS):
        wrong = [[float(mpmath.cos(p * t)) for t in rounded] for p in range(40)]
    error = np.abs(np.array(wrong) - exact_cosines(range(40))).max()
    assert round(error, 3) == 0.046


def test_what_a_shift_does_see():
    """Refuted if a shift leaves the scores of these two models of transformers alone."""
    pytest.importorskip("transformers")
    vjepa2 = importlib.import_module("transformers.models.vjepa2.modeling_vjepa2")
    q, k = torch.randn(2, 1, 1, 1, 64, dtype=torch.float64, generator=torch.manual_seed(0))

    def score(offset):
        at = [torch.tensor([[[float(p)]]], dtype=torch.float64) for p in (offset + 5, offset)]
        a, b = (
            vjepa2.rotate_queries_or_keys(x.clone(), p) for x, p in zip((q, k), at, strict=True)
        )
        return (a * b).sum().item() / 8

    assert np.ptp([score(offset) for offset in range(0, 200, 10)]) > 0.5

    name = "transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense"
    hunyuan = importlib.import_module(name)
    config = hunyuan.HunYuanDenseV1Config(
        hidden_size=128, num_attention_heads=2, num_key_value_heads=2, head_dim=64
    )
    config._attn_implementation = "eager"
    layer = hunyuan.HunYuanDenseV1Attention(config, 0).double().eval()
    tables = hunyuan.HunYuanDenseV1RotaryEmbedding(config)
    x = torch.randn(1, 8, 128, dtype=torch.float64, generator=torch.manual_seed(1))

    @torch.no_grad()
    def weights(first):
        turn = (t.double() for t in tables(x.float(), torch.arange(first, first + 8)[None]))
        return layer(x, tuple(turn), torch.full((1, 1, 8, 8), -1e30).double().triu(1))[1]

    assert (weights(0) - weights(500)).abs().max() < 1e-4  # gains of 1: float32 angles are left
    for norm in (layer.query_layernorm, layer.key_layernorm):
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5, generator=torch.manual_seed(2))
    assert (weights(0) - weights(500)).abs().max() > 0.01


# Autocast ------------------------------------------------------------------------------------


def test_autocast_rounds_angles_that_are_matrix_products():
    """Refuted if the bits are not those of rounded factors, or another product is rounded."""
    positions, bank = np.arange(4096, dtype=np.float32), THETA.astype(np.float32)
    predicted = bfloat16_bits(bfloat16_bits(positions)[:, None] * bfloat16_bits(bank))
    p, theta = torch.from_numpy(positions), torch.from_numpy(bank)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        by_matrix = p[:, None] @ theta[None]
        kept = p[:, None] * theta, torch.outer(p, theta), torch.einsum("i,j->ij", p, theta)
    assert by_matrix.dtype == torch.bfloat16
    assert np.array_equal(by_matrix.float().numpy(), predicted)
    with mpmath.workdps(DIGITS):
        exact = np.array([float(exact_theta(i)) for i in range(PAIRS)])
    true = np.arange(4096)[:, None] * exact
    assert 19 < np.abs(predicted - true).max() < 20
    for angle in kept:
        assert angle.dtype == torch.float32
        assert np.abs(angle.double().numpy() - true).max() < 3e-4


FAMILIES = ("llama", "mistral", "qwen3", "gemma2", "phi", "gpt_neox", "olmo2", "cohere", "glm4")


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_makes_the_same_table_inside_autocast(family):
    """Refuted if a family of transformers makes another table inside autocast."""
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    classes = {name: value for name, value in vars(module).items() if value.__class__ is type}
    table = next(v for name, v in classes.items() if name.endswith("RotaryEmbedding"))
    config = next(v for n, v in classes.items() if n.endswith("Config") and "PreTrained" not in n)
    x, positions = torch.zeros(1, 1, 8), torch.arange(4096)[None]
    table = table(config())
    outside = table(x, positions)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = table(x, positions)
    assert all(torch.equal(*pair) for pair in zip(inside, outside, strict=True))


@pytest.mark.parametrize("interleaved", [False, True])
def test_autocast_leaves_the_rotation_of_this_package_alone(interleaved):
    """Refuted if the rotation inside autocast is off by more than float32's rounding."""
    x = np.random.default_rng(0).normal(size=(1, 512, 64)).astype(np.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rope = RotaryEmbedding(64, max_seq_len=512, interleaved=interleaved)
        result = rope(torch.from_numpy(x))
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16  # it is switched on
    truth = rotate_complex(x.astype(float), np.arange(512), interleaved=interleaved)
    assert np.abs(result.double().numpy() - truth).max() < 2e-6


# Arithmetic ----------------------------------------------------------------------------------


def test_round_once():
    """Refuted if NumPy's complex numbers, rounded on bits, give other errors."""
    x = bfloat16_bits(3 * np.random.default_rng(9).normal(size=(4096, DIM)))
    angle = np.arange(4096)[:, None] * THETA
    a, b = np.split(x.astype(float), 2, axis=1)
    z = (a + 1j * b) * np.exp(1j * angle)
    truth = np.concatenate((z.real, z.imag), axis=1)

    def noise(y):
        return math.sqrt(np.square(y.astype(float) - truth).mean() / np.square(truth).mean())

    def turned(cos, sin, step):
        a, b = np.split(x, 2, axis=1)
        parts = step(step(a * cos) - step(b * sin)), step(step(b * cos) + step(a * sin))
        return bfloat16_bits(np.concatenate(parts, axis=1))

    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    low = bfloat16_bits(cos), bfloat16_bits(sin)
    once = noise(bfloat16_bits(truth))
    assert once == pytest.approx(0.00166, abs=2e-5)
    assert noise(turned(cos, sin, np.float32)) == pytest.approx(once, rel=0.005)
    assert noise(turned(*low, np.float32)) == pytest.approx(0.0021, abs=1e-4)
    assert noise(turned(*low, bfloat16_bits)) == pytest.approx(0.0027, abs=1e-4)
    ours = apply_rope(torch.from_numpy(x).bfloat16(), torch.from_numpy(cos), torch.from_numpy(sin))
    assert noise(ours.float().numpy()) == pytest.approx(once, rel=0.005)


def test_llama_in_bfloat16_rounds_everything(tmp_path, monkeypatch):
    """Refuted if a loaded Llama, run eagerly, hands over another table or another error."""
    transformers = pytest.importorskip("transformers")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    sizes = {"hidden_size": 4 * DIM, "num_attention_heads": 4, "num_key_value_heads": 4}
    config = transformers.LlamaConfig(
        **sizes, intermediate_size=8, num_hidden_layers=1, vocab_size=64
    )
    transformers.LlamaModel(config).save_pretrained(tmp_path)
    model = transformers.LlamaModel.from_pretrained(tmp_path, dtype=torch.bfloat16)
    rotate, seen = llama.apply_rotary_pos_emb, []

    def watched(q, k, cos, sin, *rest, **more):
        seen.append((q, cos, rotate(q, k, cos, sin, *rest, **more)[0]))
        return seen[-1][2], rotate(q, k, cos, sin, *rest, **more)[1]

    monkeypatch.setattr(llama, "apply_rotary_pos_emb", watched)
    tokens = torch.randint(64, (1, 2048), generator=torch.manual_seed(0))
    with torch.no_grad():
        model(tokens)
    ((q, cos, turned),) = seen
    assert q.dtype == cos.dtype == turned.dtype == torch.bfloat16
    whole = llama.LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(2048)[None])[0]
    assert whole.dtype == torch.float32  # this table, rounded
    assert torch.equal(cos, whole.bfloat16())
    a, b = np.split(q[0].double().numpy(), 2, axis=-1)
    z = (a + 1j * b) * np.exp(1j * np.arange(2048)[:, None] * THETA)
    truth = np.concatenate((z.real, z.imag), axis=-1)
    error = turned[0].double().numpy() - truth
    noise = math.sqrt(np.square(error).mean() / np.square(truth).mean())
    assert noise == pytest.approx(0.0027, abs=1e-4)


@pytest.mark.drawn(3, among="long")
def test_a_compiler_keeps_what_eager_code_rounds():
    """Refuted if transformers' functions, compiled here, have the error of the eager ones."""
    transformers = pytest.importorskip("transformers")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = transformers.LlamaConfig(hidden_size=2 * DIM, num_attention_heads=2, head_dim=DIM)
    table, at = llama.LlamaRotaryEmbedding(config), torch.arange(4096)[None]
    x = torch.randn(1, 1, 4096, DIM, generator=torch.manual_seed(4)).bfloat16()
    a, b = np.split(x[0, 0].double().numpy(), 2, axis=-1)
    z = (a + 1j * b) * np.exp(1j * np.arange(4096)[:, None] * THETA)
    truth = np.concatenate((z.real, z.imag), axis=-1)

    def noise(y):
        error = y[0, 0].double().numpy() - truth
        return math.sqrt(np.square(error).mean() / np.square(truth).mean())

    def rotate(x, cos, sin):
        return llama.apply_rotary_pos_emb(x, x, cos, sin)[0]

    def whole(x, at):
        return rotate(x, *table(x, at))

    cos, sin = table(x, at)
    eager = rotate(x, cos, sin)
    assert cos.dtype == eager.dtype == torch.bfloat16
    assert noise(eager) == pytest.approx(0.0027, abs=1e-4)
    torch.compiler.reset()
    assert noise(torch.compile(rotate)(x, cos, sin)) == pytest.approx(0.0021, abs=1e-4)
    assert noise(torch.compile(whole)(x, at)) == pytest.approx(0.00166, abs=2e-5)
    torch.compiler.reset()
    with torch._inductor.config.patch(emulate_precision_casts=True):
        assert torch.equal(torch.compile(rotate)(x, cos, sin), eager)
    torch.compiler.reset()


# Modules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_cast_does_not_degrade_the_module(interleaved):
    """Refuted if a cast of a model around it moves a bit, or the result from float64."""
    x = np.random.default_rng(0).normal(size=(2, 512, 64)).astype(np.float32)
    truth = rotate_complex(x.astype(float), np.arange(512), interleaved=interleaved)
    rope = RotaryEmbedding(64, max_seq_len=512, interleaved=interleaved)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ModuleList([rope]))
    before = rope(torch.from_numpy(x))
    for cast in (model.bfloat16, model.half, lambda: model.to(torch.bfloat16)):
        cast()
        assert model[0].weight.dtype in (torch.bfloat16, torch.float16)
        after = rope(torch.from_numpy(x))
        assert torch.equal(after, before)
        assert np.abs(after.double().numpy() - truth).max() < 2e-6


def test_a_complex_buffer_loses_its_sines():
    """Refuted if a sine survives `.to(torch.bfloat16)`, or one of the other casts takes it."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    angle = torch.arange(9.0)
    model.register_buffer("cis", torch.polar(torch.ones(9), angle))
    z = torch.complex(torch.ones(9), torch.zeros(9))
    for cast in (model.half, model.bfloat16):
        cast()
        assert torch.allclose((z * model.cis).angle().cos(), angle.cos(), atol=1e-6)
        assert torch.allclose((z * model.cis).imag, angle.sin(), atol=1e-6)
    with pytest.warns(UserWarning, match="imaginary"):
        model.to(torch.bfloat16)
    turned = z * model.cis.float()
    assert torch.equal(turned.imag, torch.zeros(9))
    assert torch.allclose(turned.real, angle.cos(), atol=4e-3)
