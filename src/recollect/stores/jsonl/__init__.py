"""A store of JSON Lines in folders that a person can read."""
