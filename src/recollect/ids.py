"""Time-ordered ids (UUIDv7), made from a given time and given randomness."""


def uuid7(time_ms: int, entropy: bytes) -> str:
    """The UUIDv7 of a time in milliseconds and ten random bytes, as its canonical string.

    >>> uuid7(1_700_000_000_000, bytes(10))
    '018bcfe5-6800-7000-8000-000000000000'
    """
    high = int.from_bytes(entropy[:2], "big") & 0x0FFF
    low = int.from_bytes(entropy[2:10], "big") & 0x3FFF_FFFF_FFFF_FFFF
    value = (time_ms & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
