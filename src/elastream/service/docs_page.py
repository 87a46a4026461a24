"""The OpenAPI document as one page that loads nothing from elsewhere.

The usual page fetches its scripts from a public host; a cluster often cannot reach one, and then it
stays blank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'"
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto }}
code, pre {{ font: 14px/1.4 ui-monospace, monospace }}
pre {{ background: #f4f4f2; padding: .8rem; overflow-x: auto }}
h2 code {{ font-size: 1.1rem }} td {{ padding: .1rem 1rem .1rem 0; vertical-align: top }}
</style></head><body>
<h1>{title} {version}</h1>
<p>The same as data: <a href="openapi.json">openapi.json</a></p>
{operations}
<h2>Messages</h2>
{schemas}
</body></html>
"""


def docs_page(document: Mapping[str, Any]) -> str:
    """Every path, with its parameters and answers."""
    return PAGE.format(
        title=escape(document["info"]["title"]),
        version=escape(document["info"]["version"]),
        operations="\n".join(_operations(document["paths"])),
        schemas="\n".join(_schemas(document["components"]["schemas"])),
    )


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation.get('description', operation['summary']))}</p>"
            if "requestBody" in operation:
                (content,) = operation["requestBody"]["content"].values()
                yield f"<p>Body: {_reference(content['schema'])}</p>"
            yield "<table>"
            for status, answer in operation["responses"].items():
                yield (
                    f"<tr><td>{escape(status)}</td><td>{escape(answer['description'])}</td>"
                    f"<td>{' '.join(map(_content, answer.get('content', {}).items()))}</td></tr>"
                )
            yield "</table>"


def _content(item: tuple[str, Mapping[str, Any]]) -> str:
    kind, content = item
    return _reference(content.get("schema", {})) or escape(kind)


def _reference(schema: Mapping[str, Any]) -> str:
    names = [
        part["$ref"].rpartition("/")[2] for part in schema.get("anyOf", [schema]) if "$ref" in part
    ]
    return " or ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in names)


def _schemas(schemas: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f'<h3 id="{escape(name)}">{escape(name)}</h3>'
        yield f"<p>{escape(schema.get('description', ''))}</p>"
        yield f"<pre>{escape(json.dumps(schema.get('properties', {}), indent=2))}</pre>"
