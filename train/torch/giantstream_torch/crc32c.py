"""CRC-32C (Castagnoli), the checksum of giantstream's objects; Python's zlib has only the other CRC-32.

A CRC is linear over GF(2). The CRC of a concatenation A B, from register 0 and without the final
inversion, is that of A sent through len(B) zero bytes, XOR that of B. So numpy takes many equal
lanes of the data a step at a time, all at once, and then joins pairs of neighbouring lanes until
one is left. Zero bytes in front change nothing in register 0, so data are padded there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Registers = NDArray[np.int64]  # of 32 bits each; int64, because numpy indexes with it fastest

_POLYNOMIAL = 0x82F63B78  # bits reversed
_LANE_BYTES = 1 << 8
_MOST_LANES = 1 << 13  # 2 MiB at a time: registers and table stay in the processor's cache


def _tables() -> tuple[Registers, Registers]:
    """What one byte makes of a register, by its low 8 bits XOR the byte, and what two make, by 16 bits."""
    one = np.arange(1 << 8)
    for _ in range(8):
        one = np.where(one & 1, one >> 1 ^ _POLYNOMIAL, one >> 1)
    two = np.arange(1 << 16)
    for _ in range(2):
        two = one[two & 0xFF] ^ two >> 8
    return one, two


_ONE, _TWO = _tables()


def _through(zeros: Registers, registers: Registers) -> Registers:
    """Sends registers through zero bytes, given by what these make of the 32 single bits."""
    out = np.zeros_like(registers)
    for bit in range(32):
        out ^= zeros[bit] * (registers >> bit & 1)
    return out


def _powers() -> list[Registers]:
    """Zero bytes, 2^i of them, for _through."""
    bits = np.left_shift(1, np.arange(32))
    powers = [_ONE[bits & 0xFF] ^ bits >> 8]
    while len(powers) < 40:
        powers.append(_through(powers[-1], powers[-1]))
    return powers


_ZEROS = _powers()


def _raw(data: memoryview) -> Registers:
    """The CRC of at most _MOST_LANES lanes, from register 0 and without the final inversion; one register."""
    lanes = 1
    while lanes * _LANE_BYTES < len(data):
        lanes *= 2
    padded = np.zeros(lanes * _LANE_BYTES, dtype=np.uint8)
    padded[len(padded) - len(data) :] = data
    steps = padded.view("<u2").reshape(lanes, _LANE_BYTES // 2).T.astype(np.int64)
    registers = np.zeros(lanes, dtype=np.int64)
    for step in steps:
        registers = np.take(_TWO, (registers & 0xFFFF) ^ step) ^ registers >> 16
    joined = _LANE_BYTES.bit_length() - 1
    while len(registers) > 1:
        registers = _through(_ZEROS[joined], registers[0::2]) ^ registers[1::2]
        joined += 1
    return registers


def crc32c(data: bytes | memoryview, value: int = 0) -> int:
    """The CRC-32C of data; of more than one piece, when value is that of the pieces before it."""
    register = np.array([value ^ 0xFFFFFFFF], dtype=np.int64)
    most = _MOST_LANES * _LANE_BYTES
    for at in range(0, len(data), most):
        piece = memoryview(data)[at : at + most]
        for i in range(len(piece).bit_length()):
            if len(piece) >> i & 1:
                register = _through(_ZEROS[i], register)
        register ^= _raw(piece)
    return int(register[0]) ^ 0xFFFFFFFF
