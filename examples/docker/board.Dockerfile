# A container on a board: the library and tinygrad, as an ordinary user. On the board, with the files of `make deb-board wheels` in dist:
#
#     docker build -f examples/docker/board.Dockerfile -t tegrarm-board .
#     docker run --rm --device /dev/nvmap --device /dev/nvgpu --group-add "$(stat -c %g /dev/nvmap)" tegrarm-board
#
# With a CDI specification (`tegrarm doctor --cdi`), `--device libtegrarm/gpu=0` takes the place of the three options.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends libatomic1 \
    && rm -rf /var/lib/apt/lists/*

COPY dist/*aarch64.whl /tmp/wheels/
RUN python -m pip install --no-cache-dir "$(echo /tmp/wheels/tegrarm-*.whl)[tinygrad,nvrtc]" \
    && rm -rf /tmp/wheels

RUN useradd --create-home tegrarm
USER tegrarm
WORKDIR /home/tegrarm
CMD ["tegrarm", "doctor"]
