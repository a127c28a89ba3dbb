"""Releases: archives with fixed bytes, the bill of materials, licences, and the parts of `packaging/release.py`."""

import hashlib
import json
import os
import tarfile
import time
import zipfile
from base64 import urlsafe_b64encode

import bill_of_materials
import distribution_files
import pytest
import release
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from decodescope.app.state import licences

EPOCH = 1_700_000_000


def make_wheel(path, order) -> None:
    """Write a small wheel as other tools do: any order, the current time, any permissions."""
    contents = {"core/__init__.py": "x = 1\n", "core/a.txt": "a", "d-1.dist-info/METADATA": "Name: d\n"}
    with zipfile.ZipFile(path, "w") as wheel:
        for name in order(contents):
            member = zipfile.ZipInfo(name, time.localtime()[:6])
            member.external_attr = (0o600 if order is sorted else 0o664) << 16
            wheel.writestr(member, contents[name])
        wheel.writestr("d-1.dist-info/RECORD", "old")


def test_rewritten_wheel_is_reproducible(tmp_path):
    one, other = tmp_path / "one.whl", tmp_path / "other.whl"
    make_wheel(one, sorted)
    make_wheel(other, lambda contents: list(reversed(contents)))
    assert one.read_bytes() != other.read_bytes()
    for path in (one, other):
        distribution_files.rewrite_wheel(path, {"sboms/d.cdx.json": "{}"}, EPOCH, {"core/b.md": b"# B"})
    assert one.read_bytes() == other.read_bytes()
    assert [path.name for path in tmp_path.iterdir()].count("one.whl") == 1
    with zipfile.ZipFile(one) as wheel:
        names = wheel.namelist()
        assert names[-1] == "d-1.dist-info/RECORD"
        assert names[:3] == ["core/__init__.py", "core/a.txt", "core/b.md"]
        assert {member.date_time for member in wheel.infolist()} == {(*time.gmtime(EPOCH)[:5], 20)}
        record = dict(line.split(",", 1) for line in wheel.read(names[-1]).decode().splitlines())
        assert set(record) == set(names)
        digest = urlsafe_b64encode(hashlib.sha256(b"{}").digest()).decode().rstrip("=")
        assert record["d-1.dist-info/sboms/d.cdx.json"] == f"sha256={digest},2"


def test_a_wheel_contains_the_documentation(root, tmp_path):
    """The window finds it in an installed program as in a checkout."""
    from decodescope.app.control.dialogs import documentation_folder
    from decodescope.app.panels.documentation import documentation_pages

    files = distribution_files.documentation_files(root)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    folder = documentation_folder(tmp_path / "decodescope")
    assert folder is not None
    for language in ("en", "zh_CN"):
        installed = [page.relative_to(folder) for page in documentation_pages(folder, language)]
        assert installed == [page.relative_to(root / "docs") for page in documentation_pages(root / "docs", language)]
    assert (folder / "guide" / "pictures" / "window.png").is_file()


def test_sdist_is_reproducible(tmp_path):
    archives = []
    for number, mode in enumerate((0o600, 0o664)):
        source = tmp_path / f"source{number}"
        (source / "core" / "__pycache__").mkdir(parents=True)
        for name in ("b.py", "a.py", "run", "core/x.mo", "core/__pycache__/a.pyc", "core/z.py")[:: 1 - 2 * number]:
            (source / name).write_text(name)
            (source / name).chmod(mode | (0o100 if name == "run" else 0))
            os.utime(source / name, (number, number))
        archives.append(tmp_path / f"{number}.tar.gz")
        distribution_files.write_sdist(archives[-1], source, "d-1", "Name: d\n", EPOCH)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    assert int.from_bytes(archives[0].read_bytes()[4:8], "little") == EPOCH, "the date in the header of gzip"
    with tarfile.open(archives[0]) as archive:
        members = {member.name: member for member in archive}
    assert list(members) == ["d-1/PKG-INFO", "d-1/a.py", "d-1/b.py", "d-1/core/z.py", "d-1/run"]
    assert members["d-1/run"].mode == 0o755
    assert {(member.mtime, member.uid, member.uname) for member in members.values()} == {(EPOCH, 0, "")}


def test_date_comes_from_the_environment_commit_or_minimum(root, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    assert distribution_files.source_date(tmp_path) == EPOCH
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "5")
    assert distribution_files.source_date(tmp_path) == distribution_files.OLDEST, "ZIP has no earlier date"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert distribution_files.source_date(tmp_path) == distribution_files.OLDEST
    if (root / ".git").exists():
        assert distribution_files.source_date(root) in (release.commit_date("HEAD"), distribution_files.OLDEST)


def test_checksums_are_those_of_sha256sum(tmp_path):
    (tmp_path / "b").write_bytes(b"abc")
    (tmp_path / "a").write_bytes(b"")
    one, other = distribution_files.checksums([tmp_path / "b", tmp_path / "a"]).splitlines()
    assert one == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a"
    assert other == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b"


def test_the_bill_of_the_wheel_lists_models_and_dependencies(root):
    text = bill_of_materials.wheel_bill(root, EPOCH)
    assert text == bill_of_materials.wheel_bill(root, EPOCH)
    assert bill_of_materials.wheel_bill(root, EPOCH + 1) != text
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    parts = {part["bom-ref"]: part for part in bill["components"]}
    assert parts["pkg:pypi/pyside6-essentials"]["scope"] == "required"
    assert parts["pkg:pypi/llguidance"]["scope"] == "optional"
    assert "pkg:pypi/pytest" not in parts, "a tool of contributors"
    weights = (root / "resources" / "models" / "storyteller" / "model.safetensors").read_bytes()
    assert parts["model:storyteller"]["hashes"][0]["content"] == hashlib.sha256(weights).hexdigest()
    assert set(bill["dependencies"][0]["dependsOn"]) == set(parts)
    assert len(parts) == len(bill["components"])


def test_both_bills_are_valid_cyclonedx(root):
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    project = {"name": "d", "version": "1", "description": "", "license": "MIT"}
    for text in (
        bill_of_materials.wheel_bill(root, EPOCH),
        bill_of_materials.environment_bill(project, licences.third_party_parts(), EPOCH),
    ):
        assert validator.validate_str(text) is None


def test_licences_of_all_required_libraries_are_known():
    parts = {part.name.lower().replace("_", "-"): part for part in licences.third_party_parts()}
    assert {"python", "pyside6-essentials", "torch", "transformers", "numpy", "msgspec"} <= set(parts)
    assert "markupsafe" in parts, "what a required library requires"
    assert "pytest" not in parts
    assert "LGPL" in parts["pyside6-essentials"].licence
    assert parts["msgspec"].licence.startswith("BSD")
    assert [name for name, part in parts.items() if part.licence == "unknown"] == []
    text = licences.third_party_text()
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text or "Apache License" in text
    assert all(f"{part.name} {part.version}: {part.licence}\n" in text for part in parts.values())


class Fields(dict):
    """Metadata of a distribution."""

    def get_all(self, name):
        value = self.get(name)
        return [value] if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"License-Expression": "MIT", "License": "x"}, "MIT"),
        ({"Classifier": ["Topic :: X", "License :: OSI Approved :: BSD License"]}, "BSD License"),
        ({"Classifier": ["License :: OSI Approved"], "License": "Apache 2"}, "Apache 2"),
        ({"License": "A text\nof many lines"}, "unknown"),
        ({}, "unknown"),
        ({"Name": "cuda-toolkit"}, "LicenseRef-NVIDIA-Proprietary"),
    ],
)
def test_the_licence_is_read_from_old_and_new_fields(fields, name):
    assert licences.licence_name(Fields(fields)) == name


def test_differing_builds_and_a_missing_heading_are_errors(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.0]\n")
    release.require_changelog(tmp_path, "1.0")
    with pytest.raises(release.ReleaseError, match=r"1\.1"):
        release.require_changelog(tmp_path, "1.1")
    one, other = tmp_path / "1" / "a.whl", tmp_path / "2" / "a.whl"
    for path, content in ((one, "x"), (other, "x")):
        path.parent.mkdir()
        path.write_text(content)
    release.require_equal([one], [other])
    other.write_text("y")
    with pytest.raises(release.ReleaseError, match=r"a\.whl"):
        release.require_equal([one], [other])
    with pytest.raises(release.ReleaseError, match="differ"):
        release.require_equal([one], [])


def test_a_release_requires_all_translations(tmp_path):
    script = tmp_path / "packaging" / "translations.py"
    script.parent.mkdir()
    script.write_text("import sys; sys.exit(sys.argv[1:] != ['check', '--complete'])")
    release.require_translations(tmp_path)
    script.write_text("print('not translated: One more text'); raise SystemExit(1)")
    with pytest.raises(release.ReleaseError, match="not translated: One more text"):
        release.require_translations(tmp_path)


def test_the_changelog_has_a_heading_for_the_current_version(root):
    import tomllib

    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\n## [{version}]" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_hosted_workflow_builds_and_attests(root):
    workflow = (root / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "packaging/release.py --check" in workflow
    assert "actions/attest" in workflow
    assert "id-token: write" in workflow
    assert "SHA256SUMS" in workflow


@pytest.mark.slow
def test_two_builds_of_one_commit_are_equal(root, tmp_path, monkeypatch):
    """Without native libraries: test_native_libraries.py compares these."""
    monkeypatch.setenv("DECODESCOPE_NATIVE_LIBRARIES", "0")
    if not (root / ".git").exists():
        pytest.skip("not a Git checkout")
    files = release.make_release("HEAD", tmp_path, check=True)
    names = {path.name for path in files}
    assert {path.suffix for path in files} >= {".whl", ".gz", ".json", ".txt"}
    assert "SHA256SUMS" in names
    wheel = next(path for path in files if path.suffix == ".whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        bill = next(name for name in archive.namelist() if name.endswith(".dist-info/sboms/decodescope.cdx.json"))
        assert archive.read(bill) == min(tmp_path.glob("*.cdx.json"), key=lambda path: len(path.name)).read_bytes()
