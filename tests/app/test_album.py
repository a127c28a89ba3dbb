"""Picture scripts: what is accepted, and errors that name the table, the key and the remedy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from decodescope.app.album.picture import AlbumError, Picture
from decodescope.app.album.picture_script import read_script
from decodescope.app.start.cli.parser import SCRIPT_EXAMPLE


def read(folder: Path, text: str, scale: float = 1.0, still: bool = False) -> tuple[Picture, ...]:
    path = folder / "script.toml"
    path.write_text(text, encoding="utf-8")
    return read_script(path, scale, still)


def test_picture_table_overrides_script_defaults(tmp_path: Path) -> None:
    one, other = read(
        tmp_path,
        """
        theme = "dark"
        size = "1000x700"
        parameters = { max_new_tokens = 8, top_p = 0.5 }
        view = "tree"
        [[picture]]
        out = "a.png"
        [[picture]]
        out = "deep/b.svg"
        theme = "light"
        parameters = { top_p = 0.9 }
        split = ["tokens", "memory"]
        node = "fox"
        """.replace("node", "# node"),
    )
    assert (one.theme, one.size, one.views) == ("dark", (1000, 700), ("tree",))
    assert (other.theme, other.size, other.views) == ("light", (1000, 700), ("tokens", "memory"))
    assert other.parameters == {"max_new_tokens": 8, "top_p": 0.9}
    assert other.out == tmp_path / "deep" / "b.svg", "paths begin where the script lies"
    assert (one.number, other.number) == (1, 2)


def test_command_line_values_apply_where_script_sets_none(tmp_path: Path) -> None:
    one, other = read(
        tmp_path, '[[picture]]\nout = "a.png"\n[[picture]]\nout = "b.png"\nscale = 1.5\nstill = false', 2.0, still=True
    )
    assert (one.scale, one.still) == (2.0, True)
    assert (other.scale, other.still) == (1.5, False)


def test_script_example_in_help_is_valid(tmp_path: Path) -> None:
    (picture,) = read(tmp_path, SCRIPT_EXAMPLE.split("\n", 1)[1])
    assert (picture.strategy, picture.view, picture.still) == ("beam_search", "tree", True)


FIRST = '[[picture]]\nout = "a.png"\n[[picture]]\nout = "b.png"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ["contains no picture", "[[picture]]"]),
        ("picture = 3", ["contains no picture"]),
        ("[[picture]\n", ["is not valid TOML", "line 1"]),
        ('[[picture]]\nview = "tree"', ["picture 1", "“out” is missing"]),
        (FIRST + 'veiw = "tree"', ["picture 2 (b.png)", "unknown key “veiw”", "Did you mean “view”?"]),
        ('thme = "dark"\n' + FIRST, ["before the first", "Did you mean “theme”?"]),
        (FIRST + 'view = "tre"', ["picture 2", "key “view”", "Did you mean “tree”?"]),
        (FIRST + 'strategy = "greddy"', ["key “strategy”", "Did you mean “greedy”?"]),
        (FIRST + 'cache = "statik"', ["key “cache”", "Did you mean “static”?"]),
        (FIRST + 'example = "greedy"', ["key “example”", "Did you mean “greedy-"]),
        (FIRST + 'split = ["tokens"]', ["key “split”", "two views, not 1"]),
        (FIRST + 'split = "tokens"', ["key “split”", "Put it in brackets"]),
        (FIRST + 'view = "tree"\nsplit = ["tokens", "tree"]', ["key “split”", "one of the two"]),
        (FIRST + 'size = "100"', ["key “size”", 'Example: "1100x700"']),
        (FIRST + 'size = "200x200"', ["key “size”", "at least 900x600"]),
        (FIRST + 'size = "9000x9000"', ["key “size”", "the maximum is 64,000,000"]),
        (FIRST + 'size = "3000x3000"\nscale = 4', ["key “size”", "Reduce size or scale"]),
        (FIRST + "scale = 9", ["key “scale”", "from 0.5 to 4.0"]),
        (FIRST + 'seed = "3"', ["key “seed”", "a whole number"]),
        (FIRST + "seed = true", ["key “seed”", "a whole number"]),
        (FIRST + 'still = "yes"', ["key “still”", "true or false"]),
        (FIRST + 'prompt = ["a"]', ["key “prompt”", "in quotes"]),
        (FIRST + "parameters = 3", ["key “parameters”", "settings by name"]),
        (FIRST + 'language = "de"', ["key “language”", "Available: en, zh_CN"]),
        (FIRST + "token = 0", ["key “token”", "from 1"]),
        (FIRST + 'node = "fox"', ["key “node”", 'view = "tree"']),
        (FIRST + "round = 2", ["key “round”", 'view = "speculation"']),
        (FIRST + 'comparison = "caches"', ["key “comparison”", 'view = "compare"']),
        (FIRST + 'hide = ["toolbar"]', ["key “hide”", "Unknown panel"]),
        (FIRST + 'trace = "a.decodescope"\nprompt = "Once"', ["key “trace”", "defines “prompt” itself"]),
        (FIRST + 'view = "branches"', ["key “view”", "needs a branch"]),
        (FIRST + 'instead = [{ token = 4 }]', ["key “instead”", "a token and words"]),
        (FIRST + 'instead = [{ token = 0, words = "a" }]', ["key “instead”", "from 1"]),
        ('[[picture]]\nout = "a\\u0000.png"', ["picture 1", "key “out”", "Expected a file name"]),
        ('[[picture]]\nout = "a.png"\ntrace = "\\u0000"', ["key “trace”", "Expected a file name"]),
        ('[[picture]]\nout = "a.gif"', ["picture 1 (a.gif)", "key “out”", ".png or .svg"]),
        ('[[picture]]\nout = "a.png"\n[[picture]]\nout = "a.png"', ["picture 2", "picture 1 also writes a.png"]),
    ],
)  # fmt: skip
def test_invalid_script_error_names_cause_and_place(tmp_path: Path, text: str, told: list[str]) -> None:
    with pytest.raises(AlbumError) as caught:
        read(tmp_path, text)
    for words in told:
        assert words in str(caught.value)


def test_missing_or_binary_script_raises_album_error(tmp_path: Path) -> None:
    with pytest.raises(AlbumError, match="cannot be read"):
        read_script(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AlbumError, match="UTF-8 text"):
        read_script(tmp_path / "bytes.toml")


def test_pipe_device_or_folder_as_script_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", Path("/dev/zero"), tmp_path):
        with pytest.raises(AlbumError, match="a folder, a pipe or a device"):
            read_script(path)


def test_every_key_of_a_picture_is_documented() -> None:
    from decodescope.app.album.picture import value_readers

    page = (Path(__file__).parents[2] / "docs" / "pictures.md").read_text(encoding="utf-8")
    assert [key for key in value_readers(Path()) if f"| `{key}` |" not in page] == []


@pytest.mark.parametrize("out", ["../x.png", "a/../../x.svg", "/tmp/x.png"])
def test_output_outside_script_folder_requires_allow_outside(out: str, tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    script = folder / "script.toml"
    script.write_text(f'[[picture]]\nout = "{out}"\n')
    with pytest.raises(AlbumError, match="--allow-outside"):
        read_script(script)
    assert read_script(script, allow_outside=True)[0].out == folder / out


def test_symlink_out_of_script_folder_requires_allow_outside(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "scripts"
    outside.mkdir()
    folder.mkdir()
    (folder / "away").symlink_to(outside)
    (folder / "x.png").symlink_to(outside / "x.png")
    for name in ("away/y.png", "x.png"):
        (folder / "script.toml").write_text(f'[[picture]]\nout = "{name}"\n')
        with pytest.raises(AlbumError, match="--allow-outside"):
            read_script(folder / "script.toml")


@pytest.mark.parametrize("allow_outside", [False, True])
def test_output_overwrites_only_picture_files(allow_outside: bool, tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text('[[picture]]\nout = "x.png"\n')
    target = tmp_path / "x.png"
    target.write_text("My notes.")
    with pytest.raises(AlbumError, match="not a picture"):
        read_script(script, allow_outside=allow_outside)
    for content in (b"", b"\x89PNG\r\n\x1a\n...", b"<?xml version='1.0'?>\n<svg>"):
        target.write_bytes(content)
        assert read_script(script, allow_outside=allow_outside)
    target.unlink()
    target.mkdir()
    with pytest.raises(AlbumError, match="folder"):
        read_script(script, allow_outside=allow_outside)
