"""Videos: decode, time stamps, write, and the store of decoded frames."""
