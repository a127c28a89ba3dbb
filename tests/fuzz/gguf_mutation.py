"""Small GGUF files of each kind of tokenizer and of several architectures, and changes of their headers."""

from __future__ import annotations

import io
import random
import struct
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from decodescope.core.models.gguf.export import file_content
from decodescope.core.models.gguf.file_writer import write_file
from decodescope.core.models.gguf.gguf_file import ARRAY, FORMATS, NUMBERS, TEXT
from decodescope.core.models.model_saving import exported_model
from tests.core import gguf_models

_SHAPE = {
    "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}  # fmt: skip
ARCHITECTURES = (
    "llama", "llama3", "mixtral", "gpt2", "gemma2", "deepseek_v2", "lfm2_moe", "mamba", "falcon40b", "bloom",
)  # fmt: skip
TOKENIZERS = ("gpt2", "llama", "t5", "bert")
_INTEGERS = (
    0, 1, 2, 3, 5, 31, 33, 64, 127, 128, 255, 256, 1024, 1025, 2**15, 2**16, 10**7, 2**24, 2**31 - 1, 2**31, 2**32 - 1,
    2**33, 2**40, 2**53, 2**63 - 1, 2**63, 2**64 - 1,
)  # fmt: skip
_FLOATS = (0.0, -0.0, -1.0, 0.5, 1.0, 1e-45, 1e-38, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = (
    "", " ", "a", "▁", "a b", "a" * 5000, "\0", "<0x0A>", "ÿ", "🎈", "yarn", "linear", "longrope", "none", "llama",
    "{{ x }}", "{% for x in range(10**9) %}{% endfor %}", "adapter",
)  # fmt: skip


@dataclass(frozen=True)
class GgufHeader:
    """The parts of a file."""

    metadata: tuple[tuple[str, bytes], ...]
    """Keys, and types with values as they are stored."""
    tensors: tuple[tuple[str, tuple[int, ...], int, int], ...]
    """Names, sizes, numbers of the type, offsets."""
    data: bytes

    def to_bytes(self) -> bytes:
        """Return the file."""
        made = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.metadata)))
        for key, value in self.metadata:
            made += _text(key) + value
        for name, sizes, kind, offset in self.tensors:
            made += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)
        made += bytes(-len(made) % 32)
        return bytes(made) + self.data


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(data)) + data


def parse(content: bytes) -> GgufHeader:
    """Split a valid file."""
    stream = io.BytesIO(content)
    _, _, tensors, entries = struct.unpack("<4sIQQ", stream.read(24))

    def number(letter: str) -> int:
        return int(struct.unpack("<" + letter, stream.read(struct.calcsize(letter)))[0])

    def text() -> str:
        return stream.read(number("Q")).decode("utf-8", "surrogatepass")

    def skip(kind: int) -> None:
        if kind == TEXT:
            stream.read(number("Q"))
        elif kind == ARRAY:
            inner, count = number("I"), number("Q")
            for _ in range(count):
                skip(inner)
        else:
            stream.read(struct.calcsize(NUMBERS[kind]))

    metadata = []
    for _ in range(entries):
        key, start = text(), stream.tell()
        skip(number("I"))
        metadata.append((key, content[start : stream.tell()]))
    table = []
    for _ in range(tensors):
        name = text()
        sizes = tuple(number("Q") for _ in range(number("I")))
        table.append((name, sizes, number("I"), number("Q")))
    start = -(-stream.tell() // 32) * 32
    return GgufHeader(tuple(metadata), tuple(table), content[start:])


def _array(kind: int, count: int, content: bytes) -> bytes:
    return struct.pack("<IIQ", ARRAY, kind, count) + content


def _vocabulary(kind: str, count: int) -> dict[str, bytes]:
    """Return the metadata of a vocabulary of this kind."""
    letters = [chr(code) for code in range(33, 127)]
    if kind == "llama":
        words = ["<unk>", "<s>", "</s>", *(f"<0x{code:02X}>" for code in range(256))][:count]
        words = [*words[:-60], *letters[:50], "▁", "▁a", "ab", "▁ab", "abc", "cd", "abcd", "▁abc", "de", "ef"]
        kinds = [2, 3, 3, *[6 if word.startswith("<0x") else 1 for word in words[3:]]]
    elif kind == "t5":
        words = ["<pad>", "</s>", "<unk>", "▁", *letters, *(a + b for a in letters for b in letters)][:count]
        kinds = [3, 3, 2, *[1] * (count - 3)]
    else:
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"▁{one}" for one in letters), *letters]
        words += [f"a{number}" for number in range(count - len(words))]
        kinds = [3, 2, 3, 3, 3, *[1] * (count - 5)]
    made = {
        "tokenizer.ggml.model": struct.pack("<I", TEXT) + _text(kind),
        "tokenizer.ggml.tokens": _array(TEXT, count, b"".join(map(_text, words))),
        "tokenizer.ggml.token_type": _array(5, count, struct.pack(f"<{count}i", *kinds)),
        "tokenizer.ggml.scores": _array(6, count, struct.pack(f"<{count}f", *(-float(n) for n in range(count)))),
    }
    if kind == "t5":
        made["tokenizer.ggml.precompiled_charsmap"] = _array(1, 1029, struct.pack("<I", 1024) + bytes(1025))
    return made


@cache
def corpus(architectures: tuple[str, ...] = ARCHITECTURES) -> dict[str, GgufHeader]:
    """Return the valid files by name: of these architectures, and of a Llama with each kind of tokenizer."""
    found: dict[str, GgufHeader] = {}
    for kind in architectures:
        shape = {} if kind in ("deepseek_v2", "mamba", "falcon40b", "bloom") else _SHAPE
        metadata, entries = file_content(exported_model(gguf_models.make(kind, **shape)), "Q8_0")
        stream = io.BytesIO()
        write_file(stream, metadata, entries)
        found[kind] = parse(stream.getvalue())
    for kind in TOKENIZERS[1:]:
        kept = {key: value for key, value in found["llama"].metadata if not key.startswith("tokenizer.")}
        made = replace(found["llama"], metadata=tuple((kept | _vocabulary(kind, 259)).items()))
        found[f"tokenizer-{kind}"] = made
    return found


def change(header: GgufHeader, dice: random.Random) -> bytes:
    """Return the file with one to four changes in its header: of its parts, or of its bytes."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        header = dice.choice(_CHANGES)(header, dice)
    content = header.to_bytes()
    if dice.random() < 0.7:
        return content
    limit = max(1, len(content) - len(header.data))
    changed = bytearray(content)
    for _ in range(dice.choice((1, 1, 2, 3))):
        size = dice.choice((1, 1, 4, 8))
        place = dice.randrange(max(1, limit - size))
        if dice.random() < 0.2:
            del changed[place : place + dice.choice((1, 4, 8, 64, 10**6))]
        else:
            changed[place : place + size] = (dice.choice(_INTEGERS) % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(changed)


def _value(dice: random.Random) -> bytes:
    """Return a type and a value at an edge."""
    kind = dice.choice((0, 4, 4, 4, 5, 6, 6, 7, TEXT, ARRAY, 10, 11, 12))
    if kind == TEXT:
        return struct.pack("<I", TEXT) + _text(dice.choice(_TEXTS))
    if kind == ARRAY:
        inner, count = dice.choice((4, 5, 6, TEXT)), dice.choice((0, 1, 2, 3, 300))
        if inner == TEXT:
            return _array(TEXT, count, b"".join(_text(dice.choice(_TEXTS)) for _ in range(count)))
        return _array(inner, count, b"".join(_number(inner, dice) for _ in range(count)))
    return struct.pack("<I", kind) + _number(kind, dice)


def _number(kind: int, dice: random.Random) -> bytes:
    letter = NUMBERS[kind]
    if letter in "fd":
        return struct.pack("<" + letter, dice.choice(_FLOATS))
    size = struct.calcsize(letter)
    return (dice.choice(_INTEGERS) % 2 ** (8 * size)).to_bytes(size, "little")


def _set_value(header: GgufHeader, dice: random.Random) -> GgufHeader:
    metadata = list(header.metadata)
    place = dice.randrange(len(metadata))
    metadata[place] = metadata[place][0], _value(dice)
    return replace(header, metadata=tuple(metadata))


def _set_same_type(header: GgufHeader, dice: random.Random) -> GgufHeader:
    """Replace a number by another one, as most readers expect it."""
    numbers = [place for place, (_, value) in enumerate(header.metadata) if value[0] in NUMBERS]
    metadata, place = list(header.metadata), dice.choice(numbers)
    key, value = metadata[place]
    metadata[place] = key, value[:4] + _number(value[0], dice)
    return replace(header, metadata=tuple(metadata))


def _change_array(header: GgufHeader, dice: random.Random) -> GgufHeader:
    """Shorten, lengthen, repeat or overwrite the content of an array."""
    arrays = [place for place, (_, value) in enumerate(header.metadata) if value[0] == ARRAY and len(value) > 20]
    if not arrays:
        return header
    metadata, place = list(header.metadata), dice.choice(arrays)
    key, value = metadata[place]
    kind, count = struct.unpack_from("<IQ", value, 4)
    content = value[16:]
    if kind == TEXT:
        known, wanted = _parse_texts(content), dice.choice((count, count, count // 2, 2 * count))
        texts = [known[number % count] for number in range(wanted)]
        for _ in range(dice.choice((1, 5, 50))):
            if texts:
                texts[dice.randrange(len(texts))] = dice.choice((*_TEXTS, texts[0]))
        metadata[place] = key, _array(kind, len(texts), b"".join(map(_text, texts)))
    else:
        size = struct.calcsize(NUMBERS[kind])
        places = [number % count * size for number in range(dice.choice((count, count, count // 2)))]
        numbers = [content[place : place + size] for place in places]
        for _ in range(dice.choice((1, 5, 50))):
            if numbers:
                numbers[dice.randrange(len(numbers))] = _number(kind, dice)
        metadata[place] = key, _array(kind, len(numbers), b"".join(numbers))
    return replace(header, metadata=tuple(metadata))


def _parse_texts(content: bytes) -> list[str]:
    found, place = [], 0
    while place < len(content):
        (length,) = struct.unpack_from("<Q", content, place)
        found.append(content[place + 8 : place + 8 + length].decode("utf-8", "replace"))
        place += 8 + length
    return found


def _remove_key(header: GgufHeader, dice: random.Random) -> GgufHeader:
    left = list(header.metadata)
    left.pop(dice.randrange(len(left)))
    return replace(header, metadata=tuple(left))


def _add_key(header: GgufHeader, dice: random.Random) -> GgufHeader:
    architecture = next((value[12:] for key, value in header.metadata if key == "general.architecture"), b"llama")
    name = architecture.decode("utf-8", "replace")
    more = (
        "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.attn_factor",
        "rope.scaling.yarn_log_multiplier", "rope.scaling.yarn_beta_fast", "rope.dimension_count", "rope.freq_base",
        "rope.freq_base_swa", "attention.key_length", "attention.sliding_window", "attention.scale", "expert_count",
        "expert_used_count", "expert_weights_scale", "logit_scale", "attn_logit_softcapping", "vocab_size",
        "attention.sliding_window_pattern", "expert_gating_func", "decoder_block_count", "attention.clamp_kqv",
    )  # fmt: skip
    others = (
        "general.alignment", "general.file_type", "general.sampling.temp", "general.sampling.top_k", "split.count",
        "general.sampling.penalty_repeat", "general.type", "split.no", "tokenizer.ggml.add_bos_token",
        "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.chat_template", "tokenizer.ggml.pre",
    )  # fmt: skip
    key = f"{name}.{dice.choice(more)}" if dice.random() < 0.7 else dice.choice(others)
    kept = tuple(entry for entry in header.metadata if entry[0] != key)
    return replace(header, metadata=(*kept, (key, _value(dice))))


def _change_tensor(header: GgufHeader, dice: random.Random) -> GgufHeader:
    tensors = list(header.tensors)
    place = dice.randrange(len(tensors))
    name, sizes, kind, offset = tensors[place]
    match dice.randrange(6):
        case 0:
            tensors.pop(place)
        case 1:
            changed = list(sizes)
            changed[dice.randrange(len(sizes))] = dice.choice(_INTEGERS)
            tensors[place] = name, tuple(changed), kind, offset
        case 2:
            tensors[place] = name, sizes[::-1], kind, offset
        case 3:
            tensors[place] = name, sizes, dice.choice((*FORMATS, 99)), offset
        case 4:
            other = dice.choice((tensors[0][0], name.replace("blk.1", f"blk.{dice.choice(_INTEGERS)}"), name + "x", ""))
            tensors[place] = other, sizes, kind, offset
        case _:
            tensors[place] = name, sizes, kind, dice.choice((0, 1, 32, 2**40, 2**63, offset + 32))
    return replace(header, tensors=tuple(tensors))


def _fill_vector(header: GgufHeader, dice: random.Random) -> GgufHeader:
    """Overwrite a vector of float32, such as the factors of positions."""
    vectors = [one for one in header.tensors if len(one[1]) == 1 and one[2] == 0]
    factors = [one for one in vectors if one[0].startswith("rope")]
    _, sizes, _, offset = dice.choice(factors or vectors)
    content = struct.pack("<f", dice.choice(_FLOATS)) * min(sizes[0], 4096)  # another change may have enlarged it
    return replace(header, data=header.data[:offset] + content + header.data[offset + len(content) :])


_CHANGES = (
    _set_value, _set_same_type, _set_same_type, _set_same_type, _change_array, _change_array, _remove_key, _add_key,
    _add_key, _change_tensor, _change_tensor, _fill_vector,
)  # fmt: skip


def split_parts(header: GgufHeader, count: int = 3) -> list[GgufHeader]:
    """Return the file in several parts."""
    made = []
    for number in range(count):
        own = header.tensors[number::count]
        more = {"split.no": number, "split.count": count, "split.tensors.count": len(header.tensors)}
        extra = tuple((key, struct.pack("<II", 4, value)) for key, value in more.items())
        made.append(GgufHeader((*header.metadata, *extra) if number == 0 else extra, own, header.data))
    return made


def write_case(
    number: int, folder: Path, large: bytes | None = None, architectures: tuple[str, ...] = ARCHITECTURES
) -> Path:
    """Write the file, or the parts, of the case with this number into an empty folder; return the path to open.

    `large`: a large file's beginning, its header; the weights are then zeros.
    """
    dice = random.Random(number)
    if large is not None:
        header = parse(large)
        path = folder / "large.gguf"
        path.write_bytes(change(header, dice))
        return path
    known = corpus(architectures)
    header = dice.choice(list(known.values()))
    if dice.random() < 0.85:
        path = folder / "case.gguf"
        path.write_bytes(change(header, dice))
        return path
    parts = [part.to_bytes() for part in split_parts(header)]
    other = [part.to_bytes() for part in split_parts(dice.choice(list(known.values())))]
    place = dice.randrange(3)
    match dice.randrange(5):
        case 0:
            parts[place] = b""
        case 1:
            parts[place] = other[place]
        case 2:
            parts[place], parts[0] = parts[0], parts[place]
        case 3:
            parts[place] = change(split_parts(header)[place], dice)
        case _:
            parts[place] = parts[place][: dice.randrange(len(parts[place]))]
    for index, content in enumerate(parts):
        if content:
            (folder / f"case-{index + 1:05}-of-00003.gguf").write_bytes(content)
    return folder / f"case-{dice.randrange(3) + 1:05}-of-00003.gguf"
