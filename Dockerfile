# A container image with ranks. The base decides about the device; a torch that it has is kept.
#
#   docker build -t ranks .                                                                           CPU
#   docker build -t ranks --build-arg BASE=pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime .           NVIDIA
#   docker build -t ranks --build-arg BASE=rocm/pytorch:latest .                                      AMD
#   docker run --gpus all --ipc host -v "$PWD:/work" ranks train graph-coloring --preset demo
#
# RUN_AS=root is for SkyPilot and rented pods, which install their own programs in the container.
ARG BASE=debian:12-slim
FROM ${BASE}
ARG RUN_AS=ranks
USER root
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates git openssh-client rsync \
    && { command -v python3 > /dev/null || apt-get install -y --no-install-recommends python3 python3-venv; } \
    && rm -rf /var/lib/apt/lists/*
RUN id ranks > /dev/null 2>&1 || useradd --create-home ranks
COPY . /opt/ranks
# All users read the environment and the compiled kernels; nobody but root changes them.
ENV PATH=/opt/ranks/.venv/bin:${PATH}
RUN python3 /opt/ranks/tools/environment.py demo && rm -rf /root/.cache && ranks --version
RUN mkdir -p /work && chown ranks: /work
USER ${RUN_AS}
WORKDIR /work
ENTRYPOINT ["ranks"]
