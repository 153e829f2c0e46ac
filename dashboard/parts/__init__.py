"""Pieces of pages: each function draws one thing from values that are handed to it."""
