"""Text as recall, filters and prompts read it: words and stems, chunks, tokens, dates, questions."""
