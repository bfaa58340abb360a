#!/usr/bin/env python3
"""Writes text stubs (.tbd) of the frameworks of macOS that cliq links with: the linker needs their names only.

    scripts/macos_frameworks.py DIRECTORY

The names are those that the crates with the declarations have (`core-foundation-sys`, `security-framework-sys`). A framework that some other
crate asks for has no stub, so that the linker refuses it by name.
"""
import json
import pathlib
import re
import subprocess
import sys

CRATES = {"core-foundation-sys": "CoreFoundation", "security-framework-sys": "Security"}


def main(directory):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "aarch64-apple-darwin"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    for crate, framework in CRATES.items():
        found = [package for package in packages if package["name"] == crate]
        if not found:
            sys.exit(f"macos_frameworks.py: no package depends on {crate} any more: take it out of CRATES")
        names = set()
        for package in found:
            for file in pathlib.Path(package["manifest_path"]).parent.glob("src/**/*.rs"):
                names |= set(re.findall(r"pub (?:fn|static) (\w+)", file.read_text()))
        path = f"/System/Library/Frameworks/{framework}.framework/Versions/A/{framework}"
        symbols = ", ".join(f"_{name}" for name in sorted(names))
        text = (
            "--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\n"
            f"install-name: '{path}'\nexports:\n  - targets: [ x86_64-macos, arm64-macos ]\n    symbols: [ {symbols} ]\n...\n"
        )
        stub = pathlib.Path(directory) / f"{framework}.framework" / f"{framework}.tbd"
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(text)


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
