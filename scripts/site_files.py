"""A hook of MkDocs: pages that live beside what they are about are part of the site, too.

Links are written as files lie in the repository, so that they also work where people read it. On
the site, `docs/` is the root; the hook changes the links accordingly.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
KINDS = {".md", ".png", ".py"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|[#/])([^)#]+)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the examples, with their pictures and programs, and the changelog."""
    found = [ROOT / "CHANGELOG.md", *sorted((ROOT / "examples").glob("*/*"))]
    for path in found:
        if path.suffix in KINDS and not path.name.startswith("test_"):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links between `docs/` and the files beside it lead to the same pages on the site."""
    assert page.file.abs_src_path is not None
    folder = Path(page.file.abs_src_path).parent
    here = Path(page.file.src_uri).parent

    def on_site(link: re.Match[str]) -> str:
        name = Path(os.path.relpath(folder / link[1], ROOT))
        within = name.relative_to("docs") if name.parts[0] == "docs" else name
        return Path(os.path.relpath(within, here)).as_posix()

    return LINK.sub(on_site, markdown)
