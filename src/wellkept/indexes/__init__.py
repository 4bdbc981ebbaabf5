"""Indexes that are derived from any journal."""
