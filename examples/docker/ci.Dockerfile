# A container for continuous integration, without a GPU: programs run on the virtual Orin. With the wheel of `make wheel` in dist:
#
#     docker build -f examples/docker/ci.Dockerfile -t tegrarm-ci .
#     docker run --rm -v "$PWD:/project:ro" tegrarm-ci tegrarm run /project/script.py
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libatomic1 libc6-dev \
    && rm -rf /var/lib/apt/lists/*

COPY dist/*x86_64.whl /tmp/wheels/
RUN python -m pip install --no-cache-dir "$(echo /tmp/wheels/tegrarm-*.whl)[tinygrad,nvrtc]" \
    && rm -rf /tmp/wheels

ENV TEGRARM_BACKEND=sim
RUN useradd --create-home tegrarm
USER tegrarm
WORKDIR /home/tegrarm
CMD ["python", "-m", "tegrarm.demo"]
