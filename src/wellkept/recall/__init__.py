"""The index behind a search: what a store keeps in RAM of its owners' memories, and how candidates come out of it.

Derived, never the truth: a store fills it from what it holds and may drop it at any time.
"""
