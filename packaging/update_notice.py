"""Make the key and the signed notices by which installed programs learn of a new version.

    python packaging/update_notice.py key private.pem
    python packaging/update_notice.py sign private.pem --version 1.0.1 --page https://… > notice.json

The first prints the public key for resources/updates.toml. The second prints the document to publish at the address in
that file. Keep the private key outside the repository. Needs the package cryptography.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)


def main(arguments: list[str]) -> int:
    """Run a command and return the exit code."""
    parser = argparse.ArgumentParser(description="Make the key and the signed notices of new versions.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("key", help="write a new private key and print its public key").add_argument("file", type=Path)
    sign = commands.add_parser("sign", help="print a signed notice")
    sign.add_argument("file", type=Path)
    sign.add_argument("--version", required=True)
    sign.add_argument("--page", required=True, help="where the version can be downloaded")
    options = parser.parse_args(arguments)
    try:
        if options.command == "key":
            print(make_key(options.file))
        else:
            print(sign_notice(options.file, options.version, options.page))
    except (OSError, ValueError) as error:
        print(f"update_notice: {error}", file=sys.stderr)
        return 1
    return 0


def make_key(file: Path) -> str:
    """Write a new private key, readable by its owner alone, and return the public key in Base64. Raises OSError."""
    key = Ed25519PrivateKey.generate()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        target.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def sign_notice(file: Path, version: str, page: str) -> str:
    """Return the signed notice of a version as JSON. Raises OSError or ValueError for an unusable key."""
    key = load_pem_private_key(file.read_bytes(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{file} has no Ed25519 key. Make one with the command key.")
    content = json.dumps({"program": "decodescope", "version": version, "page": page}, sort_keys=True).encode()
    parts = {"notice": content, "signature": key.sign(content)}
    return json.dumps({name: base64.b64encode(value).decode() for name, value in parts.items()})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
