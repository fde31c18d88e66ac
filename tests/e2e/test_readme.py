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


def test_links():
    for page in (ROOT / "README.md", ROOT / "docs/guide/quick-start.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"
