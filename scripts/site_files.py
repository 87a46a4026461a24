"""A hook of MkDocs: pages that live beside what they are about are part of the site, too."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
KINDS = {".md", ".png", ".py"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the examples, with their pictures and programs, and the changelog."""
    found = [ROOT / "CHANGELOG.md", *sorted((ROOT / "examples").glob("*/*"))]
    for path in found:
        if path.suffix in KINDS and not path.name.startswith("test_"):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files
