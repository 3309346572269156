#!/bin/sh
# Installs berth, the command line program of @SITE_URL@, for the person who runs this: as one file, without root.
set -eu

fail() {
  echo "berth: $1" >&2
  exit 1
}

command -v node >/dev/null || fail "Node.js 20.13 or newer is needed: https://nodejs.org"
node -e '
  const [major, minor] = process.versions.node.split(".").map(Number);
  process.exit(major > 20 || (major === 20 && minor >= 13) ? 0 : 1);
' || fail "Node.js 20.13 or newer is needed; this is $(node --version)"

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

# Where man looks for what is in this folder; the program works without it.
case "$folder" in
  */bin)
    pages=${folder%/bin}/share/man/man1
    { mkdir -p "$pages" && curl -fsSL '@SITE_URL@/install/berth.1' -o "$pages/berth.1"; } ||
      echo "berth: its man page could not be installed" >&2
    ;;
esac

version=$("$folder/berth" --version) || fail "$folder/berth does not start: see the message above"
echo "Installed $folder/berth $version"
case ":$PATH:" in
  *":$folder:"*) ;;
  *) echo "Add $folder to your PATH." ;;
esac
echo "Sign in with: berth login @SITE_URL@"
