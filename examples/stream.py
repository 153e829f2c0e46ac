"""The same, streamed: the first token leaves as it comes, after the decision is on disk.

python examples/stream.py "Write a sonnet about rivers."
"""

# ruff: noqa: T201
import os
import sys

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("POINTSMAN_URL", "http://127.0.0.1:8790/v1"),
    api_key=os.environ.get("POINTSMAN_KEY", "unused-on-this-machine"),
)
stream = client.chat.completions.create(
    model="pointsman", messages=[{"role": "user", "content": sys.argv[1]}], stream=True
)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
print()
