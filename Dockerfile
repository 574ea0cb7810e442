# One image for every role: `node src/main.ts web | worker | host`, and `node bin/berth.mjs` for the CLI.
# Run it with an init process (`docker run --init`, `init: true`).
ARG BASE_IMAGE=node:24-bookworm-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Install scripts only fetch what the image does not need: Node, which the base has, and an embedded PostgreSQL.
# `npm install` keeps to the lock file as well, and unlike `npm ci` takes one without every platform's binaries.
RUN npm install --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run prepare \
 && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM ${BASE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 BERTH_DATA_DIR=/var/lib/berth
# `web` reads with git the repositories that templates are made of.
RUN if ! command -v git >/dev/null || ! [ -e /etc/ssl/certs/ca-certificates.crt ]; then \
      apt-get update \
      && apt-get install -y --no-install-recommends ca-certificates git \
      && rm -rf /var/lib/apt/lists/*; \
    fi
RUN install -d -o node -g node -m 700 /var/lib/berth
WORKDIR /app
COPY --from=build /app ./
USER node
EXPOSE 3000
CMD ["node", "src/main.ts", "web"]
