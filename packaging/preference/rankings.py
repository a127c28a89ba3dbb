"""Make resources/preference/rankings.jsonl: ``python packaging/preference/rankings.py``.

Beginnings from the story grammar of the bundled models, endings by storyteller itself (half of them at temperature 1,
half at 1.4, so that good and bad ones come), put in order by `core.labs.preference.rankings`. Seeded: the same
everywhere
up to the rounding of the hardware.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "recipe")]
PROMPTS, ENDINGS, TRIED, LONGEST = 160, 6, 10, 110
SEED = 13


def beginnings() -> list[str]:
    """The first two paragraphs of stories that storyteller was not trained on."""
    from corpus import draw_story

    stories = (draw_story(random.Random(f"{SEED} preference {index}"), held_out=True) for index in range(PROMPTS))
    return [story.text.rsplit("\n", 1)[0] + "\n" for story in stories]


def endings(model: Any, prompt: str) -> list[str]:
    """Different endings, those of both temperatures mixed."""
    import torch

    ids = torch.tensor([model.tokenizer.encode(prompt)] * (TRIED // 2))
    found: list[str] = []
    for temperature in (1.0, 1.4):
        torch.manual_seed(SEED)
        out = model.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=temperature, top_k=0,
            max_new_tokens=LONGEST,
        )  # fmt: skip
        texts = model.tokenizer.batch_decode(out[:, ids.shape[1] :], skip_special_tokens=True)
        found += list(dict.fromkeys(text.strip() for text in texts))[: ENDINGS // 2]
    return [text for text in dict.fromkeys(found) if text][:ENDINGS]


def main() -> None:
    """Write the file."""
    from decodescope import core
    from decodescope.core.labs.preference.dataset_files import BUNDLED_RANKINGS, write_rankings
    from decodescope.core.labs.preference.rankings import rank_by_rule

    model = core.load("storyteller")
    made = [rank_by_rule(prompt, endings(model, prompt)) for prompt in beginnings()]
    usable = [one for one in made if len(one.completions) >= 4 and len(set(one.ranks)) > 1]
    write_rankings(BUNDLED_RANKINGS, usable)
    print(f"{len(usable)} rankings, {BUNDLED_RANKINGS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
