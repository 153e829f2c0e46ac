"""The learned router: a frozen or SVF-tuned backbone, one hidden state per request, a small head.

backbone   which model, at which commit; how a request becomes text and which token is read
heads      index (a row per arm) and card (an arm described by values per latent type)
checkpoint safetensors and JSON, with hashes of template and tokenizer that are checked at load
"""
