"""What the processes of every scheme begin with: a model, and texts."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from core.labs.scale.ranks.rank_messages import RankJob
from core.models.loaded_model import LoadedModel, load

LEARNING_RATE = 1e-3


def load_for_training(job: RankJob) -> LoadedModel:
    """The model, ready to be trained, in float32."""
    torch.set_num_threads(1)
    found = load(job.folder, device="cpu", dtype="float32")
    found.model.requires_grad_(True)
    found.model.config.use_cache = False
    return found


def random_texts(model: PreTrainedModel, count: int, length: int) -> torch.Tensor:
    """Token ids [count, length]: any will do, the same for all that ask."""
    most = int(model.config.get_text_config().vocab_size)
    return torch.randint(most, (count, length), generator=torch.Generator().manual_seed(0))
