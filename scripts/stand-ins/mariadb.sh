#!/bin/bash
# The contract of the official mariadb image: MARIADB_ROOT_PASSWORD (or MARIADB_RANDOM_ROOT_PASSWORD,
# MARIADB_ALLOW_EMPTY_ROOT_PASSWORD), MARIADB_ROOT_HOST, MARIADB_DATABASE, MARIADB_USER, MARIADB_PASSWORD (also as *_FILE and
# with MYSQL_ in front), /docker-entrypoint-initdb.d.
set -euo pipefail

data=/var/lib/mysql
socket=/run/mysqld/mysqld.sock

# If both are set, the newer name takes precedence.
setting() {
  local value="MARIADB_$1" old="MYSQL_$1" file="MARIADB_$1_FILE"
  if [ -n "${!file:-}" ]; then cat "${!file}"; else printf '%s' "${!value:-${!old:-}}"; fi
}

quoted() { printf "'%s'" "$(printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e "s/'/''/g")"; }

set_up() {
  local password host database user
  password="$(setting ROOT_PASSWORD)"
  host="$(setting ROOT_HOST)"
  database="$(setting DATABASE)"
  user="$(setting USER)"
  if [ -n "$(setting RANDOM_ROOT_PASSWORD)" ]; then
    password="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
    echo "GENERATED ROOT PASSWORD: $password"
  elif [ -z "$password" ] && [ -z "$(setting ALLOW_EMPTY_ROOT_PASSWORD)" ]; then
    echo "Error: neither MARIADB_ROOT_PASSWORD nor another choice for root is set." >&2
    exit 1
  fi
  # With the server's own options, except those that it would split.
  local option options=()
  for option in "${@:2}"; do if [[ ! "$option" =~ [[:space:]] ]]; then options+=("$option"); fi; done
  mariadb-install-db --user=mysql --datadir="$data" --rpm --auth-root-authentication-method=normal "${options[@]}" \
    --skip-test-db --default-time-zone=SYSTEM --enforce-storage-engine= --skip-log-bin --expire-logs-days=0 >/dev/null
  # On its socket only, so that clients cannot connect over the network before the set-up is complete.
  "$@" --user=mysql --skip-networking --default-time-zone=SYSTEM --socket="$socket" --expire-logs-days=0 \
    --skip-ssl &
  local server=$! tries
  for tries in $(seq 300); do
    if mariadb-admin --user=root --skip-ssl --socket="$socket" ping >/dev/null 2>&1; then break; fi
    [ -d "/proc/$server" ] || exit 1
    sleep 0.1
  done
  local client=(mariadb --user=root --skip-ssl --socket="$socket")
  {
    if [ -n "$database" ]; then echo "CREATE DATABASE IF NOT EXISTS \`${database//\`/\`\`}\`;"; fi
    if [ -n "$user" ]; then
      echo "CREATE USER $(quoted "$user")@'%' IDENTIFIED BY $(quoted "$(setting PASSWORD)");"
      if [ -n "$database" ]; then echo "GRANT ALL ON \`${database//_/\\_}\`.* TO $(quoted "$user")@'%';"; fi
    fi
    if [ "${host:-%}" != localhost ]; then
      echo "CREATE USER 'root'@$(quoted "${host:-%}") IDENTIFIED BY $(quoted "$password");"
      echo "GRANT ALL ON *.* TO 'root'@$(quoted "${host:-%}") WITH GRANT OPTION;"
    fi
    echo "DROP USER IF EXISTS ''@'localhost', ''@'$(hostname)', 'root'@'$(hostname)', 'root'@'127.0.0.1', 'root'@'::1';"
    echo "ALTER USER 'root'@'localhost' IDENTIFIED BY $(quoted "$password");"
  } | "${client[@]}"
  export MYSQL_PWD="$password"
  local file
  for file in /docker-entrypoint-initdb.d/*; do
    case "$file" in
    *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
    *.sql) "${client[@]}" ${database:+"$database"} <"$file" ;;
    *.sql.gz) gunzip --stdout "$file" | "${client[@]}" ${database:+"$database"} ;;
    esac
  done
  mariadb-admin --user=root --skip-ssl --socket="$socket" shutdown
  wait "$server"
  unset MYSQL_PWD
  echo "MariaDB init process done. Ready for start up."
}

case "${1:-}" in -*) set -- mariadbd "$@" ;; esac
if [ "${1:-}" != mariadbd ] && [ "${1:-}" != mysqld ]; then exec "$@"; fi
mkdir -p "$data" /run/mysqld
chown -R mysql "$data" /run/mysqld
if ! errors="$("$@" --verbose --help 2>&1 >/dev/null)"; then
  echo "mariadbd failed while attempting to check config: $errors" >&2
  exit 1
fi
if [ ! -d "$data/mysql" ]; then set_up "$@"; fi
exec "$@" --user=mysql --socket="$socket"
