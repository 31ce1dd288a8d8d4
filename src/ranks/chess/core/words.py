"""A position as 13 words of 64 bits (104 bytes): stored and sent to the nets in the same form.

word   0 pawns    1 knights   2 bishops   3 rooks   4 queens   5 kings      bitboards, both sides together
       6 white    7 black                                                  bitboards, all kinds together
       8 side           0 white to move, 1 black
       9 castling       bitboard of the rooks (a1, h1, a8, h8) that may still castle
      10 en_passant     bitboard of the en passant square, set only where the capture is legal
      11 clocks         halfmove clock | full move number << 16 | repetitions << 32
      12 key            Zobrist hash (Zobrist 1970) of words 0 to 10
"""

from __future__ import annotations

WORDS = 13
KINDS = 6
WHITE_WORD, BLACK_WORD, SIDE_WORD, CASTLING_WORD, EN_PASSANT_WORD, CLOCKS_WORD, KEY_WORD = range(KINDS, WORDS)
CASTLING_ROOKS = (7, 0, 63, 56)
"""Squares of the rooks for white's short and long castling, then for black's."""
