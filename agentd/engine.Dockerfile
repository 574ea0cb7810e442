# The engine on its base. The build context has the installed engine in the folder that ENGINE names; see
# src/openclaw/image.ts.
ARG BASE_IMAGE=node:24-bookworm-slim
FROM ${BASE_IMAGE}

# git keeps the agent's files and curl is what agents reach for first; tini reaps what they leave behind. The root of
# a running agent is read-only: whoever wants more in it (python3, ffmpeg, …) puts it into a base image of their own.
RUN node -e 'const [a, b] = process.versions.node.split(".").map(Number); \
      if (a < 24 || (a === 24 && b < 16)) { console.error("the base image needs Node 24.16 or newer"); process.exit(1) }' \
 && for tool in bash curl git tini; do command -v "$tool" >/dev/null || missing=1; done \
 && if [ -n "$missing" ] || ! [ -e /etc/ssl/certs/ca-certificates.crt ]; then \
      apt-get update \
      && apt-get install -y --no-install-recommends bash ca-certificates curl git tini \
      && rm -rf /var/lib/apt/lists/*; \
    fi \
 && if ! id -u node >/dev/null 2>&1; then useradd --uid 1000 --user-group --shell /bin/bash --create-home node; fi \
 && [ "$(id -u node)" = 1000 ] \
 && ln -s /opt/openclaw/node_modules/openclaw/openclaw.mjs /usr/local/bin/openclaw

ARG ENGINE
COPY ${ENGINE} /opt/openclaw
# The first launch of an engine that Berth's own Node could not run; see src/openclaw/install.ts.
RUN cd /opt/openclaw/node_modules/openclaw \
 && if [ -e .openclaw-lifecycle-pending ]; then node openclaw.mjs --version || true; fi

# Compiled by the user who runs it: a boot takes a fifth less processor time. Without the code, or if this boot fails,
# each agent makes its own.
COPY agentd/compile-engine.ts /opt/
RUN cd /opt \
 && chmod go=r compile-engine.ts \
 && if [ -d openclaw/node_modules/openclaw/dist ]; then install -d -o node -g node openclaw/compile-cache; fi
USER node
RUN cd /opt/openclaw && if [ -d compile-cache ]; then \
      node ../compile-engine.ts "$PWD" "$PWD/compile-cache" 18789 || rm -rf compile-cache/*; \
    fi
USER root
RUN rmdir /opt/openclaw/compile-cache 2>/dev/null || true
WORKDIR /home/node
