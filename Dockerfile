# Watchkeeper with a Chromium of its own, as an ordinary user. How to run it, and why it is built so: docs/docker.md
FROM python:3.11-slim-trixie AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY supervisor supervisor
COPY context context
COPY server server
RUN python -m venv /opt/watchkeeper \
 && /opt/watchkeeper/bin/pip install --no-cache-dir -c constraints.txt . \
 && /opt/watchkeeper/bin/python -m compileall -q /opt/watchkeeper/lib

FROM python:3.11-slim-trixie
LABEL io.modelcontextprotocol.server.name="io.github.watchkeeper/watchkeeper" \
      org.opencontainers.image.source="https://github.com/watchkeeper/watchkeeper" \
      org.opencontainers.image.licenses="MIT"
# tini is process 1: it passes signals on, and takes in what ended processes of the browser leave behind.
RUN apt-get update \
 && apt-get install -y --no-install-recommends chromium fonts-liberation fonts-noto-color-emoji tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 watchkeeper \
 && install -d -o watchkeeper -g watchkeeper /files
COPY --from=build /opt/watchkeeper /opt/watchkeeper
ENV PATH=/opt/watchkeeper/bin:$PATH
USER watchkeeper
# Files are read and written here, and nowhere else.
WORKDIR /files
EXPOSE 8765
# Over stdio the client is the judge; over HTTP this is.
HEALTHCHECK --start-period=10s --timeout=5s CMD [ "$WATCHKEEPER_SERVER__TRANSPORT" != http ] || \
  python -c 'import os, urllib.request as r; r.urlopen("http://127.0.0.1:%s/health" % os.environ.get("WATCHKEEPER_SERVER__PORT", 8765), timeout=3)'
ENTRYPOINT ["tini", "--", "watchkeeper"]
