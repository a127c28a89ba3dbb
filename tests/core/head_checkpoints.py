"""Tiny models with multi-token prediction heads (MTP) in their checkpoints, and EAGLE heads for them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers as t
from safetensors.torch import load_file, save_file

from decodescope import core
from tests.core import tiny

Tensors = dict[str, torch.Tensor]
WIDTH, LAYERS = 32, 2
_SIZES = {
    "vocab_size": tiny.VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 64, "num_attention_heads": 4,
    "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_EXPERTS = {
    "moe_intermediate_size": 16, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 2,
    "topk_group": 1, "first_k_dense_replace": 1,
}  # fmt: skip
_LATENT = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}


def _network(kind: str, layers: int) -> Any:
    if kind == "deepseek_v3":
        more = {**_SIZES, **_EXPERTS, **_LATENT, "num_key_value_heads": 4}
        return t.DeepseekV3ForCausalLM(t.DeepseekV3Config(num_hidden_layers=layers, **more))
    if kind == "glm4_moe":
        more = {**_SIZES, **_EXPERTS, "num_key_value_heads": 2, "head_dim": 8}
        return t.Glm4MoeForCausalLM(t.Glm4MoeConfig(num_hidden_layers=layers, **more))
    window = {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 0}
    more = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8, **window}
    return t.Qwen3ForCausalLM(t.Qwen3Config(num_hidden_layers=layers, **more))


def sharpened(network: Any, scale: float = 6.0) -> Any:
    """Weights as `tiny.make` has them: the argmax is far from a tie."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale)
    return network.float().eval()


def with_heads(folder: Path, kind: str, count: int, layout: str = "layers") -> Path:
    """Create a model whose checkpoint contains `count` heads: as layers after its own, or one under “mtp.” (as Qwen
    does).
    """
    torch.manual_seed(5)
    sharpened(_network(kind, LAYERS + count)).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    for head in range(count):
        tensors |= _extras(f"model.layers.{LAYERS + head}.")
    if layout == "mtp":
        tensors = {_qwen(name): value for name, value in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _edit(folder, num_hidden_layers=LAYERS, num_nextn_predict_layers=count)
    return folder


def _extras(place: str) -> Tensors:
    """Return a head's tensors besides its layer; the norms are not all ones, so omitting one is noticed."""
    return {
        f"{place}eh_proj.weight": torch.randn(WIDTH, 2 * WIDTH) * 0.3,
        **{f"{place}{name}.weight": 1 + 0.3 * torch.rand(WIDTH) for name in ("enorm", "hnorm", "shared_head.norm")},
    }


def _qwen(name: str) -> str:
    """A head's tensor as Qwen calls it."""
    place = f"model.layers.{LAYERS}."
    if not name.startswith(place):
        return name
    names = {"eh_proj": "fc", "enorm": "pre_fc_norm_embedding", "hnorm": "pre_fc_norm_hidden", "shared_head": "norm"}
    part = name.removeprefix(place)
    own = names.get(part.split(".")[0])
    return f"mtp.{own}.weight" if own else f"mtp.layers.0.{part}"


def _edit(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    config = json.loads(file.read_text())
    for kinds in ("layer_types", "mlp_layer_types"):
        if config.get(kinds):
            config[kinds] = config[kinds][: changes["num_hidden_layers"]]
    file.write_text(json.dumps({**config, **changes}))


def eagle(folder: Path, width: int = WIDTH, pickled: bool = False, **more: torch.Tensor) -> Path:
    """EAGLE's own layout: fc over [embedding, state] and one layer without its first norm."""
    torch.manual_seed(7)
    config = t.LlamaConfig(**{**_SIZES, "hidden_size": width, "num_key_value_heads": 2, "num_hidden_layers": 1})
    layer = sharpened(t.LlamaModel(config)).layers[0]
    tensors: Tensors = {
        f"layers.0.{name}": value for name, value in layer.state_dict().items() if "input_layernorm" not in name
    }
    tensors |= {"fc.weight": torch.randn(width, 2 * width) * 0.3, "fc.bias": torch.randn(width), **more}
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    if pickled:
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def states(model: core.LoadedModel, ids: list[int]) -> torch.Tensor:
    """Return the states of a text that the output head reads, [1, T, D], in one pass."""
    found: torch.Tensor = model.model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1]
    return found


@torch.no_grad()
def reference_drafts(
    model: core.LoadedModel, tensors: Mapping[str, torch.Tensor], ids: list[int], count: int
) -> list[int]:
    """Return the drafts of an EAGLE head after a text, computed without any cache."""
    head = t.LlamaModel(t.LlamaConfig(**{**_SIZES, "num_key_value_heads": 2, "num_hidden_layers": 1})).eval()
    layer = head.layers[0]
    layer.load_state_dict(
        {name.removeprefix("layers.0."): value for name, value in tensors.items() if name.startswith("layers.")},
        strict=False,
    )
    layer.input_layernorm = torch.nn.Identity()
    known, seen = list(ids), states(model, ids[:-1])
    embed = model.model.get_input_embeddings()
    for _ in range(count):
        beside = torch.tensor([known[1:]])
        joined = torch.cat([embed(beside), seen], -1) @ tensors["fc.weight"].T + tensors["fc.bias"]
        positions = torch.arange(1, len(known))[None]
        mask = torch.full((1, 1, len(known) - 1, len(known) - 1), torch.finfo(torch.float32).min).triu(1)
        found = layer(
            joined, attention_mask=mask, position_ids=positions,
            position_embeddings=head.rotary_emb(joined, position_ids=positions),
        )  # fmt: skip
        known.append(int(model.head(found[0, -1]).argmax()))
        seen = torch.cat([seen, found[:, -1:]], 1)
    return known[len(ids) :]


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Deleted at the end of the process."""


@cache
def own_options(strategy: str) -> dict[str, str]:
    """Return options that only this strategy needs with a tiny Llama: the folder of a head."""
    if strategy != "prediction_heads":
        return {}
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="decodescope-head-"))
    return {"draft_head": str(eagle(Path(_FOLDERS[-1].name)))}
