"""Ask, look at the answer, say how it was. The word names the answer by its own id, so it may come days later.

python examples/feedback.py "What is 17 times 23?" 391
"""

# ruff: noqa: T201
import os
import sys

import httpx
from openai import OpenAI

url = os.environ.get("POINTSMAN_URL", "http://127.0.0.1:8790/v1")
key = os.environ.get("POINTSMAN_KEY", "unused-on-this-machine")
question, expected = sys.argv[1:3]

answer = OpenAI(base_url=url, api_key=key).chat.completions.create(
    model="pointsman", messages=[{"role": "user", "content": question}]
)
right = expected in (answer.choices[0].message.content or "")
said = httpx.post(
    f"{url}/feedback",
    json={"completion_id": answer.id, "metric": "correct", "value": right, "comment": f"expected {expected}"},
    headers={"authorization": f"Bearer {key}"},
)
said.raise_for_status()
print(f"{answer.id}: correct = {right}")
