"""Time-ordered ids (UUIDv7), made from a given time and given randomness."""


def uuid7(time_ms: int, entropy: bytes) -> str:
    """The UUIDv7 of a time in milliseconds and ten random bytes, as its canonical string.

    >>> uuid7(1_700_000_000_000, bytes(10))
    '018bcfe5-6800-7000-8000-000000000000'
    """
    random = int.from_bytes(entropy[:10], "big")
    return (
        f"{time_ms >> 16 & 0xFFFF_FFFF:08x}-{time_ms & 0xFFFF:04x}"
        f"-7{random >> 64 & 0xFFF:03x}"
        f"-{0x8000 | random >> 48 & 0x3FFF:04x}-{random & 0xFFFF_FFFF_FFFF:012x}"
    )
