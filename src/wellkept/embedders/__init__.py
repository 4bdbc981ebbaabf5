"""Embedders: text to vectors. Any object with ``name``, ``dimension`` and ``embed`` is one."""
