"""The ageing of memories: pure functions with ``now`` as an argument."""
