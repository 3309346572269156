#!/bin/bash
# The contract of the official postgres image: POSTGRES_PASSWORD, POSTGRES_USER, POSTGRES_DB (each also as *_FILE),
# POSTGRES_INITDB_ARGS, POSTGRES_HOST_AUTH_METHOD, PGDATA, /docker-entrypoint-initdb.d.
set -euo pipefail

from_file() {
  local file="$1_FILE"
  if [ -n "${!file:-}" ]; then export "$1=$(<"${!file}")"; fi
}

as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }

set_up() {
  local authentication="${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}"
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$authentication" != trust ]; then
    echo "Error: POSTGRES_PASSWORD is not set." >&2
    exit 1
  fi
  local user="${POSTGRES_USER:-postgres}"
  local database="${POSTGRES_DB:-$user}"
  local arguments=()
  read -r -a arguments <<<"${POSTGRES_INITDB_ARGS:-}"
  local secret
  secret="$(mktemp)"
  printf '%s\n' "${POSTGRES_PASSWORD:-}" >"$secret"
  chown postgres "$secret"
  as_postgres initdb --username="$user" --pwfile="$secret" "${arguments[@]}"
  rm "$secret"
  printf '\nhost all all all %s\n' "$authentication" >>"$PGDATA/pg_hba.conf"
  # With the server's own options, but on its socket only, so that clients cannot connect over the network before the
  # set-up is complete.
  set -- "${@:2}" -c listen_addresses=
  as_postgres pg_ctl --pgdata="$PGDATA" --options="$(printf '%q ' "$@")" --wait start
  local client=(psql --no-psqlrc --set=ON_ERROR_STOP=1 --username="$user" --no-password)
  if [ "$database" != postgres ]; then
    as_postgres "${client[@]}" --dbname=postgres --set=name="$database" <<<'CREATE DATABASE :"name";'
  fi
  local file
  for file in /docker-entrypoint-initdb.d/*; do
    case "$file" in
    *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
    *.sql) as_postgres "${client[@]}" --dbname="$database" <"$file" ;;
    *.sql.gz) gunzip --stdout "$file" | as_postgres "${client[@]}" --dbname="$database" ;;
    esac
  done
  as_postgres pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop
  echo "PostgreSQL init process complete; ready for start up."
}

case "${1:-}" in -*) set -- postgres "$@" ;; esac
if [ "${1:-}" != postgres ]; then exec "$@"; fi
mkdir -p "$PGDATA" /var/run/postgresql
chmod 0700 "$PGDATA"
chown -R postgres "$PGDATA"
chown postgres /var/run/postgresql
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  for name in POSTGRES_PASSWORD POSTGRES_USER POSTGRES_DB POSTGRES_INITDB_ARGS; do from_file "$name"; done
  set_up "$@"
fi
unset POSTGRES_PASSWORD
exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
