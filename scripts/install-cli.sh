#!/bin/sh
# Installs berth, the command line program of @SITE_URL@, for the person who runs this: as one file, without root.
set -eu

fail() {
  echo "berth: $1" >&2
  exit 1
}

command -v node >/dev/null || fail "Node.js 20 or newer is needed: https://nodejs.org"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
  fail "Node.js 20 or newer is needed; this is $(node --version)"

folder=${BERTH_INSTALL_DIR:-$HOME/.local/bin}
mkdir -p "$folder"
next=$(mktemp "$folder/.berth.XXXXXX")
trap 'rm -f "$next"' EXIT
curl -fsSL '@SITE_URL@/install/berth.mjs' -o "$next"
node -e '
  const hash = require("node:crypto").createHash("sha256").update(require("node:fs").readFileSync(process.argv[1])).digest("hex");
  process.exit(hash === process.argv[2] ? 0 : 1);
' "$next" '@CLI_SHA256@' || fail "the download is damaged; run this again"
chmod 755 "$next"
# The name ends in .mjs because Node tells modules by it; the command is a link to it.
mv -f "$next" "$folder/berth.mjs"
ln -sf berth.mjs "$folder/berth"

echo "Installed $folder/berth $("$folder/berth" --version)"
case ":$PATH:" in
  *":$folder:"*) ;;
  *) echo "Add $folder to your PATH." ;;
esac
echo "Sign in with: berth login @SITE_URL@"
