import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./lib/project-root.ts";
import { embeddedBindings, embeddedDatabase } from "./lib/embedded-database.ts";
import { migrate } from "./lib/migrate.ts";
import { wrongSetUp } from "./lib/supervisor.ts";

/**
 * Runs the Worker in workerd on this machine, with the bindings of wrangler.toml. Usage: control-plane.ts <bundle>
 * <public files> <state directory> <port>; variables come as JSON in BERTH_BINDINGS and, read at each start, in
 * variables.json of the state directory.
 */
const [bundle = "", publicFiles = "", stateDirectory = "", port = ""] = process.argv.slice(2);
const bindings = JSON.parse(process.env["BERTH_BINDINGS"] ?? "{}") as Record<string, string>;
const ownVariables = join(stateDirectory, "variables.json");
if (existsSync(ownVariables)) Object.assign(bindings, JSON.parse(readFileSync(ownVariables, "utf8")));
// In a process of its own: wrangler takes 150 MB, which this one would keep.
const workerOptions = JSON.parse(
  execFileSync(process.execPath, [join(projectRoot, "scripts", "worker-options.ts")], { encoding: "utf8" }),
) as Record<string, object>;

// Wrangler describes Workers in Miniflare 4's format; Miniflare converts it, and restarts a killed workerd.
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
    // The Worker's own socket: the router that Miniflare puts before it takes longer than most requests. It stays, at a
    // port of its own, for what Node asks of the Worker.
    unsafeDirectSockets: [{ host: "127.0.0.1", port: Number(port) }],
    host: "127.0.0.1",
    port: 0,
    resourcePersistencePath: join(stateDirectory, "state"),
    telemetry: { enabled: false },
  } as unknown as Parameters<typeof convertV4MiniflareOptions>[0]),
);

/** Names of this machine alone, which are served without TLS, are resolved by browsers but not everywhere by the system. */
function ingressOf({ protocol, port: ingressPort }: URL): object {
  if (protocol !== "http:") return {};
  return { INGRESS: { external: { address: `127.0.0.1:${ingressPort || 80}`, http: {} } } };
}

await migrate(embeddedDatabase(miniflare), (name) => process.stdout.write(`applied ${name}\n`)).catch(
  (error: Error) => {
    console.error(error.message);
    process.exit(wrongSetUp);
  },
);
await miniflare.ready;
process.stdout.write("listening\n");

/** Fetched each time: a reference from before a crash of workerd throws when used. */
async function tick(): Promise<void> {
  const worker = (await miniflare.getWorker()) as unknown as { scheduled(options: object): Promise<unknown> };
  await worker.scheduled({ cron: "* * * * *" });
}

/** Tests do not wait a minute for each step. */
const tickMs = Number(process.env["BERTH_TICK_MS"] ?? 60_000);

/** Just after each full minute, when schedules are due. */
function keepTicking(): void {
  setTimeout(
    () => {
      tick().catch((error: unknown) => console.error(error));
      keepTicking();
    },
    tickMs + 50 - (Date.now() % tickMs),
  ).unref();
}
keepTicking();

async function stop(): Promise<void> {
  await miniflare.dispose();
  process.exit(0);
}
process.once("SIGTERM", () => void stop());
process.once("SIGINT", () => void stop());
process.stdin.on("end", () => void stop()).resume();
