#!/bin/bash
# From the official entrypoint: as root, it prepares the folder and continues as `postgres`. At the first start it creates
# the cluster of POSTGRES_USER, POSTGRES_DB and POSTGRES_PASSWORD(_FILE), without listening on any address.
set -euo pipefail

if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 700 "$PGDATA"
  install -d -o postgres -g postgres -m 3775 /var/run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  password=${POSTGRES_PASSWORD:-$(cat "$POSTGRES_PASSWORD_FILE")}
  initdb --username="$user" --pwfile=<(echo "$password") -D "$PGDATA"
  {
    echo "listen_addresses = '*'"
  } >>"$PGDATA/postgresql.conf"
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
  createdb --username="$user" "${POSTGRES_DB:-$user}" || [ "${POSTGRES_DB:-$user}" = postgres ]
  pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
