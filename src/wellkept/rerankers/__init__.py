"""Rerankers: rescore the best candidates of a search with a model that reads query and text together."""
