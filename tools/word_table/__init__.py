"""Makes the table of the built-in embedder: see ``__main__``."""
