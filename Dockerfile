# One image for every role: `node src/main.ts web | worker | agent-proxy | disks`, and `node bin/berth.mjs` for the CLI.
# Run it with an init process (`docker run --init`, `init: true`).
# Behind a proxy with its own certificate authority: `docker build --secret id=npm_ca,src=ca.crt .`
ARG BASE_IMAGE=node:24-bookworm-slim
FROM ${BASE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# Install scripts and optional packages add only what the image does not need: Node, which the base has, an embedded
# PostgreSQL, and faster versions of JavaScript code. The exceptions are the parts of sharp and koffi for this machine,
# which are added in their locked versions. Files that no program reads at run time are removed: source maps, types, and
# Prisma's query compilers for other databases.
RUN --mount=type=secret,id=npm_ca \
    if [ -s /run/secrets/npm_ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/npm_ca; fi \
 && npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
 && npm install --no-save --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund $(node -p " \
      const { packages } = require('./package-lock.json'); \
      ['@img/sharp', '@img/sharp-libvips', '@koromix/koffi'].map((name) => name + '-linux-' + process.arch) \
        .map((name) => name + '@' + packages['node_modules/' + name].version).join(' ')") \
 && find node_modules -type f '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' ')' -delete \
 && find node_modules/@prisma/client/runtime -name 'query_compiler_*' ! -name '*.postgresql.*' -delete

FROM ${BASE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 BERTH_DATA_DIR=/var/lib/berth
# `web` uses git to read template repositories; `disks` creates file systems.
RUN if ! command -v git >/dev/null || ! command -v btrfs >/dev/null || ! [ -e /etc/ssl/certs/ca-certificates.crt ]; then \
      apt-get update \
      && apt-get install -y --no-install-recommends btrfs-progs ca-certificates git \
      && rm -rf /var/lib/apt/lists/* /var/cache/apt/*; \
    fi
RUN install -d -o node -g node -m 700 /var/lib/berth /run/berth /var/cache/berth \
 && install -d -o root -g node -m 750 /run/berth-disks
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY . .
USER node
# Compile the program, so that no process strips its types at startup and keeps the type stripper in memory.
ENV NODE_COMPILE_CACHE=/var/cache/berth
RUN node src/main.ts compile image && node bin/berth.mjs keys --help
EXPOSE 3000
CMD ["node", "--max-semi-space-size=8", "src/main.ts", "web"]
