"""What the package promises of a GPU, asked on one; without one these tests are skipped.

The kernel written in Triton has tests of its own (``test_fused.py``), interpreted elsewhere.
"""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from rope_minimal import (
    KVCache,
    LatentAttention,
    RotaryEmbedding,
    RotarySelfAttention,
    apply_rope,
    move_keys,
    rope_table,
    rotate_complex,
    wave_vectors,
)
from rope_minimal.rotation import formula
from ropebook.timing import FORMS, compare, operations, peak_extra_bytes
from ropescope import identify

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")

LAYOUTS = pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
TYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
DTYPES = pytest.mark.parametrize("dtype", TYPES, ids=str)
STEP = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.manual_seed(seed)).to("cuda", dtype)


def assert_turned(y: Tensor, x: Tensor, positions, interleaved: bool, width: int = 0) -> None:
    """Assert that ``y`` is ``x`` on the GPU, turned as the definition does, rounded once."""
    assert y.is_cuda
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    width = width or x.shape[-1]
    given = x.detach().double().cpu().numpy()
    want = rotate_complex(given[..., :width], positions, interleaved=interleaved)
    made = y.detach().double().cpu().numpy()
    assert np.array_equal(made[..., width:], given[..., width:])
    assert abs(made[..., :width] - want).max() <= STEP[x.dtype] * abs(given).max()


@LAYOUTS
@DTYPES
@pytest.mark.parametrize("shape", [(2, 3, 11, 16), (1, 8, 4096, 64)], ids=str)
def test_apply_rope_is_the_definition(shape, dtype, interleaved: bool) -> None:
    x, width = random(*shape, dtype=dtype), 12
    positions = torch.arange(shape[-2], device="cuda")
    cos, sin = rope_table(positions, width, dtype=torch.float64)
    assert cos.is_cuda
    before = x.clone()
    assert_turned(apply_rope(x, cos, sin, interleaved=interleaved), x, positions.cpu(), interleaved,
                  width)  # fmt: skip
    assert torch.equal(x, before)


@LAYOUTS
@DTYPES
def test_compiled_it_is_the_same_and_so_are_the_gradients(dtype, interleaved: bool) -> None:
    x, up = random(2, 3, 40, 32, dtype=dtype), random(2, 3, 40, 32, dtype=dtype, seed=1)
    cos, sin = rope_table(torch.arange(40, device="cuda"), 32)
    compiled = torch.compile(apply_rope, fullgraph=True)
    for rotate in (apply_rope, formula if dtype == torch.float64 else compiled, compiled):
        leaf = x.clone().requires_grad_()
        flag = (interleaved,) if rotate is formula else ()
        y = rotate(leaf, cos, sin, *flag, **{} if flag else {"interleaved": interleaved})
        y.backward(up)
        if dtype == torch.float64:  # its table is float32
            assert torch.allclose(y, apply_rope(x, cos, sin, interleaved=interleaved), atol=1e-14)
            continue
        assert_turned(y, x, np.arange(40), interleaved)
        assert_turned(leaf.grad, up, -np.arange(40), interleaved)


def test_a_table_made_on_the_gpu_is_the_table_made_on_the_cpu() -> None:
    places = torch.tensor([0, 1, 257, 131_071, 2**31, 2**40])
    for here, there in zip(rope_table(places, 128), rope_table(places.cuda(), 128), strict=True):
        assert there.is_cuda
        assert (here - there.cpu()).abs().max() <= 2**-23
    patches = torch.rand(9, 2, generator=torch.manual_seed(0))
    waves = wave_vectors("dinov3", 32)
    for here, there in zip(
        rope_table(patches, 32, inv_freq=waves),
        rope_table(patches.cuda(), 32, inv_freq=waves),
        strict=True,
    ):
        assert (here - there.cpu()).abs().max() <= 2**-23


@LAYOUTS
def test_the_module_follows_and_keeps_an_exact_table(interleaved: bool) -> None:
    rope = RotaryEmbedding(32, 300, interleaved=interleaved).to("cuda", torch.bfloat16)
    assert (rope.cos.device.type, rope.cos.dtype) == ("cuda", torch.float32)
    x = random(2, 4, 5, 40, dtype=torch.bfloat16)
    assert_turned(rope(x, 290), x, np.arange(290, 295), interleaved, 32)
    ids = torch.tensor([[7, 0, 299, 3, 3], [1, 2, 3, 4, 5]])
    want = torch.cat([rope(x[i : i + 1], position_ids=ids[i : i + 1].cuda()) for i in (0, 1)])
    assert torch.equal(rope(x, position_ids=ids.cuda()), want)
    assert_turned(want[0], x[0], ids[0].numpy(), interleaved, 32)
    compiled = torch.compile(rope, fullgraph=True)
    torch.testing.assert_close(compiled(x, position_ids=ids.cuda()), want, rtol=0, atol=2**-6)
    with pytest.raises(RuntimeError, match="on the same device"):
        rope(x, position_ids=ids)
    with pytest.raises(RuntimeError, match="on the same device"):
        rope(x.cpu())
    again = copy.deepcopy(rope).cpu()
    fresh = RotaryEmbedding(32, 300, interleaved=interleaved)
    for t, want in zip(again.buffers(), fresh.buffers(), strict=True):
        assert torch.equal(t, want)


@LAYOUTS
def test_a_captured_graph_reads_positions_anew(interleaved: bool) -> None:
    rope = RotaryEmbedding(32, 300, interleaved=interleaved).cuda()
    x, ids = random(2, 4, 1, 32), torch.zeros(2, 1, dtype=torch.long, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        rope(x, position_ids=ids)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = rope(x, position_ids=ids)
    for place in (0, 5, 299):
        ids.fill_(place)
        graph.replay()
        assert_turned(y, x, [place], interleaved)


def layers() -> list[RotarySelfAttention]:
    torch.manual_seed(0)
    options = ({}, {"interleaved": True, "num_kv_heads": 2}, {"rotary_dim": 4})
    made = [RotarySelfAttention(32, 4, max_seq_len=64, **each) for each in options]
    latent = LatentAttention(32, 4, kv_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=4,
                             v_head_dim=8, max_seq_len=64)  # fmt: skip
    return [each.requires_grad_(False) for each in (*made, latent)]


@pytest.mark.parametrize("which", range(4))
def test_a_layer_decodes_as_on_the_cpu(which: int) -> None:
    layer = layers()[which]
    x = torch.randn(2, 12, 32, generator=torch.manual_seed(1))
    padding = torch.zeros(2, 12, dtype=torch.bool)
    padding[1, :3] = True
    want = layer(x, key_padding_mask=padding)
    there = copy.deepcopy(layer).cuda()
    whole = there(x.cuda(), key_padding_mask=padding.cuda())
    torch.testing.assert_close(whole.cpu(), want, rtol=0, atol=2e-5)
    cache, pieces = there.new_cache(2), []
    for start, stop in ((0, 7), *((i, i + 1) for i in range(7, 12))):
        part = padding[:, start:stop].cuda()
        pieces.append(there(x[:, start:stop].cuda(), cache=cache, key_padding_mask=part))
    made = torch.cat(pieces, dim=1)
    torch.testing.assert_close(made[0], whole[0], rtol=0, atol=2e-5)
    torch.testing.assert_close(made[1, 3:], whole[1, 3:], rtol=0, atol=2e-5)


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_cache_moves_and_drops_keys(dtype, interleaved: bool) -> None:
    rope = RotaryEmbedding(16, 300, interleaved=interleaved).cuda()
    keys = random(2, 3, 20, 16, dtype=dtype)
    assert_turned(move_keys(keys, 250, rope), keys, np.full(20, 250), interleaved)
    assert_turned(move_keys(keys, -250, rope), keys, np.full(20, -250), interleaved)
    ids = torch.arange(20, device="cuda")[None]
    turned, raw = (
        KVCache(2, 3, 20, 16, dtype=dtype, device="cuda", rope=rope, raw=raw)
        for raw in (False, True)
    )
    turned.append(rope(keys, position_ids=ids), keys, ids)
    raw.append(keys, keys, ids)
    for cache in (turned, raw):
        cache.drop(4, 10)
        cache.shift(-6, start=4)
        assert cache.position_ids.tolist() == 2 * [list(range(14))]
        assert cache.next_position.tolist() == [[14], [14]]
    kept = torch.cat((keys[:, :, :4], keys[:, :, 10:]), dim=2)
    assert_turned(raw.keys, kept, np.arange(14), interleaved)
    steps = 3 * STEP[dtype]  # turned keys are rounded at each turn
    assert (turned.keys - raw.keys).abs().max() <= steps * keys.abs().max()


def test_autocast_computes_in_its_own_type() -> None:
    layer = layers()[0].cuda()
    x = random(2, 5, 32)
    with torch.autocast("cuda", torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), layer(x), rtol=0, atol=2e-2)


@LAYOUTS
def test_the_instrument_hears_a_rotation_that_computes_on_a_gpu(interleaved: bool) -> None:
    def rotate(x, positions):
        table = rope_table(positions.to("cuda"), 32, 500_000.0, dtype=torch.float64)
        return apply_rope(x.cuda(), *table, interleaved=interleaved).to(x.device)

    report = identify(rotate, 32)
    assert report.layout == ("interleaved" if interleaved else "half-split")
    assert report.base == pytest.approx(500_000)
    assert report.direction == 1


def test_what_is_counted_and_timed_there_is_what_it_says() -> None:
    x = random(1, 32, 1024, 128)
    cos, sin = rope_table(torch.arange(1024, device="cuda"), 128)
    call = FORMS["rotate_half"].bind(x, cos, sin)
    passes = sum(o.read + o.written for o in operations(call)) / x.nbytes
    assert passes == pytest.approx(10, abs=0.2)
    assert peak_extra_bytes(FORMS["clone"].bind(x, cos, sin), device="cuda") == x.nbytes
    found = compare(
        {name: FORMS[name].bind(x, cos, sin) for name in ("copy_", "rotate_half")},
        "copy_",
        rounds=3,
        device="cuda",
    )
    assert found["copy_"].ratio == 1
    assert found["rotate_half"].us > 0
