"""Rerankers: a second, slower look at the best candidates of a search. Each reads the question and a text together."""
