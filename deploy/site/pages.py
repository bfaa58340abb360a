#!/usr/bin/env python3
"""Copies the pages of the documentation to where mdBook builds them, with links that lead somewhere in the site or to the repository.

    deploy/site/pages.py DIRECTORY RECORDING
"""
import pathlib
import re
import shutil
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
# Pages outside of docs/, with their titles.
OTHERS = {"CHANGELOG.md": "Changes", "CONTRIBUTING.md": "Contributing", "SECURITY.md": "Security"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
PLAYER = """
<link rel="stylesheet" href="assets/asciinema-player.css">
<div class="recording" id="demo"></div>
<script src="assets/asciinema-player.min.js"></script>
<script>
AsciinemaPlayer.create("assets/demo.cast", document.getElementById("demo"), {poster: "npt:0:8", idleTimeLimit: 1.5, fit: "width"});
</script>
"""


def target(page, link):
    """The link of a page, as the site has it. `page` is its path in the repository."""
    if re.match(r"[a-z]+:|#", link):
        return link
    path, _, heading = link.partition("#")
    file = (ROOT / page).parent.joinpath(path).resolve().relative_to(ROOT)
    place = places().get(file)
    anchor = f"#{heading}" if heading else ""
    if place is None:
        kind = "tree" if (ROOT / file).is_dir() else "blob"
        return f"{PACKAGE['repository']}/{kind}/main/{file}{anchor}"
    up = len(places()[pathlib.Path(page)].parents) - 1
    return "../" * up + str(place) + anchor


def places():
    """The place in the site of each file of the repository that is in it."""
    docs = [file.relative_to(ROOT) for file in (ROOT / "docs").rglob("*") if file.is_file()]
    inside = {file: file.relative_to("docs") for file in docs}
    inside[pathlib.Path("docs/decisions")] = pathlib.Path("decisions.md")
    return inside | {pathlib.Path(file): pathlib.Path(file.lower()) for file in OTHERS}


def convert(page, text):
    """A page with the links of the site, without those in blocks of code."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    for n in range(0, len(parts), 2):
        parts[n] = LINK.sub(lambda found: found[1] + target(page, found[2]) + found[3], parts[n])
    return "".join(parts)


def main(directory, recording):
    source = pathlib.Path(directory)
    shutil.rmtree(source, ignore_errors=True)
    for file, place in places().items():
        to = source / place
        to.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            to.write_text(convert(str(file), (ROOT / file).read_text()))
        elif (ROOT / file).is_file():
            shutil.copy(ROOT / file, to)
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))
    titles = [(file.name, file.read_text().splitlines()[0].lstrip("# ")) for file in decisions]
    lines = [f"* [{title}](decisions/{name})" for name, title in titles]
    (source / "decisions.md").write_text("# Decisions\n\n" + "\n".join(lines) + "\n")
    with (source / "SUMMARY.md").open("a") as summary:
        summary.writelines(f"- [{title}]({file.lower()})\n" for file, title in OTHERS.items())
        summary.write("- [Decisions](decisions.md)\n")
        summary.writelines(f"  - [{title}](decisions/{name})\n" for name, title in titles)
    start = source / "index.md"
    title, _, rest = start.read_text().partition("\n")
    intro = "cliq runs teams of agents. This is `cliq demo`: a team checks a folder of pages, a gate sends the work back, and it is mended.\n"
    start.write_text(f"{title}\n\n{intro}{PLAYER}\n{rest}")
    assets = source / "assets"
    assets.mkdir()
    shutil.copy(recording, assets / "demo.cast")


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
