"""Ask through Pointsman with OpenAI's SDK, and see who answered.

    python examples/chat.py "What is 17 times 23?"

POINTSMAN_URL is the gateway (default http://127.0.0.1:8790/v1), POINTSMAN_KEY a key (on the gateway's own machine none
is needed).
"""

# ruff: noqa: T201
import os
import sys

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("POINTSMAN_URL", "http://127.0.0.1:8790/v1"),
    api_key=os.environ.get("POINTSMAN_KEY", "unused-on-this-machine"),
)
reply = client.chat.completions.with_raw_response.create(
    model="pointsman", messages=[{"role": "user", "content": sys.argv[1]}]
)
print(reply.parse().choices[0].message.content)
for name in ("decision-id", "worker", "propensity"):
    print(f"{name}: {reply.headers[f'x-pointsman-{name}']}")
