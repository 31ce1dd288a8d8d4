"""The page of a report: one HTML file that needs no network."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from ranks.watch.run_facts import RunFacts

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1000px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ddd }
table { border-collapse: collapse } td, th { padding: .15em .8em .15em 0; text-align: left; vertical-align: top }
th { font-weight: 600; white-space: nowrap } img { max-width: 100% }
pre { background: #f6f6f6; padding: 1em; overflow: auto }
"""


Rows = Iterable[tuple[str, ...]]


def page(
    facts: RunFacts,
    price: float | None,
    now: float,
    written: str,
    pictures: Iterable[tuple[str, Path]],
    more: Iterable[tuple[str, Iterable[str]]] = (),
) -> str:
    """The whole page. `pictures`: (heading, file), which are put into the page; `more`: (heading, lines of HTML)."""
    return document(
        facts.name,
        [
            table(("", *row) for row in facts.facts(price, now)),
            *(part for heading, lines in more for part in ([f"<h2>{escape(heading)}</h2>"], lines)),
            *(picture(heading, path) for heading, path in pictures),
            ["<h2>Starts, ends and faults</h2>"],
            table(facts.history()),
            ["<h2>Settings</h2>"],
            preformatted(json.dumps(facts.settings, indent=2)),
            [f"<p>Written {escape(written)} by ranks report.</p>"],
        ],
    )


def document(title: str, parts: Iterable[Iterable[str]]) -> str:
    """A whole page. `parts`: lines of HTML."""
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            f"<style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *(line for part in parts for line in part),
            "</body></html>",
            "",
        ]
    )


def paragraph(text: str) -> list[str]:
    """A paragraph; nothing where there is no text."""
    return [f"<p>{escape(text)}</p>"] if text else []


def table(rows: Rows, *, header: bool = False) -> Iterator[str]:
    """The first cell of a row is its heading; an empty one is left out. `header`: the first row has headings only."""
    yield "<table>"
    for number, row in enumerate(rows):
        if header and number == 0:
            yield f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in row)}</tr>"
            continue
        cells = [cell for cell in row if cell != ""]
        yield f"<tr><th>{escape(cells[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells[1:])}</tr>"
    yield "</table>"


def preformatted(text: str) -> list[str]:
    """Text whose lines and columns stay as they are."""
    return [f"<pre>{escape(text)}</pre>"]


def picture(heading: str, path: Path) -> Iterator[str]:
    """A heading and the picture itself."""
    yield f"<h2>{escape(heading)}</h2>"
    yield from image(heading, path)


def image(heading: str, path: Path) -> Iterator[str]:
    """The picture itself."""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    yield f'<img alt="{escape(heading)}" src="data:image/png;base64,{content}">'
