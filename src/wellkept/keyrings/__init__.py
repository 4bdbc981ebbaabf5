"""Keyrings: in a file beside the store, and in RAM for tests."""
