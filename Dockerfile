# Two images from one file:
#   docker build --target serve   -t pointsman:serve .      gateway, dashboard, workers of jobs without training
#   docker build --target distill -t pointsman:distill .    the same and torch, for the queue `train`
FROM python:3.12-slim AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# bubblewrap: verifiers that run code do so in a sandbox.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home pointsman \
    && install -d -o pointsman -g pointsman -m 700 /data /data/tasks /artifacts
WORKDIR /src
COPY pyproject.toml constraints.txt README.md ./
COPY platform platform
COPY harness harness
COPY distill distill
COPY dashboard dashboard

FROM base AS serve
RUN pip install -c constraints.txt '.[jobs,data,optimize,dashboard,tracing]'
USER pointsman
WORKDIR /data
ENTRYPOINT ["pointsman"]
CMD ["serve"]

FROM serve AS distill
USER root
WORKDIR /src
# A CPU build; for a GPU give --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu128 or the like.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG TORCH=torch==2.13.0
RUN pip install --index-url "$TORCH_INDEX" "$TORCH" \
    && pip install -c constraints.txt '.[distill]'
USER pointsman
WORKDIR /data
CMD ["worker", "--queues", "train"]
