"""Makes the fonts in `resources/fonts/` from fonts of Debian, so that texts have the same width on every machine.

python packaging/fonts.py            downloads the fonts with apt-get and writes the files
python packaging/fonts.py --check    compares the files with what would be written

It needs fonttools (`pip install fonttools`) and the commands apt-get and dpkg-deb. `--packages FOLDER` takes the
packages from a folder instead. The bytes depend only on the packages and on the characters that the program uses.

The three families have names of their own, so that an installed Inter of another version is never used instead, and
the vertical metrics of the first, so that a line has the same height in every script.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "resources" / "fonts"
FAMILY, CHINESE, MONOSPACED = "Decodescope Sans", "Decodescope Sans SC", "Decodescope Mono"
MORE_CHINESE = "Decodescope Sans SC More"
"""Family of common characters that the program's own texts do not use; they come in one weight."""
MAX_BYTES = 2_500_000
"""Limit of the size of all files together."""


class Source(NamedTuple):
    """A font file inside a Debian package."""

    package: str
    path: str
    sha256: str
    number: int = -1
    """Number of the font in a collection."""


_DEBIAN = "usr/share/fonts"
_NOTO = f"{_DEBIAN}/truetype/noto/NotoSans"
INTER = Source(
    "fonts-inter-variable", f"{_DEBIAN}/truetype/inter-vf/Inter-roman.var.ttf",
    "459fb40d1d555bc6cbc944de94a8c400fdb5126fc325753dfa027d5555583bbd",
)  # fmt: skip
NOTO_REGULAR = Source(
    "fonts-noto-cjk", f"{_DEBIAN}/opentype/noto/NotoSansCJK-Regular.ttc",
    "b76b0433203017ca80401b2ee0dd69350349871c4b19d504c34dbdd80541690a", 2,
)  # fmt: skip
NOTO_BOLD = Source(
    "fonts-noto-cjk", f"{_DEBIAN}/opentype/noto/NotoSansCJK-Bold.ttc",
    "faa5f3656a78b2e2d450d27fe8382c778bc2b6bb5ea29c986664a6a435056ceb", 2,
)  # fmt: skip
JETBRAINS = Source(
    "fonts-jetbrains-mono", f"{_DEBIAN}/truetype/jetbrains-mono/JetBrainsMono-Regular.ttf",
    "a3014fb90ae8ddfbdfc778de75f95b49a857947fde5335ab3f50b6d56eb517be",
)  # fmt: skip
NOTO_SIGNS = tuple(
    Source("fonts-noto-core", f"{_NOTO}{name}-Regular.ttf", digest)
    for name, digest in (
        ("Math", "8242bd1e55368b27e32455260754cf9aa58f3ad7ea80664b66c21f1b09910d6c"),
        ("Symbols2", "876598db5f1e3bef2bc77c4d94c5b0d5d2c1620be4878a06f18fb5434e331688"),
        ("Symbols", "24b615ceb7d50a2c09060664ca9e24a160c9beb6bfca0563e8359369a4bc0993"),
        ("", "89c3c497f618fdaa0b2d1e98fef93582f28c71debd2c4a8cdf41f190ced2909d"),
    )
)
POINTERS = "⌄▸▾◂▴"
"""Signs that are enlarged and centred on the height of an x."""
SIGNS = "ᵀᵢⱼℝ≻⌄▸▾◂▴✕❙⟨⟩∇∈∓⋯◐"
"""Signs that texts of the program use and Inter lacks. They are copied from the first font that has them."""


class Cut(NamedTuple):
    """A file to write: the characters of a source that it keeps, in one weight. The boldest is named Bold, so that Qt
    never thickens it for a weight of 700.
    """

    file: str
    source: Source
    family: str
    style: str
    weight: int
    characters: frozenset[int]


def _range(*pairs: tuple[int, int]) -> frozenset[int]:
    return frozenset(code for first, last in pairs for code in range(first, last + 1))


LATIN_GREEK_CYRILLIC = _range(
    (0x20, 0x7E), (0xA0, 0x24F), (0x2B0, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x1E00, 0x1EFF)
)
SYMBOLS = _range((0x2000, 0x2BFF), (0xFB00, 0xFB06), (0xFFFD, 0xFFFD))
CHINESE_SIGNS = _range((0x3000, 0x30FF), (0xFF01, 0xFF5E), (0xFFE0, 0xFFE6), (0x2460, 0x2473))
"""Punctuation, full-width forms and circled numbers, and the Japanese kana, which stand beside the same characters."""
HAN = _range((0x3400, 0x9FFF))


def common_characters() -> frozenset[int]:
    """Return the 3,755 most common Chinese characters: level 1 of GB 2312, rows 16 to 55 of its table."""
    codes = (bytes((0xA0 + row, 0xA0 + cell)) for row in range(16, 56) for cell in range(1, 95))
    return frozenset(ord(code.decode("gb2312")) for code in codes if _is_assigned(code))


def _is_assigned(code: bytes) -> bool:
    try:
        return bool(code.decode("gb2312"))
    except UnicodeDecodeError:
        return False


def text_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield the files with texts that the window shows: catalogues, glossary, tours, examples, and the guide."""
    resources = root / "resources"
    for pattern in (
        "translations/**/*.po",
        "glossary/*.toml",
        "tours/*",
        "lessons/*",
        "presets/*",
        "*.json",
        "palette/*",
    ):
        yield from sorted(path for path in resources.glob(pattern) if path.is_file())
    yield from sorted((root / "docs").rglob("*.md"))


def used_characters(root: Path = ROOT) -> frozenset[int]:
    """Return the code points of the Chinese characters and signs in `text_files`."""
    text = "".join(path.read_text(encoding="utf-8") for path in text_files(root))
    return frozenset(map(ord, text)) & (HAN | CHINESE_SIGNS)


def cuts() -> tuple[Cut, ...]:
    """Return the files to write."""
    chinese = used_characters() | CHINESE_SIGNS
    latin = LATIN_GREEK_CYRILLIC | SYMBOLS
    weights = (("Regular", 400), ("Medium", 500), ("Bold", 600))
    return (
        *(Cut(f"DecodescopeSans-{style}.ttf", INTER, FAMILY, style, weight, latin) for style, weight in weights),
        Cut("DecodescopeMono-Regular.ttf", JETBRAINS, MONOSPACED, "Regular", 400, latin),
        Cut("DecodescopeSansSC-Regular.ttf", NOTO_REGULAR, CHINESE, "Regular", 400, chinese),
        Cut("DecodescopeSansSC-Bold.ttf", NOTO_BOLD, CHINESE, "Bold", 700, chinese),
        Cut(
            "DecodescopeSansSCMore-Regular.ttf",
            NOTO_REGULAR,
            MORE_CHINESE,
            "Regular",
            400,
            common_characters() - chinese,
        ),
    )


FEATURES = ["ccmp", "kern", "locl", "mark", "mkmk", "tnum"]
"""Layout features that are kept. Ligatures and contextual forms are not: in the text of a model, -> is no arrow. The
Chinese font has none: its forms for Japan and Korea would be half of it.
"""


def cut_font(cut: Cut, font: TTFont, donors: Sequence[TTFont], line: tuple[float, float, float]) -> bytes:
    """Return the file of a cut. `donors`: where Inter's missing signs come from. `line`: ascent, descent (negative) and
    height of an x, in ems.
    """
    from fontTools.subset import Options, Subsetter
    from fontTools.varLib.instancer import instantiateVariableFont

    if "fvar" in font:
        axes = {axis.axisTag: axis.defaultValue for axis in font["fvar"].axes}
        font = instantiateVariableFont(font, axes | {"wght": cut.weight})
        _copy_signs(font, donors)
    options = Options(
        layout_features=[] if cut.source.number >= 0 else FEATURES, hinting=False, name_IDs=[0, 13, 14],
        notdef_outline=True,
        glyph_names=False, recalc_timestamp=False,
        drop_tables=["DSIG", "STAT", "MVAR", "meta", "BASE", "vhea", "vmtx", "VORG", "gasp"],
    )  # fmt: skip
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=cut.characters | set(map(ord, SIGNS)))
    subsetter.subset(font)
    if "CFF " in font:
        _convert_outlines(font)
    _rename(font, cut)
    _set_line(font, *line)
    out = BytesIO()
    font.save(out)
    return out.getvalue()


MAX_ERROR = 1.0
"""Largest distance of a converted outline from its original, in thousandths of an em."""


def _convert_outlines(font: TTFont) -> None:
    """Replace the outlines of a CFF font by quadratic ones: Qt thickens the stems of CFF fonts, which makes light text
    on a dark ground look bold.
    """
    from fontTools.pens.cu2quPen import Cu2QuPen
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from fontTools.ttLib import newTable

    glyph_set, order = font.getGlyphSet(), font.getGlyphOrder()
    table = font["glyf"] = newTable("glyf")
    font["loca"] = newTable("loca")
    table.glyphOrder, table.glyphs = order, {}
    for name in order:
        pen = TTGlyphPen(None)
        glyph_set[name].draw(Cu2QuPen(pen, MAX_ERROR, reverse_direction=True))
        table.glyphs[name] = glyph = pen.glyph()
        glyph.recalcBounds(table)
        font["hmtx"][name] = (font["hmtx"][name][0], getattr(glyph, "xMin", 0))
    del font["CFF "]
    profile = font["maxp"]
    profile.tableVersion = 0x00010000
    for field in ("Zones", "TwilightPoints", "Storage", "FunctionDefs", "InstructionDefs", "StackElements",
                  "SizeOfInstructions", "ComponentElements"):  # fmt: skip
        setattr(profile, f"max{field}", 1 if field == "Zones" else 0)
    font["post"].formatType = 3.0
    font.sfntVersion = "\0\1\0\0"


_POINTER_FACTOR = 1.3


def _copy_signs(font: TTFont, donors: Sequence[TTFont]) -> None:
    """Copy the outlines and widths of `SIGNS` from the donors into a font that lacks them."""
    from fontTools.pens.boundsPen import BoundsPen
    from fontTools.pens.recordingPen import DecomposingRecordingPen
    from fontTools.pens.transformPen import TransformPen
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    tables = [table for table in font["cmap"].tables if table.isUnicode()]
    order = list(font.getGlyphOrder())
    for code in map(ord, SIGNS):
        donor = next(donor for donor in donors if code in donor.getBestCmap())
        source, name = donor.getBestCmap()[code], f"sign{code:X}"
        factor = font["head"].unitsPerEm / donor["head"].unitsPerEm
        outline, pen = DecomposingRecordingPen(donor.getGlyphSet()), TTGlyphPen(None)
        donor.getGlyphSet()[source].draw(outline)
        shift = 0.0
        if chr(code) in POINTERS:
            factor *= _POINTER_FACTOR
            bounds = BoundsPen(None)
            outline.replay(bounds)
            shift = font["OS/2"].sxHeight / 2 - factor * (bounds.bounds[1] + bounds.bounds[3]) / 2
        outline.replay(TransformPen(pen, (factor, 0, 0, factor, 0, shift)))
        font["glyf"].glyphs[name] = glyph = pen.glyph()
        order.append(name)
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (round(donor["hmtx"][source][0] * factor), getattr(glyph, "xMin", 0))
        for table in tables:
            table.cmap[code] = name
    font.setGlyphOrder(order)
    font["glyf"].glyphOrder = order


def _rename(font: TTFont, cut: Cut) -> None:
    """Set the names of family and style, and the weight by which a style is found."""
    names, is_basic = font["name"], cut.style in ("Regular", "Bold")
    values = {
        1: cut.family if is_basic else f"{cut.family} {cut.style}",
        2: cut.style if is_basic else "Regular",
        3: f"{cut.family} {cut.style} 1.0",
        4: f"{cut.family} {cut.style}",
        5: "Version 1.0",
        6: cut.file.partition(".")[0],
        10: f"Cut from {Path(cut.source.path).name} by packaging/fonts.py of Decodescope.",
        16: cut.family,
        17: cut.style,
    }
    names.names = [record for record in names.names if record.platformID == 3 and record.langID == 0x409]
    for number, value in values.items():
        names.setName(value, number, 3, 1, 0x409)
    table: Any = font["OS/2"]
    bold = cut.style == "Bold"
    table.usWeightClass = 700 if bold else cut.weight
    table.fsSelection = table.fsSelection & ~0b1100001 | (0b100000 if bold else 0b1000000)
    font["head"].macStyle = int(bold)


def _set_line(font: TTFont, ascent: float, descent: float, x_height: float) -> None:
    """Set the heights of a line, in ems."""
    units = font["head"].unitsPerEm
    high, low = round(ascent * units), round(descent * units)
    head, table = font["hhea"], font["OS/2"]
    head.ascent, head.descent, head.lineGap = high, low, 0
    table.sTypoAscender, table.sTypoDescender, table.sTypoLineGap = high, low, 0
    table.usWinAscent, table.usWinDescent = high, -low
    table.sxHeight = round(x_height * units)


def make_fonts(packages: Path | None = None) -> dict[str, bytes]:
    """Return the contents of all files by their names. `packages`: a folder with the Debian packages."""
    from fontTools.ttLib import TTFont

    with tempfile.TemporaryDirectory(prefix="decodescope-fonts-") as folder:
        sources = (*NOTO_SIGNS, *(cut.source for cut in cuts()))
        unpacked = _unpack({source.package for source in sources}, packages, Path(folder))
        donors = [TTFont(_checked(unpacked, source)) for source in NOTO_SIGNS]
        reference = TTFont(_checked(unpacked, INTER))
        units, head = reference["head"].unitsPerEm, reference["hhea"]
        line = (head.ascent / units, head.descent / units, reference["OS/2"].sxHeight / units)
        return {
            cut.file: cut_font(
                cut,
                TTFont(_checked(unpacked, cut.source), fontNumber=cut.source.number, recalcTimestamp=False),
                donors,
                line,
            )
            for cut in cuts()
        }


def _unpack(names: set[str], packages: Path | None, folder: Path) -> Path:
    """Unpack the Debian packages, downloading those that the folder lacks; return the root of their files."""
    root = folder / "root"
    for name in sorted(names):
        found = sorted((packages or folder).glob(f"{name}_*.deb"))
        if not found:
            subprocess.run(["apt-get", "download", "-q", name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            found = sorted(folder.glob(f"{name}_*.deb"))
        subprocess.run(["dpkg-deb", "-x", str(found[-1]), str(root)], check=True)
    return root


def _checked(root: Path, source: Source) -> Path:
    """Return the path of a source. Exits if it is another version than the one that the files are made from."""
    path = root / source.path
    if sha256(path.read_bytes()).hexdigest() != source.sha256:
        sys.exit(
            f"{path.name} of the package {source.package} is another version. Take the package of Debian 12, or look at"
            " the new version and write its SHA-256 into packaging/fonts.py."
        )
    return path


def main() -> int:
    """Write or compare the files; return the exit code."""
    parser = argparse.ArgumentParser(prog="packaging/fonts.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the files with what would be written")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="folder with the Debian packages")
    options = parser.parse_args()
    made = make_fonts(options.packages)
    total = sum(map(len, made.values()))
    for name, content in made.items():
        print(f"{name}  {len(content):,} bytes")
    print(f"{total:,} bytes together")
    if total > MAX_BYTES:
        print(f"The limit is {MAX_BYTES:,}. Leave characters out in packaging/fonts.py.", file=sys.stderr)
        return 1
    if options.check:
        other = [name for name, content in made.items() if (FOLDER / name).read_bytes() != content]
        print(f"Different: {', '.join(other)}" if other else "The files are equal.")
        return 1 if other else 0
    FOLDER.mkdir(exist_ok=True)
    for name, content in made.items():
        (FOLDER / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
