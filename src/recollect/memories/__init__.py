"""The one orchestrator: ``database`` opens, ``view`` is what one identity can do.

``engine`` holds the parts together; ``adding``, ``changing``, ``listing`` and ``searching`` are the verbs of a view;
``drafts`` is what a write leaves, as pure functions; ``converting`` copies one store into another.
"""
