"""Upkeep: retention with plans, runs that can be undone, and a schedule."""
