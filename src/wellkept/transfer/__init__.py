"""Moving memories between stores: copies with their history, compared to the last byte."""
