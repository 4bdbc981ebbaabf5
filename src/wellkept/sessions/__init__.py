"""Sessions: what is known of them, what they may hold, and how they make room."""
