"""Records of TensorBoard's files: a length and data, each with a checksum.

TensorBoard has a writer, but its import takes 0.25 s of CPU time at the start of every run: it imports fsspec, asyncio
and a part of TensorFlow's interface.
"""

from __future__ import annotations

import struct

POLYNOMIAL = 0x82F63B78
"""Of CRC-32C (Castagnoli), with the bits in reverse order."""


def _entry(byte: int) -> int:
    """The checksum's change for one byte."""
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE = tuple(map(_entry, range(256)))


def crc32c(data: bytes) -> int:
    """CRC-32C of the data (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """uint64 length, its masked checksum, the data, its masked checksum; all little-endian, as in TFRecord files."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    rotated = crc >> 15 | crc << 17 & 0xFFFFFFFF
    return struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)
