"""The gateway: one OpenAI-compatible model in front of the pool.

`chat` knows the order of things for one request; `request`, `access`, `episodes`, `decide`, `answer`
and `rows` are its steps. `management` has every other endpoint, `generation` what one configuration
gives, `process` and `serve` the processes.
"""
