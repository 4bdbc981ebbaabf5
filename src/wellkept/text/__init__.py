"""Text processing for recall, filters and prompts: stems, chunks, token counts, dates, query syntax."""
