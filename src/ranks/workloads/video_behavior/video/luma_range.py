"""Which greys the luma of a frame means: full range is 0 to 255, limited range is 16 (black) to 235 (white).

Most cameras write limited range. What a frame has:

    yuv420p and the like     what its tag says; without one limited, as players show it
    yuvj420p and the like    full: that is what the j means
    gray                     full, whatever the tag says: FFmpeg and mpv read it so, and FFmpeg writes 0 to 255 with a
                             tag of limited range (H.265) or with none
    H.264 without colour     what its tag says; without one full, because FFmpeg writes 0 to 255 for `-c:v libx264
                             -pix_fmt gray`. It decodes that as yuv420p, so only the head of the stream tells it from
                             colour
"""

from __future__ import annotations

from typing import Any

import numpy as np

LUMA_IN_PLANE_0 = {f"yuv{j}{kind}p" for j in ("", "j") for kind in ("420", "422", "444")} | {"nv12", "gray"}
UNSPECIFIED, FULL_RANGE = 0, 2
"""AVCOL_RANGE_UNSPECIFIED and AVCOL_RANGE_JPEG of FFmpeg."""
FULL_FROM_LIMITED = np.clip(np.rint((np.arange(256) - 16) * 255 / 219), 0, 255).astype(np.uint8)
"""uint8[256]: the grey of each luma of limited range."""
SEQUENCE_PARAMETERS = 7
"""The type of the unit of an H.264 stream that describes its pictures (ITU-T H.264, table 7-1)."""
HIGH_PROFILES = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135}
"""Those that may be without colour (7.3.2.1.1)."""


def is_full_range(frame: Any, monochrome: bool) -> bool:
    """Whether the greys of a frame, as `upright` gives them, are full range. `monochrome`: `is_monochrome_h264`."""
    name = frame.format.name
    if name not in LUMA_IN_PLANE_0 or name.startswith("yuvj") or name == "gray":
        return True
    return frame.color_range == FULL_RANGE or (monochrome and frame.color_range == UNSPECIFIED)


def is_monochrome_h264(codec: Any) -> bool:
    """Whether a codec context is of an H.264 stream without colour: its chroma_format_idc is 0."""
    head = bytes(codec.extradata or b"")
    if codec.name != "h264" or len(head) < 8:
        return False
    # avcC of mp4 and mkv (ISO/IEC 14496-15): five bytes, the number of units, the length of the first one
    unit = head[8:] if head[0] == 1 else head[head.find(b"\0\0\1") + 3 :]
    if len(unit) < 6 or unit[0] & 31 != SEQUENCE_PARAMETERS or unit[1] not in HIGH_PROFILES:
        return False
    bits = "".join(f"{byte:08b}" for byte in unit[4:12])
    _, place = exp_golomb(bits, 0)  # seq_parameter_set_id
    chroma_format, _ = exp_golomb(bits, place)
    return chroma_format == 0


def exp_golomb(bits: str, place: int) -> tuple[int | None, int]:
    """(the number that begins at a place, the place after it); None where the bits end before it does (H.264, 9.1)."""
    zeros = bits.find("1", place) - place
    stop = place + 2 * zeros + 1
    if zeros < 0 or stop > len(bits):
        return None, len(bits)
    return int(bits[place + zeros : stop], 2) - 1, stop
