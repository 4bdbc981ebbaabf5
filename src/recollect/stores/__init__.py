"""The stores that come with Recollect, one module or package each."""
