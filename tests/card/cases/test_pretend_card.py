"""The pretend card: what a card refuses raises, what it computes equals the CPU's result."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.card.card_tensor import CardTensor
from tests.card.pretend_card import PretendCard, UnsynchronizedAccessError


@pytest.fixture(params=[False, True], ids=["with gradients", "inference"])
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with torch.inference_mode(request.param):
        yield


def _host() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4)


WRONG: dict[str, tuple[str, Callable[[torch.Tensor, torch.Tensor], Any]]] = {
    "sum of two devices": ("same device", lambda c, x: c + x),
    "product of two devices": ("same device", lambda c, x: c @ x.T),
    "cat of two devices": ("same device", lambda c, x: torch.cat([c, x])),
    "numpy": ("numpy", lambda c, x: c.numpy()),
    "np.asarray": ("numpy", lambda c, x: np.asarray(c)),
    "index of the card on the host": ("indices", lambda c, x: x[torch.tensor([0], device="cuda")]),
    "index_select by the host": ("same device", lambda c, x: c.index_select(0, torch.tensor([0]))),
    "gather by the host": ("same device", lambda c, x: c.gather(1, torch.zeros(3, 1, dtype=torch.long))),
    "embedding of ids on the host": ("same device", lambda c, x: F.embedding(torch.tensor([1]), c)),
    "multinomial with the host's generator": (
        "generator", lambda c, x: torch.multinomial(c.softmax(-1), 1, generator=torch.Generator()),
    ),
    "rand with the host's generator": (
        "generator", lambda c, x: torch.rand(3, device="cuda", generator=torch.Generator()),
    ),
    "pinning a card tensor": ("pin", lambda c, x: c.pin_memory()),
    "mask on the host": ("same device", lambda c, x: c.masked_fill(x > 3, 0.0)),
    "where of two devices": ("same device", lambda c, x: torch.where(x > 3, c, c)),
    "a card that is not there": ("ordinal", lambda c, x: torch.zeros(3, device="cuda:1")),
    "index_copy_ by the host": ("same device", lambda c, x: c.clone().index_copy_(0, torch.tensor([0]), c[:1])),
    "isin of two devices": ("same device", lambda c, x: torch.isin(c, x[0])),
}  # fmt: skip


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("name", WRONG)
def test_pretend_card_refuses_what_a_card_refuses(card: PretendCard, name: str) -> None:
    words, function = WRONG[name]
    host = _host()
    with pytest.raises((RuntimeError, TypeError), match=words):
        function(host.to("cuda"), host)


def _assign(device: str) -> torch.Tensor:
    made = torch.zeros(3, 4, device=device)
    made[0] = 1.0
    made[1, 2] = 3
    made[:, 1] = torch.tensor(5.0, device=device)
    made[[2], [3]] = 7.0
    made[made > 4] = 0.5
    view = made[0:1]
    view += 1
    return made


def _grow(device: str) -> torch.Tensor:
    parts = [torch.zeros(1, count, dtype=torch.long, device=device) for count in (2, 4)]
    buffer = torch.cat(parts, 1)
    buffer[:, 2:3] = torch.tensor([[7]], device=device)
    return buffer


def _attend(device: str, heads: int, mask: bool) -> torch.Tensor:
    query = torch.linspace(0, 1, heads * 24, device=device).view(1, heads, 6, 4)
    keys = torch.linspace(0, 1, 48, device=device).view(1, 2, 6, 4)
    more: dict[str, Any] = {"attn_mask": torch.zeros(6, 6, device=device)} if mask else {"is_causal": True}
    return F.scaled_dot_product_attention(query, keys, keys, enable_gqa=heads > 2, **more)


def _generator(device: str) -> torch.Generator:
    return torch.Generator(device).manual_seed(5)


def _two_in_int(device: str) -> int:
    return int(torch.full((), 2.0, device=device))


def _generator_state(device: str) -> list[torch.Tensor]:
    generator = torch.Generator(device).manual_seed(1)
    state = generator.get_state()
    first = torch.rand(2, generator=generator, device=device)
    generator.set_state(state)
    return [first, torch.rand(2, generator=generator, device=device)]


RIGHT: dict[str, Callable[[str], Any]] = {
    "tensor": lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
    "scalar tensor of the host": lambda d: torch.ones(3, device=d) * torch.tensor(3.0),
    "index of the host": lambda d: torch.arange(10, device=d)[torch.tensor([1, 5])],
    "list as index": lambda d: torch.arange(10, device=d)[[1, 5]],
    "mask as index": lambda d: torch.arange(10, device=d)[torch.arange(10, device=d) > 4],
    "assignment": _assign,
    "growing buffer": _grow,
    "causal attention": lambda d: _attend(d, 2, False),
    "grouped attention with a mask": lambda d: _attend(d, 4, True),
    "multinomial": lambda d: torch.multinomial(torch.ones(2, 9, device=d), 1, generator=_generator(d)),
    "rand": lambda d: torch.rand(4, device=d, generator=_generator(d)),
    "topk": lambda d: torch.arange(12.0, device=d).view(3, 4).topk(2),
    "tolist": lambda d: torch.arange(12.0, device=d).view(3, 4).tolist(),
    "scalars": lambda d: (torch.ones(3, device=d).sum().item(), bool(torch.ones((), device=d)), _two_in_int(d)),
    "cpu": lambda d: torch.ones(3, device=d).cpu(),
    "to device and dtype": lambda d: torch.zeros(3).to(device=d, dtype=torch.float16),
    "from numpy": lambda d: torch.from_numpy(np.zeros(3)).to(device=d, dtype=torch.float32),
    "copy_ to the host": lambda d: torch.zeros(3).copy_(torch.ones(3, device=d)),
    "sort": lambda d: torch.sort(torch.arange(4.0, device=d), descending=True),
    "searchsorted": lambda d: torch.searchsorted(torch.arange(4.0, device=d), torch.tensor([1.5], device=d)),
    "generator state": _generator_state,
    "linear": lambda d: F.linear(torch.ones(2, 3, 4, device=d), torch.ones(5, 4, device=d)),
    "rows": lambda d: list(torch.arange(6, device=d).view(2, 3)),
    "float64": lambda d: torch.arange(6, device=d).double().cumsum(-1),
}  # fmt: skip


def _is_same(host: Any, card: Any) -> bool:
    if isinstance(host, torch.Tensor):
        values = card.values if isinstance(card, CardTensor) else card
        return torch.equal(host, values)
    if isinstance(host, list | tuple):
        return len(host) == len(card) and all(map(_is_same, host, card))
    return bool(host == card)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("name", RIGHT)
def test_pretend_card_computes_what_the_cpu_computes(card: PretendCard, name: str) -> None:
    assert _is_same(RIGHT[name]("cpu"), RIGHT[name]("cuda"))


def test_the_device_is_cuda_for_python(card: PretendCard) -> None:
    made = _host().to("cuda")
    assert made.device == torch.device("cuda:0")
    assert made.is_cuda
    assert made.to("cuda") is made
    assert made.to(torch.device("cuda:0")) is made
    assert made.cuda() is made


def test_modules_move_and_tied_weights_stay_tied(card: PretendCard) -> None:
    network = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9, bias=False))
    network[1].weight = network[0].weight
    expected = network(torch.tensor([1, 2]))
    network.to("cuda")
    assert network[1].weight is network[0].weight
    made = network(torch.tensor([1, 2], device="cuda"))
    assert torch.equal(expected, made.values)
    made.sum().backward()
    assert network[0].weight.grad.is_cuda


def test_a_wrong_index_breaks_the_card(card: PretendCard) -> None:
    table = torch.zeros(9, 4, device="cuda")
    with pytest.raises(RuntimeError, match="device-side assert"):
        F.embedding(torch.tensor([99], device="cuda"), table)
    with pytest.raises(RuntimeError, match="device-side assert"):
        table + 1


def test_memory_is_counted_by_storage(card: PretendCard) -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    made = torch.zeros(1000, 1000, device="cuda")
    view = made[3:]
    del made
    assert torch.cuda.memory_allocated() - before == 4_000_256
    del view
    assert torch.cuda.memory_allocated() == before
    free, total = torch.cuda.mem_get_info()
    assert total - free >= 4_000_256  # still reserved
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] == total - before


def test_full_memory_raises_out_of_memory() -> None:
    with PretendCard(capacity=2**20):
        kept = torch.zeros(2**17, device="cuda")
        with pytest.raises(torch.OutOfMemoryError):
            torch.zeros(2**18, device="cuda")
        assert kept.sum() == 0


def test_waits_and_uploads_are_counted(card: PretendCard) -> None:
    with card.counting() as counts:
        made = torch.ones(4, device="cuda")
        total = made.sum()
        total.item()
        made.tolist()
        made.cpu()
        made[made > 0]
        torch.tensor([1], device="cuda")
        made.nonzero()
        torch.cuda.synchronize()
        bool(total > 1)
    assert counts.totals()[:2] == (7, 1), counts.table()


def test_asynchronous_copies_are_not_counted_as_waits(card: PretendCard) -> None:
    made, pinned = torch.ones(4, device="cuda"), torch.empty(4, pin_memory=True)
    with card.counting() as counts:
        pinned.copy_(made, non_blocking=True)
        torch.tensor([1]).to("cuda", non_blocking=True)
    assert counts.totals()[:2] == (0, 0), counts.table()
    with card.counting() as counts:
        torch.empty(4).copy_(made, non_blocking=True)
    assert counts.totals()[:2] == (1, 0), "a copy into pageable memory waits"


@pytest.mark.parametrize(
    "read", [lambda t: t + 1, lambda t: t.tolist(), lambda t: t.numpy()], ids=["+", "list", "numpy"]
)
def test_reading_an_unfinished_transfer_raises(card: PretendCard, read: Callable[[torch.Tensor], Any]) -> None:
    made = torch.ones(4, device="cuda").to("cpu", non_blocking=True)
    with pytest.raises(UnsynchronizedAccessError):
        read(made)
    torch.cuda.current_stream().synchronize()
    read(made)


def test_streams_wait_for_each_other(card: PretendCard) -> None:
    stream, main = torch.cuda.Stream(), torch.cuda.default_stream()
    base = torch.zeros(3, device="cuda")
    with stream, pytest.raises(UnsynchronizedAccessError):
        base + 1
    stream.wait_stream(main)
    with stream:
        made = base + 1
    with pytest.raises(UnsynchronizedAccessError):
        made + 1
    main.wait_stream(stream)
    assert (made + 1).tolist() == [2.0] * 3
    host = base.to("cpu", non_blocking=True)
    with stream, pytest.raises(UnsynchronizedAccessError):
        host.to("cuda", non_blocking=True)


def test_graphs_refuse_old_outputs_and_waits(card: PretendCard) -> None:
    made = torch.ones(4, device="cuda")
    double = torch.compile(lambda x: x * 2, mode="reduce-overhead")
    first, second = double(made), double(made)
    with pytest.raises(RuntimeError, match="overwritten"):
        first + 1
    assert (second + 1).tolist() == [3.0] * 4
    waits = torch.compile(lambda x: x.sum().item(), mode="reduce-overhead")
    with pytest.raises(RuntimeError, match="capturing"):
        waits(made)


def test_graphs_overwrite_old_outputs() -> None:
    with PretendCard(overwrites=True):
        double = torch.compile(lambda x: x * 2, mode="reduce-overhead")
        first = double(torch.ones(2, device="cuda"))
        double(torch.full((2,), 5.0, device="cuda"))
        assert first.tolist() == [10.0, 10.0]


def test_a_captured_graph_repeats_its_operations(card: PretendCard) -> None:
    given, held = torch.ones(3, device="cuda"), torch.zeros(4, 3, device="cuda")
    place = torch.zeros(1, dtype=torch.long, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held.index_copy_(0, place, given[None] * 2)
        made = held.sum(0)
        place.add_(1)
    assert held.tolist() == [[0.0] * 3] * 4, "a capture computes nothing"
    assert made.isnan().all()
    with card.counting() as counts:
        graph.replay()
        given.fill_(2.0)
        graph.replay()
    assert made.tolist() == [6.0] * 3
    assert place.tolist() == [2]
    assert counts.graphs["launch"] == counts.launches["graph", "launch"] == 2


def test_a_capture_refuses_waits_and_uploads(card: PretendCard) -> None:
    made = torch.ones(3, device="cuda")
    for wrong in (lambda: made.sum().item(), lambda: torch.tensor([1.0], device="cuda"), made.cpu):
        with pytest.raises(RuntimeError, match="capturing"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            wrong()
    assert (made + 1).tolist() == [2.0] * 3


def test_the_memory_of_graphs_is_reserved(card: PretendCard) -> None:
    made, graph = torch.ones(2**20, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made.copy_((made + 1) * 2)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() - torch.cuda.memory_allocated() >= made.nbytes
    del graph
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == torch.cuda.memory_allocated()


def test_threads_can_use_the_card(card: PretendCard) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.ones(2, device="cuda").sum().item()))
    thread.start()
    thread.join()
    assert found == [2.0]


def test_mps_has_no_float64() -> None:
    with PretendCard(kind="mps"):
        made = torch.ones(3, device="mps")
        assert made.device.type == "mps"
        with pytest.raises(TypeError, match="float64"):
            made.double()
