# npm start: installs what is missing, and becomes start.ts. No process stays beside it, and none that reads TypeScript,
# whose compiler takes 17 MB.
set -e
node scripts/packages.mjs
PATH="$PWD/node_modules/.bin:$PATH"
node --disable-warning=ExperimentalWarning scripts/bundle-start.ts
exec node --disable-warning=ExperimentalWarning --max-semi-space-size=1 --optimize-for-size --v8-pool-size=1 \
  node_modules/.cache/berth/start.mjs "$@"
