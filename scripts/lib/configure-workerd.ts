import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { embeddedBindings, embeddedDatabase } from "./embedded-database.ts";
import { migrate } from "./migrate.ts";
import { projectRoot } from "./project-root.ts";
import { smallHeap } from "./supervisor.ts";

type Options = {
  bundle: string;
  publicFiles: string;
  /** Where workerd keeps everything. */
  state: string;
  bindings: Record<string, string>;
  /** The program, and the file that receives its configuration, with every secret. */
  workerd: string;
  configuration: string;
  /** For files of Miniflare's, some of which the configuration names. */
  temporary: string;
};

/** Stands between Miniflare and workerd, and keeps what workerd is told on its standard input. */
const recorder = `#!/bin/sh
cat > "$BERTH_CONFIGURATION"
exec "$BERTH_WORKERD" "$@" < "$BERTH_CONFIGURATION"
`;

/**
 * Writes workerd's configuration, with the bindings of wrangler.toml, and applies the migrations. Both are Miniflare's
 * work, which starts workerd for it, at a port that nobody knows.
 * @throws if the migrations do not fit the database
 */
export async function configureWorkerd(options: Options): Promise<void> {
  const { bundle, publicFiles, state, bindings, workerd, configuration, temporary } = options;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary);
  writeFileSync(configuration, "", { mode: 0o600 });
  const recorderFile = join(temporary, "record");
  writeFileSync(recorderFile, recorder, { mode: 0o700 });
  Object.assign(process.env, {
    TMPDIR: temporary,
    MINIFLARE_WORKERD_PATH: recorderFile,
    BERTH_WORKERD: workerd,
    BERTH_CONFIGURATION: configuration,
    ...smallHeap,
  });
  // In a process of its own: wrangler takes 150 MB.
  const workerOptions = JSON.parse(
    execFileSync(process.execPath, [join(projectRoot, "scripts", "worker-options.ts")], { encoding: "utf8" }),
  ) as Record<string, object>;
  // Wrangler describes Workers in Miniflare 4's format; Miniflare converts it.
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...workerOptions,
      name: "berth",
      modules: [{ type: "ESModule", path: bundle, contents: readFileSync(bundle) }],
      modulesRoot: join(bundle, ".."),
      // Serve the files directly, without the router that Miniflare would put before every request.
      assets: undefined,
      serviceBindings: {
        ...workerOptions["serviceBindings"],
        ASSETS: { disk: { path: publicFiles, writable: false } },
        ...ingressOf(new URL(bindings["SITES_ORIGIN"] ?? "")),
      },
      bindings: { ...workerOptions["bindings"], ...bindings },
      ...embeddedBindings(workerOptions),
      // The Worker's own socket: the router that Miniflare puts before it takes longer than most requests.
      unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      host: "127.0.0.1",
      port: 0,
      resourcePersistencePath: state,
      telemetry: { enabled: false },
    } as unknown as Parameters<typeof convertV4MiniflareOptions>[0]),
  );
  try {
    await migrate(embeddedDatabase(miniflare), (name) => process.stdout.write(`applied ${name}\n`));
  } finally {
    const folders = globSync("**/", { cwd: temporary });
    await miniflare.dispose();
    for (const folder of folders) mkdirSync(join(temporary, folder), { recursive: true });
  }
}

/** Names of this machine alone, which are served without TLS, are resolved by browsers but not everywhere by the system. */
function ingressOf({ protocol, port }: URL): object {
  if (protocol !== "http:") return {};
  return { INGRESS: { external: { address: `127.0.0.1:${port || 80}`, http: {} } } };
}
