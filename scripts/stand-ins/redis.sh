#!/bin/sh
# The contract of the official redis image: options or a configuration file are passed to redis-server, which never runs as root.
set -e
case "$1" in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  find . ! -user redis -exec chown redis {} +
  exec setpriv --reuid=redis --regid=redis --init-groups -- "$0" "$@"
fi
if [ "$(umask)" = 0022 ]; then umask 0077; fi
exec "$@"
