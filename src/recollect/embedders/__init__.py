"""Embedders: text to vectors. Any object with a name, a dimension and ``embed`` will do."""
