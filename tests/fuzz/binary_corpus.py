"""python -m tests.fuzz.binary_corpus: write the files of the corpus that are not text.

They are small: weights of a few numbers, pictures of a few pixels, recordings of a few tokens.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from decodescope import core
from decodescope.core.models.model_saving import save_gguf
from tests.core import gguf_models, tiny
from tests.core.spec_models import similar_model
from tests.core.test_adapters import write_gguf_adapter
from tests.fuzz.damage import SETTINGS
from tests.fuzz.parsers import CORPUS

SHAPE = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
         "intermediate_size": 32, "max_position_embeddings": 32}  # fmt: skip


def write_recordings(folder: Path) -> None:
    """Runs of four strategies, a few tokens each."""
    for strategy in ("sampling", "beam_search", "token_tree", "contrastive"):
        drafters = [similar_model("llama")] if strategy == "token_tree" else []
        request = core.Request(tiny.prompt(), {"max_new_tokens": 4}, strategy, drafters=drafters, top_n=3)
        stream = core.stream(tiny.shared("llama"), request)
        for _ in core.record(folder / f"valid-{strategy}.decodescope", stream, request):
            pass


def write_weights() -> None:
    """A model of one small layer as GGUF, an adapter of it in both formats, and a safetensors file of odd types."""
    torch.manual_seed(0)
    model = gguf_models.make("llama", **SHAPE)
    save_gguf(model, CORPUS / "gguf" / "valid-llama.gguf", "Q8_0")
    _write_metadata(CORPUS / "gguf" / "valid-llama.gguf", CORPUS / "gguf" / "metadata-only.gguf")
    layer = "base_model.model.model.layers.0.self_attn"
    tensors = {
        f"{layer}.{name}.lora_{part}.weight": torch.randn(*shape)
        for name in ("q_proj", "v_proj")
        for part, shape in (("A", (2, 32)), ("B", (32, 2)))
    }
    save_file(tensors, CORPUS / "adapter_weights" / "valid-lora.safetensors")
    with tempfile.TemporaryDirectory() as made:
        shutil.copy(CORPUS / "adapter_weights" / "valid-lora.safetensors", Path(made) / "adapter_model.safetensors")
        shutil.copy(CORPUS / "adapters" / "valid-lora.json", Path(made) / "adapter_config.json")
        write_gguf_adapter(model, Path(made), CORPUS / "gguf_adapters" / "valid-lora.gguf")
    types = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn)
    save_file(
        {f"{n}.weight": torch.ones(2, n + 1).to(kind) for n, kind in enumerate(types)} | {"empty": torch.ones(0, 3)},
        CORPUS / "safetensors" / "valid-types.safetensors", {"format": "pt"},
    )  # fmt: skip


def _write_metadata(source: Path, target: Path) -> None:
    """The first bytes of a file, without its weights."""
    target.write_bytes(source.read_bytes()[:6000])


def write_tokenizers(folder: Path) -> None:
    """The three kinds of vocabulary, trained on one sentence, and the first pieces of a SentencePiece file."""
    special = ["<unk>", "</s>", "<keep>"]
    kinds: dict[str, tuple[Any, Any, Any, Any]] = {
        "bpe": (
            models.BPE(unk_token="<unk>"), trainers.BpeTrainer, pre_tokenizers.ByteLevel(), decoders.ByteLevel()
        ),
        "unigram": (models.Unigram(), trainers.UnigramTrainer, pre_tokenizers.Metaspace(), decoders.Metaspace()),
        "wordpiece": (
            models.WordPiece(unk_token="<unk>"), trainers.WordPieceTrainer, pre_tokenizers.Whitespace(),
            decoders.WordPiece(),
        ),
    }  # fmt: skip
    for name, (model, trainer, before, after) in kinds.items():
        backend = Tokenizer(model)
        backend.pre_tokenizer, backend.decoder = before, after
        backend.normalizer = normalizers.NFKC()
        more = {"unk_token": "<unk>"} if name == "unigram" else {}
        trained = trainer(vocab_size=80, show_progress=False, special_tokens=special, **more)
        backend.train_from_iterator(["a token of the sentence a token"], trained)
        backend.save(str(folder / f"valid-{name}.json"), pretty=False)
    (folder / "pieces.model").write_bytes(b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x08\n\x01a\x15\0\0\0\0")
    (folder / "length.model").write_bytes(b"\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")


def write_media(folder: Path) -> None:
    """A tone in four formats and a picture in seven."""
    tone = (0.3 * np.sin(np.arange(400) / 4)).astype(np.float32)
    with wave.open(str(folder / "valid-tone.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((tone * 32767).astype("<i2").tobytes())
    for kind in ("flac", "ogg", "aiff", "mp3"):
        soundfile.write(folder / f"valid-tone.{kind}", np.stack([tone, -tone], 1), 16000)
    image = Image.new("RGB", (12, 8), "red")
    image.paste((0, 0, 255), (6, 0, 12, 8))
    for kind in ("png", "jpeg", "bmp", "webp", "tiff"):
        image.save(folder / f"valid-picture.{kind}")
    image.save(folder / "valid-progressive.jpeg", progressive=True)
    image.quantize(4).save(folder / "valid-animation.gif", save_all=True, append_images=[image.rotate(90).quantize(4)])
    image.save(folder / "valid-animation.png", save_all=True, append_images=[image.rotate(180)])
    exif = Image.Exif()
    exif[0x0112] = 6
    with io.BytesIO() as written:
        image.save(written, "jpeg", exif=exif)
        (folder / "valid-turned.jpeg").write_bytes(written.getvalue())


def main() -> None:
    """Write all of them."""
    write_recordings(CORPUS / "recordings")
    write_weights()
    write_tokenizers(CORPUS / "tokenizers")
    write_media(CORPUS / "media")
    (CORPUS / "settings" / "valid-settings.json").write_text(json.dumps(SETTINGS, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
