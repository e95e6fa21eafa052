# The service for a Postgres elsewhere, which DATABASE_URL names: the embedded one is not in here.
# How to run it: src/docs/deployment.md. Node's version is the one that package.json has for development.
# To pin it by digest: --build-arg NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:24.21.0-bookworm-slim
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# Optional is what only the embedded Postgres needs. Nothing that stays has a script to be installed by.
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM ${NODE_IMAGE}
# With the threshold, glibc returns the memory of large bodies to the system.
ENV NODE_ENV=production HOST=0.0.0.0 MALLOC_MMAP_THRESHOLD_=1000000
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY src ./src
COPY sql ./sql
COPY tasks ./tasks
# The image's user "node", by its number, from which Kubernetes can tell that it is not root. It needs to
# write nowhere.
USER 1000:1000
EXPOSE 3000
STOPSIGNAL SIGTERM
# Of a process with the API; switch it off for --only worker and --only clock, which serve nothing.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 3000) + '/healthz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node itself, as npm would keep signals to itself.
ENTRYPOINT ["node", "--max-semi-space-size=32", "--heap-growing-percent=150", "src/main.ts"]
CMD ["start"]
