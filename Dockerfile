# A container image with ranks. The base decides about the device; a torch that it has is kept.
#
#   docker build -t ranks .                                                                           CPU
#   docker build -t ranks --build-arg BASE=pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime .           NVIDIA
#   docker build -t ranks --build-arg BASE=rocm/pytorch:latest .                                      AMD
#   docker run --gpus all --ipc host -v "$PWD:/work" ranks train graph-coloring --preset demo
#
# RUN_AS=root is for SkyPilot and rented pods, which install their own programs in the container. A first word such as
# bash starts that program, and `sshd` a server that lets the owner of PUBLIC_KEY in; all other words go to ranks.
ARG BASE=debian:12-slim
FROM ${BASE}
ARG RUN_AS=ranks
USER root
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates git openssh-client \
        openssh-server rsync \
    && { command -v python3 > /dev/null || apt-get install -y --no-install-recommends python3 python3-venv; } \
    && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*
RUN id ranks > /dev/null 2>&1 || useradd --create-home ranks
COPY . /opt/ranks
# All users read the environment and the compiled kernels; nobody but root changes them.
ENV PATH=/opt/ranks/.venv/bin:${PATH}
RUN python3 /opt/ranks/tools/environment.py demo && rm -rf /root/.cache
# A login shell, as ssh starts it, has a PATH of its own.
RUN ln -s /opt/ranks/.venv/bin/ranks /usr/local/bin/ranks && env -i bash -lc 'ranks --version'
RUN mkdir -p /work && chown ranks: /work
USER ${RUN_AS}
WORKDIR /work
ENTRYPOINT ["/opt/ranks/tools/container_entry.sh"]
