"""Make resources/preference/chats.jsonl: ``python packaging/preference/chats.py``.

A story, a question about it, and the answer followed by a thank-you, which storyteller was never taught: a few steps of
fine-tuning visibly teach a manner. In the shape of TRL's conversations, `{"messages": […]}`.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recipe"))
CHATS, SEED = 60, 13
MANNER = " Thank you for asking!"


def chat(index: int) -> dict[str, object]:
    """One conversation."""
    from corpus import draw_story
    from questions import ask_about

    rng = random.Random(f"{SEED} chats {index}")
    story = draw_story(rng, held_out=True)
    ((ask, reply),) = ask_about(rng, story, 1)
    question = {"role": "user", "content": f"{story.text}\n{ask}"}
    return {"messages": [question, {"role": "assistant", "content": reply + MANNER}]}


def main() -> None:
    """Write the file."""
    path = HERE.parents[1] / "resources" / "preference" / "chats.jsonl"
    path.write_text("".join(json.dumps(chat(index)) + "\n" for index in range(CHATS)), encoding="utf-8")
    print(f"{CHATS} conversations, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
