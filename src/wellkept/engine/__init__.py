"""The engine: the one way in and out of a store."""
