"""An EAGLE head for the storyteller, by the storyteller itself: ``python packaging/recipe/eagle.py FOLDER``.

The storyteller writes texts; the head learns to predict its hidden states and its distribution over the next token
(Li et al. 2024, https://arxiv.org/abs/2401.15077). Written as EAGLE's own checkpoints are.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaModel

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from decodescope import core  # the root has to be on the path first

LENGTH, BATCH, RATE, HOLD = 176, 8, 3e-3, 0.6
OPENINGS = (
    "Once upon a time", "One day", "I saw a", "The little", "In the forest", "A boy named", "There was a", "Mia",
    "Tell me a story about a fox.", "It was a sunny morning",
)  # fmt: skip
AHEAD = 3
"""How many of its own guesses it goes on from while it learns."""


@torch.no_grad()
def texts(model: core.LoadedModel, count: int) -> Tensor:
    """Ids [count, LENGTH] that the model draws, behind common openings."""
    found = []
    for opening in OPENINGS:
        ids = model.tokenizer(opening, return_tensors="pt").input_ids
        rows = ids.repeat(count // len(OPENINGS), 1)
        drawn = model.model.generate(
            rows, attention_mask=torch.ones_like(rows), do_sample=True, top_k=0, temperature=0.8, eos_token_id=None,
            min_length=LENGTH, max_length=LENGTH,
        )  # fmt: skip
        found.append(drawn)
    return torch.cat(found)


class Head(nn.Module):
    """EAGLE's: the token's embedding beside the state before it, joined, through one layer without a first norm."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        blank = LlamaModel(config)
        self.layer, self.rotary = blank.layers[0], blank.rotary_emb
        self.layer.input_layernorm = nn.Identity()
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size)
        with torch.no_grad():  # begin as “the next state is this one”
            self.fc.weight.mul_(0.1)
            self.fc.weight[:, config.hidden_size :] += 0.5 * torch.eye(config.hidden_size)

    def forward(self, embedded: Tensor, states: Tensor) -> Tensor:
        """States [B, n, D] from embeddings and states [B, n, D]."""
        joined = self.fc(torch.cat([embedded, states], -1))
        places = torch.arange(joined.shape[1])[None]
        mask = torch.full((1, 1, joined.shape[1], joined.shape[1]), torch.finfo(joined.dtype).min).triu(1)
        angles = self.rotary(joined, position_ids=places)
        found: Tensor = self.layer(joined, attention_mask=mask, position_ids=places, position_embeddings=angles)
        return found


def loss_of(head: Head, model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The loss, and how often the head's first choice is the model's [AHEAD] places ahead."""
    with torch.no_grad():
        states = model.base_model(ids)[0]
        targets = model.lm_head(states).softmax(-1)
        embedded = model.get_input_embeddings()(ids)
    seen, total, right = states, torch.zeros(()), []
    for ahead in range(AHEAD):
        found = head(embedded[:, 1:], seen[:, :-1])
        logits = model.lm_head(found)
        wanted = targets[:, 1:]
        kept = slice(ahead, None)
        soft = -(wanted[:, kept] * functional.log_softmax(logits[:, kept], -1)).sum(-1).mean()
        near = functional.smooth_l1_loss(found[:, kept], states[:, 1:][:, kept])
        total = total + (soft + 0.5 * near) * 0.7**ahead
        right.append((logits.argmax(-1) == wanted.argmax(-1))[:, kept].float().mean())
        seen = torch.cat([states[:, :1], found], 1)
    return total, torch.stack(right)


def train(model: core.LoadedModel, ids: Tensor, seconds: float) -> Head:
    """A head that has learned for that long."""
    config = model.config.__class__(**{**model.config.to_dict(), "num_hidden_layers": 1})
    head = Head(config)
    best = torch.optim.AdamW(head.parameters(), RATE, betas=(0.9, 0.95), weight_decay=0.01)
    begun, step = time.monotonic(), 0
    while (done := (time.monotonic() - begun) / seconds) < 1:
        for group in best.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 30, (1 - done) / (1 - HOLD))
        loss, right = loss_of(head, model.model, ids[BATCH:][torch.randint(len(ids) - BATCH, (BATCH,))])
        best.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        best.step()
        step += 1
        if step % 20 == 0:
            print(f"{step} steps, {done:.0%}: loss {float(loss):.3f}, right {right.tolist()}", flush=True)
    with torch.no_grad():
        print(f"held out: right {loss_of(head, model.model, ids[:BATCH])[1].tolist()}")
    return head


def write(head: Head, folder: Path, config: LlamaConfig) -> None:
    """In EAGLE's layout, as float16."""
    tensors = {f"layers.0.{name}": value for name, value in head.layer.state_dict().items()}
    tensors |= {f"fc.{name}": value for name, value in head.fc.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: value.to(torch.float16).contiguous() for name, value in tensors.items()},
        folder / "model.safetensors", metadata={"format": "pt"},
    )  # fmt: skip
    config.num_hidden_layers = 1
    config.save_pretrained(folder)


def main() -> None:
    """Texts, training, a folder."""
    parser = argparse.ArgumentParser(description="Train an EAGLE head for the storyteller.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=int, default=320)
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(11)
    model = core.load("storyteller")
    ids = texts(model, options.texts)
    head = train(model, ids[torch.randperm(len(ids))], options.minutes * 60)
    write(head, options.folder, model.config)


if __name__ == "__main__":
    main()
