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

# V8's code of everything that a gateway loads until it is ready, made by the user who runs it: a boot takes an eighth
# less processor time. Without it, or if this boot fails, each agent makes its own.
RUN cd /opt/openclaw && if [ -d node_modules/openclaw/dist ]; then install -d -o node -g node compile-cache; fi
USER node
RUN cd /opt/openclaw && if [ -d compile-cache ]; then \
      export HOME=/tmp/boot NODE_COMPILE_CACHE="$PWD/compile-cache" OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED=1; \
      mkdir -p "$HOME/.openclaw"; \
      echo '{"gateway": {"mode": "local", "bind": "loopback", "port": 18789, "auth": {"mode": "token", "token": "build"}, \
        "controlUi": {"enabled": false}}, "update": {"checkOnStart": false}, "telemetry": {"enabled": false}, \
        "discovery": {"mdns": {"mode": "off"}}, "browser": {"enabled": false}, \
        "plugins": {"entries": {"admin-http-rpc": {"enabled": true}}}}' > "$HOME/.openclaw/openclaw.json"; \
      timeout --signal=TERM --kill-after=20 180 node node_modules/openclaw/openclaw.mjs gateway run >/dev/null 2>&1 & boot=$!; \
      until curl --silent --fail --output /dev/null http://127.0.0.1:18789/readyz; do kill -0 "$boot" || break; sleep 0.2; done; \
      kill -TERM "$boot"; wait "$boot"; rm -rf "$HOME"; \
    fi
USER root
RUN rmdir /opt/openclaw/compile-cache 2>/dev/null || true
WORKDIR /home/node
