import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions as workerOptionsOf } from "wrangler";
import { bundleWorker } from "../scripts/lib/bundle.ts";
import { embeddedBindings, embeddedDatabase } from "../scripts/lib/embedded-database.ts";
import { migrate, type Database } from "../scripts/lib/migrate.ts";
import { projectRoot } from "../scripts/lib/project-root.ts";
import { freePort } from "../scripts/lib/state.ts";
import { smallHeap, smallMalloc } from "../scripts/lib/supervisor.ts";

type Workerd = {
  miniflare: Miniflare;
  db: Database;
  port: number;
  /** Of the baseline, and of both behind Miniflare's router, which tells them apart by name. */
  barePort: number;
  routerPort: number;
  siteUrl: string;
  secretKey: string;
  setupToken: string;
  folder: string;
  /** What workerd has taken until now. */
  usage: () => { processorMs: number; pssMb: number };
  dispose(): Promise<void>;
};

/** `disk` as `npm start` ships; `memory` in order to measure the code and not this machine's disk. */
export type Storage = "disk" | "memory";

/** Runs the Worker of `npm start` in its own workerd, with a socket of its own as there, and the baseline at another. */
export async function startWorkerd(
  settings: Record<string, string> = {},
  storage: Storage = "memory",
): Promise<Workerd> {
  const inMemory = storage === "memory" && existsSync("/dev/shm");
  const folder = mkdtempSync(join(inMemory ? "/dev/shm" : tmpdir(), "berth-bench-"));
  const [secretKey, setupToken] = [randomBytes(32), randomBytes(32)].map((key) => key.toString("base64url"));
  const [ours, bare] = [join(folder, "ours.js"), join(folder, "bare.js")];
  await bundleWorker(ours);
  await build({
    entryPoints: [join(projectRoot, "bench", "baseline-worker.ts")],
    outfile: bare,
    bundle: true,
    format: "esm",
    target: "es2024",
    external: ["cloudflare:*"],
    logLevel: "error",
  });
  Object.assign(process.env, smallMalloc, smallHeap);
  const { workerOptions } = workerOptionsOf(join(projectRoot, "wrangler.toml"));
  const moduleOf = (path: string) => [{ type: "ESModule", path, contents: readFileSync(path) }];
  const [port, barePort, routerPort] = [await freePort(), await freePort(), await freePort()];
  const siteUrl = `http://127.0.0.1:${port}`;
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      port: routerPort,
      telemetry: { enabled: false },
      resourcePersistencePath: join(folder, "state"),
      workers: [
        {
          ...(workerOptions as object),
          name: "berth",
          modules: moduleOf(ours),
          modulesRoot: folder,
          ...embeddedBindings(workerOptions),
          // As in scripts/control-plane.ts: no router before every request.
          assets: undefined,
          bindings: {
            ...(workerOptions.bindings as Record<string, string>),
            SITE_URL: siteUrl,
            WEBHOOK_HOST: siteUrl,
            SECRET_KEY: secretKey,
            SETUP_TOKEN: setupToken,
            ...settings,
          },
          routes: ["berth.test/*"],
          unsafeDirectSockets: [{ host: "127.0.0.1", port }],
        },
        {
          ...(workerOptions as object),
          name: "bare",
          assets: undefined,
          modules: moduleOf(bare),
          modulesRoot: folder,
          bindings: {},
          durableObjects: { BARE: { className: "Bare", useSQLite: true } },
          routes: ["bare.test/*"],
          unsafeDirectSockets: [{ host: "127.0.0.1", port: barePort }],
        },
      ],
    } as unknown as Parameters<typeof convertV4MiniflareOptions>[0]),
  );
  await miniflare.ready;
  const db = embeddedDatabase(miniflare, "berth");
  await migrate(db);
  return {
    miniflare,
    db,
    port,
    barePort,
    routerPort,
    siteUrl,
    secretKey: secretKey ?? "",
    setupToken: setupToken ?? "",
    folder,
    usage: usageOfWorkerd,
    async dispose() {
      await miniflare.dispose();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** workerd is the largest child of this process. */
function usageOfWorkerd(): { processorMs: number; pssMb: number } {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ");
  const all = children.map((id) => {
    // proc_pid_stat(5): times are in ticks of 10 ms; the second field, the name, may contain spaces.
    const fields = readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    const memory = readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
    return {
      processorMs: 10 * (Number(fields[11]) + Number(fields[12])),
      pssMb: Math.round(Number(/^Pss:\s+(\d+)/m.exec(memory)?.[1]) / 1024),
    };
  });
  return (
    all.toSorted((a, b) => b.pssMb - a.pssMb)[0] ?? {
      processorMs: Number.NaN,
      pssMb: Number.NaN,
    }
  );
}
