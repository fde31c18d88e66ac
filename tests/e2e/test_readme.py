# SPDX-License-Identifier: MIT
"""The README: its program compiles and prints what it says, its links lead somewhere."""
import pathlib
import re
import subprocess

from simulated import RATION, ROOT

README = (ROOT / "README.md").read_text()


def test_the_program_prints_what_it_says(tmp_path):
    program, output = re.search(r"```c\n(.*?)```\n\n```\n(.*?)```", README, re.S).groups()
    (tmp_path / "program.c").write_text(program)
    library = pathlib.Path(RATION).parent / "libration.a"
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "program.c", str(library),
                    "-lxxhash", "-pthread", "-o", "program"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout == output


def anchor(heading):
    """As a renderer names it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def links(page):
    """Where its links within the repository lead: (file, heading or "")."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", target):
            path, _, heading = target.partition("#")
            yield (page.parent / path).resolve() if path else page, heading


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_every_link_leads_somewhere():
    for page in PAGES:
        for target, heading in links(page):
            assert target.exists(), f"{page}: {target}"
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.M) if heading else []
            assert not heading or heading in map(anchor, headings), f"{page}: {target}#{heading}"


def test_every_page_is_found_from_the_readme():
    found, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in found:
            found.add(page)
            todo += [target for target, _ in links(page) if target.suffix == ".md"]
    assert not set(PAGES) - found
