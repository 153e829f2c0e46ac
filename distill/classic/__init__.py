"""Cheap routers, as baselines and as products: trained with scikit-learn, kept as safetensors and JSON.

`baselines` have no text in them, `text_routers` are served by the gateway's numpy code, `teacher` is what
learned routers are distilled from.
"""
