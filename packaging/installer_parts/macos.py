"""Make the disk image for macOS, signed and notarised if the variables for that are set.

`DECODESCOPE_CODESIGN_IDENTITY` names a certificate of the keychain ("Developer ID Application: …"), and
`DECODESCOPE_NOTARY_PROFILE` the credentials that `xcrun notarytool store-credentials` has stored. Without the first the
program has only the linker's own signature, and macOS opens it from the context menu alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from installer_parts.tools import Build, InstallerError, require, run

IDENTITY = "DECODESCOPE_CODESIGN_IDENTITY"
PROFILE = "DECODESCOPE_NOTARY_PROFILE"
ENTITLEMENTS = Path(__file__).with_name("entitlements.plist")


def check_machine(_machine: str) -> None:
    """Raise InstallerError if a tool is missing, or notarising is requested without signing."""
    identity, profile = os.environ.get(IDENTITY), os.environ.get(PROFILE)
    if profile and not identity:
        raise InstallerError(f"{PROFILE} is set, but Apple notarises only what is signed. Set {IDENTITY} too.")
    require("hdiutil", "macOS")
    for tool in ["codesign"] * bool(identity) + ["xcrun"] * bool(profile):
        require(tool, "Xcode's command-line tools")


def make_packages(build: Build) -> list[Path]:
    """Write the disk image of Decodescope.app and return its path. Raises InstallerError."""
    bundle, identity, profile = build.folder, os.environ.get(IDENTITY), os.environ.get(PROFILE)
    target = build.output / f"decodescope-{build.version}-macos-{build.machine}.dmg"
    for command in commands(bundle, target, identity, profile):
        if command[0] == "hdiutil":
            make_image(bundle, target, command)
        else:
            run([require(command[0], "Xcode's command-line tools"), *command[1:]])
    return [target]


def commands(bundle: Path, target: Path, identity: str | None, profile: str | None) -> list[list[str]]:
    """Return the commands that sign the program, make and sign the image, have it notarised, and attach the ticket."""
    signing = ["codesign", "--force", "--timestamp", "--options", "runtime", "--sign", identity or ""]
    app = [[*signing, "--deep", "--entitlements", str(ENTITLEMENTS), str(bundle)],
           ["codesign", "--verify", "--deep", "--strict", str(bundle)]]  # fmt: skip
    image = ["hdiutil", "create", "-volname", "Decodescope", "-format", "ULMO", "-ov", str(target)]
    notarise = [
        ["xcrun", "notarytool", "submit", str(target), "--keychain-profile", profile or "", "--wait"],
        ["xcrun", "stapler", "staple", str(target)],
    ]
    return [
        *(app if identity else []),
        image,
        *([[*signing, str(target)]] if identity else []),
        *(notarise if profile else []),
    ]


def make_image(bundle: Path, target: Path, command: list[str]) -> None:
    """Make the image of a folder with the program and a link to the folder of applications, to drag it there."""
    with tempfile.TemporaryDirectory(dir=bundle.parent) as folder:
        shutil.move(bundle, Path(folder, bundle.name))
        try:
            Path(folder, "Applications").symlink_to("/Applications")
            run([require("hdiutil", "macOS"), *command[1:-1], "-srcfolder", folder, str(target)])
        finally:
            shutil.move(Path(folder, bundle.name), bundle)
