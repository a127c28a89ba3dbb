"""Write software bills of materials in CycloneDX 1.6 JSON (https://cyclonedx.org/docs/1.6/json/).

The bill in the wheel (PEP 770) is made from the checkout alone, so that it is the same wherever the wheel is built. It
lists the native libraries, the bundled models, the fonts and the declared dependencies; these have version ranges, not
versions. The bill beside an installer or environment lists the exact versions that are installed there.
"""

from __future__ import annotations

import json
import re
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from decodescope.app.state.licences import DEVELOPER_EXTRAS

SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
PREFIX = "decodescope"
NATIVE_FOLDER = "decodescope/core/native/libraries"
"""Folder of the native libraries in a wheel."""
MANIFEST_NAME = f"{NATIVE_FOLDER}/manifest.json"
"""Name of the list of the native libraries in a wheel."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w,-]*\])?\s*([^;]*)")


LLVM_LIBRARIES = "libc++, libc++abi, libunwind, compiler-rt"
"""Libraries of the LLVM project that the compiler links into each native library."""


class NativeFile(NamedTuple):
    """A native library: its name in the wheel, with the platform if several wheels are meant, and its SHA-256."""

    name: str
    sha256: str


def wheel_bill(root: Path, epoch: int, files: Sequence[NativeFile] = (), compiler: str = "") -> str:
    """Return the bill of the wheel built from `root`, dated `epoch` (seconds since 1970). `files`: the native libraries
    in it; `compiler`: what made them.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [_declared(line, "required") for line in project["dependencies"]]
    extras = project["optional-dependencies"]
    chosen = sorted(extras.keys() - DEVELOPER_EXTRAS)
    optional = [_declared(line, "optional") for extra in chosen for line in extras[extra]]
    models = [_model(folder, project["license"]) for folder in sorted((root / "resources" / "models").iterdir())]
    own = [*_native(files, compiler), *models, *_fonts(root)]
    return bill_text(project, [*own, *_unique([*required, *optional])], epoch)


def environment_bill(
    project: Mapping[str, Any],
    parts: Iterable[tuple[str, str, str]],
    epoch: int,
    files: Sequence[NativeFile] = (),
    compiler: str = "",
) -> str:
    """Return the bill of an environment; `parts` are (name, version, licence) of its distributions, the others as in
    `wheel_bill`.
    """
    return bill_text(project, [*_native(files, compiler), *(_installed(*part) for part in parts)], epoch)


def installed_native_files() -> tuple[list[NativeFile], str]:
    """Return the native libraries of the installed program, and what compiled them; nothing if it has none."""
    from decodescope.core.native.library_choice import MANIFEST, SHIPPED

    if not (SHIPPED / MANIFEST).is_file():
        return [], ""
    return native_files(json.loads((SHIPPED / MANIFEST).read_text(encoding="utf-8")))


def native_files(manifest: Mapping[str, Any], platform: str = "") -> tuple[list[NativeFile], str]:
    """Return the native libraries that a manifest lists, and what compiled them. `platform`: a folder for the names."""
    listed = [manifest["features"], *manifest["libraries"].values()]
    folder = "/".join(filter(None, (platform, NATIVE_FOLDER)))
    return [NativeFile(f"{folder}/{file['file']}", file["sha256"]) for file in listed], manifest["compiler"]


def bill_text(project: Mapping[str, Any], components: Sequence[Mapping[str, Any]], epoch: int) -> str:
    """Return a bill as JSON text: the program, and what it consists of and depends on."""
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    content: dict[str, Any] = {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            },
        },
        "components": list(components),
        "dependencies": [
            {"ref": own, "dependsOn": sorted(part["bom-ref"] for part in components)},
        ],
    }
    digest = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    content["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}"  # same content, same number
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _declared(line: str, scope: str) -> dict[str, Any]:
    """Return the component of a requirement line such as `torch>=2.6,<2.14`."""
    match = _REQUIREMENT.match(line)
    if match is None:
        raise ValueError(f"The requirement {line!r} has no name. Correct it in pyproject.toml.")
    name, versions = match.group(1), match.group(2).strip()
    purl = f"pkg:pypi/{_normalised(name)}"
    properties = [{"name": f"{PREFIX}:versions", "value": versions}] if versions else []
    return {
        "type": "library", "bom-ref": purl, "name": name, "scope": scope, "purl": purl,
        **({"properties": properties} if properties else {}),
    }  # fmt: skip


def _installed(name: str, version: str, licence: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{_normalised(name)}@{version}"
    licences = [{"license": {"name": licence}}] if licence else []
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        **({"licenses": licences} if licences else {}),
    }  # fmt: skip


def _native(files: Sequence[NativeFile], compiler: str) -> list[dict[str, Any]]:
    """Return the components of native libraries, and of the compiler's own libraries inside them."""
    if not files:
        return []
    name, version = compiler.split()
    own = [
        {
            "type": "file", "bom-ref": f"file:{file.name}", "name": file.name,
            "hashes": [{"alg": "SHA-256", "content": file.sha256}],
        }
        for file in files
    ]  # fmt: skip
    runtimes = [(LLVM_LIBRARIES, "Apache-2.0 WITH LLVM-exception")]
    if any(file.name.endswith(".dll") for file in files):
        runtimes.append(("MinGW-w64 runtime", "ZPL-2.1"))
    return own + [
        {
            "type": "library", "bom-ref": f"pkg:pypi/{name}@{version}#{library}".replace(" ", ""), "name": library,
            "description": f"linked into the native libraries by {compiler}", "licenses": [{"expression": licence}],
        }
        for library, licence in runtimes
    ]  # fmt: skip


def _model(folder: Path, licence: str) -> dict[str, Any]:
    """Return the component of a bundled model with the hash of its weights."""
    weights = (folder / "model.safetensors").read_bytes()
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{folder.name}",
        "name": folder.name,
        "hashes": [{"alg": "SHA-256", "content": sha256(weights).hexdigest()}],
        "licenses": [{"license": {"id": licence}}],
    }


def _fonts(root: Path) -> list[dict[str, Any]]:
    """Return the components of the font files, with what they are cut from."""
    rows = tomllib.loads((root / "resources" / "licences" / "libraries.toml").read_text(encoding="utf-8"))["font"]
    return [
        {
            "type": "file",
            "bom-ref": f"file:decodescope/resources/fonts/{path.name}",
            "name": f"decodescope/resources/fonts/{path.name}",
            "description": "cut from " + ", ".join(f"{row['name']} {row['version']}" for row in sources),
            "hashes": [{"alg": "SHA-256", "content": sha256(path.read_bytes()).hexdigest()}],
            "licenses": [{"expression": " AND ".join(sorted({row["licence"] for row in sources}))}],
        }
        for path in sorted((root / "resources" / "fonts").glob("*.ttf"))
        if (sources := [row for row in rows if any(path.match(pattern) for pattern in row["files"])])
    ]


def _unique(components: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return components without repeated names; the first is kept."""
    found: dict[str, dict[str, Any]] = {}
    for component in components:
        found.setdefault(component["bom-ref"], component)
    return list(found.values())


def _normalised(name: str) -> str:
    """Return a distribution's name as the package index spells it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
