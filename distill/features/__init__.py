"""What routers read of a text, as arrays: sentence embeddings, surface counts, hashed TF-IDF.

Everything is cached by the hash of the text and the hash of what computed it (`cache`).
"""
