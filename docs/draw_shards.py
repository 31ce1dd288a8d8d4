"""Draw docs/images/shards.svg: `python docs/draw_shards.py`. Standard library only."""

from __future__ import annotations

from pathlib import Path

PICTURE = Path(__file__).parent / "images" / "shards.svg"
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2")
INK, PAPER, FAINT = "#2b2f36", "#ffffff", "#8a919c"
CELL, GAP, TOP, LEFT, ROW = 44, 10, 74, 190, 62
ASSIGNMENTS = (
    ("1 rank", (8,)),
    ("2 ranks", (4, 4)),
    ("3 ranks", (2, 3, 3)),
    ("2 unequal ranks: --shares 5,3", (5, 3)),
    ("4 ranks", (2, 2, 2, 2)),
)


def drawing() -> str:
    """The picture as SVG text: one run of 8 shards, assigned to ranks in five ways."""
    width, height = LEFT + 8 * CELL + 4 * GAP + 210, TOP + len(ASSIGNMENTS) * ROW + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>One run of eight shards on one, two, three and four ranks</title>",
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        _text(24, 32, "A run is made of items and shards, not of GPUs", 18, bold=True),
        _text(
            24, 54, "A global batch has 8 shards. Each bar is a rank with its contiguous range of shards.", 13, FAINT
        ),
    ]
    for row, (name, shards) in enumerate(ASSIGNMENTS):
        y = TOP + row * ROW
        first, *rest = name.split(": ")
        parts.append(_text(24, y + (22 if rest else 30), first, 14))
        parts += [_text(24, y + 40, text, 12, FAINT) for text in rest]
        shard = 0
        for rank, count in enumerate(shards):
            x = LEFT + shard * CELL + rank * GAP
            parts.append(
                f'<rect x="{x}" y="{y + 6}" width="{count * CELL}" height="38" rx="7" fill="{COLOURS[rank]}"/>'
            )
            for i in range(count):
                centre = x + i * CELL + CELL // 2
                parts.append(_text(centre, y + 31, str(shard + i), 15, PAPER, middle=True))
            shard += count
        parts.append(_text(LEFT + 8 * CELL + 4 * GAP + 16, y + 30, "= the same gradient", 14, FAINT))
    end = "gradient = sum over items / count of items, on any assignment; with --exact it is bit-for-bit identical"
    parts += [_text(24, height - 14, end, 13), "</svg>"]
    return "\n".join(parts) + "\n"


def _text(x: int, y: int, text: str, size: int, fill: str = INK, *, bold: bool = False, middle: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{weight}{anchor}>{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
    print(PICTURE)
