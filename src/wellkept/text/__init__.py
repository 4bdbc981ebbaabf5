"""Text processing for recall, filters and prompts: stems, chunks, token counts, dates, query syntax."""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.text import tokens as tokens
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "tokens"})
