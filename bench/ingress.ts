import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createEngine } from "../agent/docker/client.ts";
import { readUsage } from "../agent/docker/usage.ts";
import { accessLogVolume } from "../agent/ingress/access-log.ts";
import { ingressContainer, startIngress } from "../agent/ingress/container.ts";
import { openRoutes } from "../agent/ingress/routes.ts";
import { ensureBaseImages } from "../scripts/lib/base-images.ts";
import { succeeds } from "../scripts/lib/command.ts";
import { installPackages } from "../scripts/lib/docker-engine.ts";
import { freePort } from "../scripts/lib/state.ts";
import { median } from "./median.ts";

/**
 * The ingress as it ships beside the same Caddy with a plain static upstream in the default environment, and the app asked directly:
 * a page of 1 kB with a browser's headers. Without the access log, and to a site with rules, too. All take turns. Then long bodies, and
 * one site beside another that is asked as fast as it answers.
 */
const seconds = Number(process.env["BENCH_SECONDS"] ?? 3);
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 9);
const connections = Number(process.env["BENCH_CONNECTIONS"] ?? 16);
const bodyMegabytes = 200;
const [host, hostWithRules, calmHost] = ["bench.localhost", "rules.localhost", "calm.localhost"];
const browser = [
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  "Accept-Encoding: gzip, deflate, br, zstd",
  "Accept-Language: en-US,en;q=0.9",
  "Referer: https://search.example/find",
  "Sec-Fetch-Dest: document",
  "Sec-Fetch-Mode: navigate",
  "Sec-Fetch-Site: cross-site",
  "Upgrade-Insecure-Requests: 1",
  "Cookie: session=0123456789abcdef0123456789abcdef",
];

if (!(await succeeds("sh", ["-c", "command -v wrk"]))) await installPackages(["wrk"]);

await ensureBaseImages();
const engine = createEngine({ socketPath: "/var/run/docker.sock" });
const folder = mkdtempSync(join(tmpdir(), "berth-bench-"));
const routesFile = join(folder, "ingress", "routes.json");
const [responderPort, statusPort, appPort] = [await freePort(), await freePort(), await freePort()];
const responder = spawn(
  process.execPath,
  [
    join(import.meta.dirname, "../agent/ingress/responder.ts"),
    routesFile,
    String(responderPort),
    String(statusPort),
  ],
  { stdio: "ignore" },
);
const routes = openRoutes(routesFile, statusPort);
const app = spawn(
  process.execPath,
  [
    "-e",
    `const page = "x".repeat(1000), chunk = Buffer.alloc(65536), bytes = ${bodyMegabytes} * 1e6;
    require("node:http").createServer((request, response) => {
      if (request.url === "/up") return request.resume().on("end", () => response.end());
      if (request.url !== "/down") return response.end(page);
      response.setHeader("Content-Length", bytes);
      let left = bytes;
      const more = () => {
        while (left > 0) {
          const part = chunk.subarray(0, Math.min(left, chunk.length));
          left -= part.length;
          if (!response.write(part)) return response.once("drain", more);
        }
        response.end();
      };
      more();
    }).listen(${appPort}, "127.0.0.1")`,
  ],
  { stdio: "ignore" },
);

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    http
      .get({ host: "127.0.0.1", port, headers: { Host: host }, agent: false }, (response) =>
        response.resume().on("end", () => resolve(response.statusCode === 200)),
      )
      .on("error", () => resolve(false));
  });

type Config = {
  apps: { http: { servers: Record<string, { logs?: object; routes: { handle: object[] }[] }> } };
};

function withoutLog(config: Config): object {
  for (const server of Object.values(config.apps.http.servers)) {
    delete server.logs;
    for (const route of server.routes)
      route.handle = route.handle.filter((one) => !("key" in one || "seen" in one));
  }
  return config;
}

/** What somebody writes who knows the one container that is to be served. */
const staticConfig = (port: number) => ({
  apps: {
    http: {
      servers: {
        one: {
          listen: [`127.0.0.1:${port}`],
          automatic_https: { disable: true },
          routes: [{ handle: [{ handler: "reverse_proxy", upstreams: [{ dial: `127.0.0.1:${appPort}` }] }] }],
        },
      },
    },
  },
  admin: { disabled: true, config: { persist: false } },
});

const containers: { id: string; agentId: string }[] = [];
type Place = { port: number; agentId?: string; processorMs: () => number };

type Ingress = "shipped" | "without log" | "static";

function environmentOf(kind: Ingress, shipped: readonly string[], port: number): string[] {
  if (kind === "shipped") return [...shipped];
  const name = "BERTH_CADDY_CONFIG";
  const isConfig = (one: string) => one.startsWith(name);
  const text = shipped
    .filter(isConfig)
    .map((piece) => piece.slice(piece.indexOf("=") + 1))
    .join("");
  const config = kind === "static" ? staticConfig(port) : withoutLog(JSON.parse(text) as Config);
  const others = shipped.filter((one) => !isConfig(one) && !(kind === "static" && one.startsWith("GO")));
  return [...others, `${name}=${JSON.stringify(config)}`];
}

async function start(kind: Ingress): Promise<Place> {
  const agentId = `bench${randomBytes(6).toString("hex")}`;
  const port = await freePort();
  const { spec } = ingressContainer(agentId, {
    address: "127.0.0.1",
    port,
    responderPort,
    statusPort,
    tls: null,
  });
  const id = await startIngress(engine, { ...spec, Env: environmentOf(kind, spec.Env ?? [], port) });
  containers.push({ id, agentId });
  while (!(await answers(port))) await delay(50);
  const { pid = 0 } = (await engine.inspectContainer(id)) ?? {};
  return { port, agentId, processorMs: () => (readUsage(id, pid)?.cpuNanoseconds ?? 0) / 1e6 };
}

/** In ticks of 10 ms (proc_pid_stat(5)); the second field, the name, may contain spaces. */
function processorMs(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

const msIn = (text: string | undefined): number =>
  Number.parseFloat(text ?? "") * (text?.endsWith("us") ? 0.001 : text?.endsWith("ms") ? 1 : 1000);

type Figures = Record<
  "perSecond" | "ingressUs" | "agentUs" | "responderUs" | "toolUs" | "p50Ms" | "p99Ms",
  number
>;

/** Processor time is per request. */
async function run({ port, processorMs: ofIngress }: Place, hostname = host): Promise<Figures> {
  const before = {
    ingress: ofIngress(),
    responder: processorMs(responder.pid),
    agent: processorMs(reader?.pid),
  };
  const wrk = spawn(
    "sh",
    ["-c", '"$@"; code=$?; times; exit $code', "sh"].concat(
      ["wrk", "-t1", `-c${connections}`, `-d${seconds}s`, "--latency"],
      [`Host: ${hostname}`, ...browser].flatMap((one) => ["-H", one]),
      [`http://127.0.0.1:${port}/page?n=1&token=a`],
    ),
  );
  let output = "";
  for await (const chunk of wrk.stdout.setEncoding("utf8")) output += String(chunk);
  if (/Non-2xx|Socket errors/.test(output) || !output.includes("Requests/sec")) throw new Error(output);
  const count = Number(/(\d+) requests in/.exec(output)?.[1]);
  // What is left to read of this run.
  await delay(1500);
  const toolSeconds = [...(output.trim().split("\n").at(-1) ?? "").matchAll(/(\d+)m([\d.]+)s/g)]
    .map(([, minutes, rest]) => 60 * Number(minutes) + Number(rest))
    .reduce((sum, one) => sum + one, 0);
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
    ingressUs: ((ofIngress() - before.ingress) * 1000) / count,
    agentUs: ((processorMs(reader?.pid) - before.agent) * 1000) / count,
    responderUs: ((processorMs(responder.pid) - before.responder) * 1000) / count,
    toolUs: (toolSeconds * 1e6) / count,
    p50Ms: msIn(/^ +50% +(\S+)/m.exec(output)?.[1]),
    p99Ms: msIn(/^ +99% +(\S+)/m.exec(output)?.[1]),
  };
}

/** How long a body takes on its way down or up. */
async function transfer(port: number, path: "/down" | "/up"): Promise<number> {
  const began = performance.now();
  const request = http.request({
    host: "127.0.0.1",
    port,
    path,
    agent: false,
    method: path === "/up" ? "POST" : "GET",
    headers: { Host: host, ...(path === "/up" && { "Content-Length": bodyMegabytes * 1e6 }) },
  });
  const answered = once(request, "response") as Promise<[http.IncomingMessage]>;
  if (path === "/up") {
    const chunk = Buffer.alloc(100_000);
    for (let sent = 0; sent < bodyMegabytes * 10; sent++)
      if (!request.write(chunk)) await once(request, "drain");
  }
  request.end();
  const [response] = await answered;
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`);
  await once(response.resume(), "end");
  return performance.now() - began;
}

const quantile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;

/** Fifty requests a second to a site that answers at once. */
async function waits(port: number): Promise<number[]> {
  const agent = new http.Agent({ keepAlive: true });
  const all: Promise<number>[] = [];
  for (let asked = 0; asked < 50 * seconds; asked++) {
    const began = performance.now();
    all.push(
      new Promise((resolve, reject) => {
        http
          .get({ host: "127.0.0.1", port, agent, headers: { Host: calmHost } }, (response) =>
            response.resume().on("end", () => resolve(performance.now() - began)),
          )
          .on("error", reject);
      }),
    );
    await delay(20);
  }
  const found = await Promise.all(all);
  agent.destroy();
  return found;
}

const target = { containerId: "app", address: "127.0.0.1", port: appPort };
await routes.route("site_1", [host], [target]);
await routes.route("site_2", [hostWithRules], [target]);
await routes.route("site_3", [calmHost], [target]);
await routes.rule("site_2", {
  redirects: [{ from: "/old", to: "/new" }],
  headers: { "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff" },
});
/** What the agent does with the log, in a process of its own as there, so that it holds up none of what is measured here. */
let reader: ChildProcess | undefined;

try {
  const [shipped, silent, plain] = [
    await start("shipped"),
    await start("without log"),
    await start("static"),
  ];
  const direct: Place = { port: appPort, processorMs: () => 0 };
  reader = spawn(
    process.execPath,
    [
      join(import.meta.dirname, "access-log-reader.ts"),
      routesFile,
      String(statusPort),
      shipped.agentId ?? "",
      join(folder, "requests.db"),
    ],
    { stdio: "inherit" },
  );
  const ways: [name: string, place: Place, hostname?: string][] = [
    ["the app directly", direct],
    ["static", plain],
    ["as it ships", shipped],
    ["without the log", silent],
    ["with rules", shipped, hostWithRules],
  ];
  const figures = ways.map((): Figures[] => []);
  for (const [, place, hostname] of ways) await run(place, hostname);
  for (let round = 0; round < rounds; round++) {
    const order = [...ways.keys()];
    // What comes first alternates, as the machine warms up and cools down.
    for (const way of round % 2 === 0 ? order : order.toReversed()) {
      const [, place, hostname] = ways[way] ?? ["", direct];
      figures[way]?.push(await run(place, hostname));
    }
  }
  const load = () => (loadavg()[0] ?? Number.NaN).toFixed(1);
  console.log(`Medians of ${rounds} × ${seconds} s, ${connections} connections, load ${load()} at the end\n`);
  const columns = [
    ["requests/s", "perSecond"],
    ["ingress, µs", "ingressUs"],
    ["agent, µs", "agentUs"],
    ["responder, µs", "responderUs"],
    ["load tool, µs", "toolUs"],
    ["p50, ms", "p50Ms"],
    ["p99, ms", "p99Ms"],
  ] as const;
  console.log(`| | ${columns.map(([name]) => name).join(" | ")} |\n|---${"|---".repeat(columns.length)}|`);
  for (const [index, [name]] of ways.entries())
    console.log(
      `| ${name} | ${columns.map(([, key]) => (median((figures[index] ?? []).map((one) => one[key])) ?? 0).toFixed(key.endsWith("Ms") ? 2 : 1)).join(" | ")} |`,
    );
  /** Of runs that were made one soon after the other. */
  const ratio = (of: number, to: number, key: keyof Figures) =>
    median((figures[of] ?? []).map((one, round) => one[key] / (figures[to]?.[round]?.[key] ?? Number.NaN)));
  console.log("\n| by pairs | requests/s | ingress, µs | p99 |\n|---|---|---|---|");
  for (const [name, of, to] of [
    ["as it ships / static", 2, 1],
    ["as it ships / without the log", 2, 3],
    ["with rules / as it ships", 4, 2],
  ] as const)
    console.log(
      `| ${name} | ${(["perSecond", "ingressUs", "p99Ms"] as const).map((key) => ratio(of, to, key).toFixed(3)).join(" | ")} |`,
    );

  console.log(
    `\n| ${bodyMegabytes} MB | directly, ms | static, ms | as it ships, ms | by pairs, to directly | to static |\n|---|---|---|---|---|---|`,
  );
  for (const path of ["/down", "/up"] as const) {
    const took: [direct: number, plain: number, shipped: number][] = [];
    for (let round = 0; round < 5; round++)
      took.push([
        await transfer(appPort, path),
        await transfer(plain.port, path),
        await transfer(shipped.port, path),
      ]);
    const of = (index: 0 | 1 | 2) => median(took.map((one) => one[index])).toFixed(0);
    const ratios = ([0, 1] as const).map((to) => median(took.map((one) => one[2] / one[to])).toFixed(2));
    console.log(`| ${[path, of(0), of(1), of(2), ...ratios].join(" | ")} |`);
  }

  console.log(
    "\n| a site beside a busy one | p50 quiet, ms | p99 quiet, ms | p50 beside, ms | p99 beside, ms |\n|---|---|---|---|---|",
  );
  const asked = [
    { name: "static", place: plain, quiet: [] as number[], beside: [] as number[] },
    { name: "as it ships", place: shipped, quiet: [] as number[], beside: [] as number[] },
  ];
  for (let turn = 0; turn < 4; turn++)
    for (const { place, quiet, beside } of turn % 2 === 0 ? asked : asked.toReversed()) {
      quiet.push(...(await waits(place.port)));
      const [found] = await Promise.all([waits(place.port), run(place)]);
      beside.push(...found);
    }
  for (const { name, quiet, beside } of asked)
    console.log(
      `| ${name} | ${[quiet, beside].flatMap((all) => [quantile(all, 0.5).toFixed(1), quantile(all, 0.99).toFixed(1)]).join(" | ")} |`,
    );
} finally {
  reader?.kill();
  app.kill();
  for (const { id, agentId } of containers) {
    await engine.removeContainer(id);
    await engine.removeVolume(accessLogVolume(agentId));
  }
  responder.kill();
  rmSync(folder, { recursive: true });
}
