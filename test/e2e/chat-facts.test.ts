import { createServer } from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Backup } from "../../protocol/api/backups.ts";
import type { DatabaseCreated, DatabaseCredentials } from "../../protocol/api/databases.ts";
import type { SiteDiagnosis, SiteProbed } from "../../protocol/api/diagnosis.ts";
import type { DiskUse } from "../../protocol/api/disk.ts";
import type { Domain, DomainCertificate } from "../../protocol/api/domains.ts";
import type { KeyCreated } from "../../protocol/api/keys.ts";
import type { PackChanged, PackForOperator } from "../../protocol/api/packs.ts";
import type { RequestStats } from "../../protocol/api/requests.ts";
import type { SiteSample } from "../../protocol/api/running.ts";
import type { Site, SiteCloned } from "../../protocol/api/sites.ts";
import type { ToolName } from "../../protocol/api/tools.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { AcmeServer } from "../support/acme.ts";
import { answerFromZone, type Zone } from "../support/dns-zone.ts";
import { containersOf, docker, holdsItsTools, quiet, shows, startModel, use } from "./scripted-chat.ts";
import { startSecondHost, type SecondHost } from "./second-host.ts";
import {
  api,
  createSite,
  launch,
  local,
  pay,
  remove,
  Repository,
  request,
  settled,
  until,
} from "./service.ts";

/** Does what its address asks for. */
const server = `
const fs = require("node:fs");
let looks = 0;
require("node:http").createServer((q, s) => {
  const [, what, name] = q.url.split("/");
  if (what === "alive") looks++;
  if (what === "moved") return s.writeHead(302, { Location: "/alive" }).end();
  if (what === "fail") return s.writeHead(500).end();
  const answers = {
    env: () => process.env[name] ?? "unset",
    looks: () => String(looks),
    fill: () => (fs.writeFileSync("/data/filled", Buffer.alloc(Number(name) * 2 ** 20, 1)), "filled"),
    exit: () => process.exit(Number(name)),
  };
  s.end(answers[what]?.() ?? "here");
}).listen(process.env.PORT);`;
const Dockerfile = `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`;
const files = { Dockerfile, "server.js": server, ".env.example": "SHOP_NAME=\n" };

/** What resolvers answer for the customer's names. */
const zone: Zone = {};
const resolver = createServer((asked, answer) => {
  const { headers, body } = answerFromZone(zone, new URL(asked.url ?? "/", "http://127.0.0.1"));
  answer.writeHead(200, Object.fromEntries(headers));
  Readable.from(body ?? []).pipe(answer);
});

let takeModelAway: () => Promise<void>;
let repository: Repository;
let shop: Site;
let db: { id: string; name: string; connectionString: string };
/** When the backups of the volume are due. */
let backupDueAt: Date;

const on = <Input extends object>(input: Input) => ({ site: shop.name, ...input });
const visit = async (path = "/") => (await request(shop.url + path)).text;
const says = async (path: string, wanted: string) =>
  until(
    () => visit(path),
    (text) => text === wanted,
  );
/** What the engine says of the site's only container; "": it has none, or two while one replaces the other. */
function inspect(format: string): string {
  const [id, ...others] = containersOf(shop.id);
  if (id === undefined || others.length > 0) return "";
  try {
    return docker("inspect", "--format", format, id);
  } catch {
    return "";
  }
}
const ask = (statement: string): string =>
  docker(
    "exec",
    docker("ps", "--quiet", "--filter", `label=berth.database=${db.id}`),
    "psql",
    db.connectionString,
    "-qAt",
    "-c",
    statement,
  );

beforeAll(async () => {
  await ensureImages(["postgres:17"]);
  const port = await freePort();
  resolver.listen(port, "127.0.0.1");
  takeModelAway = await startModel({ DNS_ENDPOINTS: `http://127.0.0.1:${port}` });
  repository = new Repository(files);
  const name = `facts-${process.pid}`;
  const { body } = await api<DatabaseCreated>("POST", "/databases", { name, type: "postgresql" });
  await pay(body.invoiceToken);
  shop = await launch({ githubUrl: repository.address, volumes: [{ name: "files", mountPath: "/data" }] });
  expect([shop.status, shop.latestDeployment?.error]).toEqual(["RUNNING", null]);
  expect(await visit("/fill/20")).toBe("filled");
  const path = `/databases/${body.databaseId}`;
  await shows(path, '"status":"RUNNING"');
  const { connectionString } = (await api<DatabaseCredentials>("GET", `${path}/credentials`)).body;
  db = { id: body.databaseId, name, connectionString };
}, 15 * 60_000);
afterAll(async () => {
  await remove(shop.id);
  await api("DELETE", `/databases/${db.id}?skipFinalBackup=1`);
  await quiet();
  await takeModelAway();
  resolver.close();
});

type Row = [tool: ToolName, effect: string, test: () => Promise<void>];

const ofSites: Row[] = [
  [
    "set_backup_schedule",
    "the volume is backed up when its minute comes: the last row waits for it",
    async () => {
      backupDueAt = new Date(Date.now() + 2 * 60_000);
      const schedule = `${backupDueAt.getUTCMinutes()} ${backupDueAt.getUTCHours()} * * *`;
      const settings = { schedule };
      const { result } = await use("set_backup_schedule", on({ volume: "files", settings }), { asks: false });
      expect(result).toMatchObject({ name: "files", backups: { schedule } });
    },
  ],
  [
    "detect_framework",
    "tells how the repository is built, from its files as they are now",
    async () => {
      const { result } = await use("detect_framework", { githubUrl: repository.address });
      expect(result).toMatchObject({
        reachable: true,
        branch: "main",
        builder: "dockerfile",
        variables: ["SHOP_NAME"],
      });
      const commit = repository.commit({ ".env.example": "OTHER=\n" }, "Another variable");
      const { result: now } = await use("detect_framework", { githubUrl: repository.address });
      expect(now).toMatchObject({ commit, variables: ["OTHER"] });
    },
  ],
  [
    "clone_site",
    "the copy answers at an address of its own with the same variables, and without the secrets",
    async () => {
      const envVariables = [
        { key: "COLOUR", value: "blue" },
        { key: "TOKEN", value: "do-not-copy", encrypted: true },
      ];
      expect((await api("PATCH", `/sites/${shop.id}`, { envVariables })).status).toBe(200);
      const { result } = await use("clone_site", on({ name: `${shop.name}-copy` }));
      const { siteId, invoiceToken, secretsToSet } = result as SiteCloned;
      expect(secretsToSet).toEqual(["TOKEN"]);
      await pay(invoiceToken);
      const copy = await settled(siteId);
      expect(copy.url).not.toBe(shop.url);
      const variable = async (key: string) => (await request(`${copy.url}/env/${key}`)).text;
      expect([await variable("COLOUR"), await variable("TOKEN")]).toEqual(["blue", "unset"]);
      await remove(siteId);
    },
  ],
  [
    "probe_url",
    "requests the site as a visitor does, and follows its redirect",
    async () => {
      const { result } = await use("probe_url", on({ path: "/moved" }));
      const { requests, ...probed } = result as SiteProbed;
      expect(probed).toMatchObject({ reachable: true, status: 200, error: null });
      expect(requests).toMatchObject([
        { url: `${shop.url}/moved`, status: 302, location: "/alive" },
        { url: `${shop.url}/alive`, status: 200 },
      ]);
    },
  ],
  [
    "set_health_check",
    "the container is asked at this path from now on",
    async () => {
      const before = Number(await visit("/looks"));
      await use("set_health_check", on({ path: "/alive", check: { intervalSeconds: 10 } }));
      await until(
        () => visit("/looks"),
        (looks) => Number(looks) > before,
      );
      await quiet();
      const looks = Number(await visit("/looks"));
      await until(
        () => visit("/looks"),
        (now) => Number(now) > looks,
      );
    },
  ],
  [
    "set_lifecycle_policy",
    "a process that ends stays away, as diagnose_site and list_container_events say; by default it comes back",
    async () => {
      await use("set_lifecycle_policy", on({ policy: { restartPolicy: "never" } }));
      const policy = () => inspect("{{.HostConfig.RestartPolicy.Name}}");
      await until(policy, (told) => told === "no");
      await quiet();
      await visit("/exit/3");
      await until(
        () => containersOf(shop.id),
        ({ length }) => length === 0,
      );
      const diagnosis = (await use("diagnose_site", on({}))).result as SiteDiagnosis;
      expect(diagnosis).toMatchObject({
        healthy: false,
        summary: expect.stringMatching(/exit code 3|code 3/) as string,
      });
      await shows(`/sites/${shop.id}/events`, '"exit"');
      const { result: events } = await use("list_container_events", on({}));
      expect(JSON.stringify(events)).toMatch(/"kind":"exit"[^}]*\b3\b/);
      await use("start_site", on({}));
      await says("/", "here");
      await quiet();
      await use("set_lifecycle_policy", on({ policy: {} }));
      await until(policy, (told) => told === "unless-stopped");
      await quiet();
      await visit("/exit/4");
      await says("/", "here");
      const { result: back } = await use("diagnose_site", on({}));
      expect(back).toMatchObject({
        summary: expect.stringMatching(
          /^The app runs, and was restarted (once|\d+ times) after it exited\.$/,
        ) as string,
      });
    },
  ],
  [
    "get_request_stats",
    "counts the requests of visitors by how they were answered",
    async () => {
      for (let count = 0; count < 3; count++) await request(`${shop.url}/fail`);
      await shows(`/sites/${shop.id}/request-stats`, '"value":"/fail","requests":3');
      const { totals, top } = (await use("get_request_stats", on({}))).result as RequestStats;
      expect(totals.statuses["5xx"]).toBeGreaterThanOrEqual(3);
      expect(top.paths).toContainEqual({ value: "/fail", requests: 3 });
    },
  ],
  [
    "get_site_metrics",
    "shows what the container takes of memory",
    async () => {
      const measured = async () =>
        (await api<{ data: SiteSample[] }>("GET", `/sites/${shop.id}/metrics`)).body.data;
      // The minute in which a container began says little of it.
      await until(measured, (found) => (found.at(-1)?.memoryMb ?? 0) > 5);
      const samples = (await use("get_site_metrics", on({ minutes: 5 }))).result as SiteSample[];
      expect(samples.at(-1)?.memoryMb).toBeGreaterThan(5);
    },
  ],
  [
    "get_disk_usage",
    "shows what the app wrote into its volume, as list_volumes does",
    async () => {
      const measured = async () => (await api<DiskUse>("GET", `/sites/${shop.id}/disk`)).body.volumes;
      await until(measured, ([volume]) => (volume?.sizeMb ?? 0) >= 20);
      const { result } = await use("get_disk_usage", on({}));
      const { volumes, images } = result as DiskUse;
      expect(volumes).toMatchObject([{ name: "files" }]);
      expect(volumes[0]?.sizeMb).toBeGreaterThanOrEqual(20);
      expect(images[0]?.sizeMb).toBeGreaterThan(20);
      const listed = (await use("list_volumes", on({}))).result as {
        data: { name: string; sizeMb: number }[];
      };
      expect(listed.data).toMatchObject([{ name: "files", mountPath: "/data", mounted: true }]);
      expect(listed.data[0]?.sizeMb).toBeGreaterThanOrEqual(20);
    },
  ],
  [
    "change_pack",
    "the container has the larger pack's memory and processor once the invoice is paid, and not before",
    async () => {
      const { body: large } = await api<PackForOperator>("POST", "/packs", {
        kind: "site",
        name: `Large ${process.pid}`,
        amountCents: 90_000,
        memoryMb: 1024,
        cpuMilli: 1500,
        diskGb: 30,
      });
      const limits = () => inspect("{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}");
      const before = limits();
      const { result } = await use("change_pack", on({ packId: large.id }));
      const { invoiceToken } = result as PackChanged;
      await quiet();
      expect(limits()).toBe(before);
      await pay(invoiceToken ?? "");
      await until(limits, (now) => now === "1073741824 1500000000");
      await says("/", "here");
      await quiet();
      await api("PATCH", `/packs/${large.id}`, { active: false });
    },
  ],
  [
    "revoke_api_key",
    "the key opens nothing from then on, and others do",
    async () => {
      const { id, key = "" } = (await api<KeyCreated>("POST", "/keys", { name: "Laptop" })).body;
      const status = async (token: string) =>
        (await request(`${local.baseUrl}/account`, { headers: { Authorization: `Bearer ${token}` } })).status;
      await use(
        "revoke_api_key",
        { key: id },
        { unchanged: async () => expect(await status(key)).toBe(200) },
      );
      expect([await status(key), await status(local.apiKey)]).toEqual([401, 200]);
    },
  ],
];

const ofDatabases: Row[] = [
  [
    "get_database_logs",
    "shows what the server wrote about a statement that failed",
    async () => {
      expect(() => ask("SELECT 1 / 0 AS impossible")).toThrow();
      const { result } = await use("get_database_logs", { db: db.name, search: "division by zero" });
      expect(JSON.stringify(result)).toContain("division by zero");
    },
  ],
  [
    "list_slow_queries",
    "names the statement that took the most time",
    async () => {
      ask("SELECT pg_sleep(2) AS slowly");
      const { result } = await use("list_slow_queries", { db: db.name, limit: 3 });
      expect(JSON.stringify(result)).toContain("slowly");
    },
  ],
  [
    "get_database_metrics",
    "shows size and connections as the server tells them, and what its container takes",
    async () => {
      await shows(`/databases/${db.id}/metrics`, '"memoryMb"');
      const { result } = await use("get_database_metrics", { db: db.name, minutes: 5 });
      expect(result).toBeTypeOf("object");
      const told = result as { sizeMb: number; connections: { max: number }; minutes: SiteSample[] };
      expect(told.connections.max).toBe(
        Number(ask("SELECT rolconnlimit FROM pg_roles WHERE rolname = session_user")),
      );
      expect(told.sizeMb).toBeCloseTo(
        Number(ask("SELECT pg_database_size(current_database())")) / 2 ** 20,
        0,
      );
      expect(told.minutes.at(-1)?.memoryMb).toBeGreaterThan(1);
    },
  ],
  [
    "verify_backup",
    "the backup is restored beside once more, and holds the rows",
    async () => {
      ask("CREATE TABLE items AS SELECT n FROM generate_series(1, 40) n");
      const { id } = (await api<Backup>("POST", `/databases/${db.id}/backups`)).body;
      await shows(`/backups/${id}`, "VERIFIED");
      await quiet();
      const read = async () => (await api<Backup>("GET", `/backups/${id}`)).body;
      const { verifiedAt } = await read();
      await use("verify_backup", { backup: id });
      const again = await until(read, (now) => now.verifiedAt !== null && now.verifiedAt !== verifiedAt);
      expect(again).toMatchObject({ status: "VERIFIED", rows: 40 });
      await quiet();
    },
  ],
];

/** A host that serves HTTPS, by certificates of Let's Encrypt's own test server. */
let host: SecondHost;
let acme: AcmeServer;
let tlsPort: number;
let secure: { siteId: string; name: string; hostname: string };
const domain = `www.facts-${process.pid}.example.org`;

/** What a visitor of this name is answered over HTTPS, and by whose certificate; null: no certificate. */
const overTls = (hostname: string) =>
  new Promise<{ status: number; location: string; text: string; issuer: string; validTo: string } | null>(
    (resolve) => {
      https
        .get(
          {
            host: "127.0.0.1",
            port: tlsPort,
            servername: hostname,
            headers: { Host: hostname },
            rejectUnauthorized: false,
            agent: false,
          },
          (response) => {
            const { issuer, valid_to: validTo } = (response.socket as TLSSocket).getPeerCertificate();
            const { statusCode: status = 0, headers } = response;
            const location = headers.location ?? "";
            void textOf(response).then((text) =>
              resolve({
                status,
                location,
                text,
                issuer: String(issuer.CN),
                validTo: new Date(validTo).toISOString(),
              }),
            );
          },
        )
        .on("error", () => resolve(null));
    },
  );

const ofDomains: Row[] = [
  [
    "add_domain",
    "names the record that verify_domain then looks up, and is told what else is missing",
    async () => {
      const { result } = await use("add_domain", { site: secure.name, domain });
      const { record } = result as Domain;
      const unproved = await use("verify_domain", { site: secure.name, domain });
      expect(unproved.result).toMatchObject({ status: "PENDING_VERIFICATION" });
      zone[record.name] = { TXT: [`"${record.value}"`] };
      const proved = (await use("verify_domain", { site: secure.name, domain })).result as Domain;
      expect([proved.status, proved.problems.map(({ code }) => code)]).toEqual([
        "ERROR",
        ["address_missing"],
      ]);
      await quiet();
    },
  ],
  [
    "renew_certificate",
    "visitors of the name are answered over HTTPS from then on, by the certificate that get_certificate shows",
    async () => {
      zone[domain] = { A: ["127.0.0.1"] };
      const { result } = await use("renew_certificate", { site: secure.name, domain });
      expect(result).toMatchObject({ domain, status: "ACTIVE" });
      const answer = await overTls(domain);
      expect(answer).toMatchObject({
        status: 200,
        text: "here",
        issuer: expect.stringMatching(/^Pebble/) as string,
      });
      const { certificate } = (await use("get_certificate", { site: secure.name, domain })).result as {
        certificate: DomainCertificate;
      };
      expect(certificate.issuer).toContain(answer?.issuer);
      expect(certificate).toMatchObject({ notAfter: answer?.validTo, error: null });
    },
  ],
  [
    "set_primary_domain",
    "visitors of the site's other name are sent to it, until each is served by itself again",
    async () => {
      const other = () => overTls(secure.hostname);
      expect(await other()).toMatchObject({ status: 200, text: "here" });
      await use("set_primary_domain", { site: secure.name, domain });
      const sent = await until(other, (got) => (got?.status ?? 0) >= 300);
      expect(new URL(sent?.location ?? "").hostname).toBe(domain);
      await use("set_primary_domain", { site: secure.name, domain: null });
      await until(other, (got) => got?.status === 200);
    },
  ],
  [
    "remove_domain",
    "the name is served no longer, and the site's own still is",
    async () => {
      await use("remove_domain", { site: secure.name, domain });
      await until(
        () => overTls(domain),
        (got) => got?.text !== "here",
      );
      expect(await overTls(secure.hostname)).toMatchObject({ status: 200, text: "here" });
    },
  ],
];

describe("what the assistant's tools find out about sites, and change", () => {
  it.each(ofSites)("%s: %s", (_tool, _effect, test) => test());
});

describe("what the assistant's tools find out about databases", () => {
  it.each(ofDatabases)("%s: %s", (_tool, _effect, test) => test());
});

describe("what the assistant's tools do to names", () => {
  beforeAll(async () => {
    tlsPort = await freePort();
    const httpPort = await freePort();
    acme = await AcmeServer.start({ httpPort, tlsPort });
    host = await startSecondHost({
      BERTH_INGRESS_PORT: String(httpPort),
      BERTH_TLS_PORT: String(tlsPort),
      BERTH_ACME_DIRECTORY: acme.directory,
      BERTH_ACME_CA_FILE: acme.caFile,
    });
    const name = `secure-${process.pid}`;
    const { siteId, invoiceToken } = await createSite({ name, githubUrl: repository.address });
    await pay(invoiceToken);
    const { url, hostId } = await settled(siteId);
    expect(hostId).toBe(host.id);
    secure = { siteId, name, hostname: new URL(url).hostname };
  }, 5 * 60_000);
  afterAll(async () => {
    await remove(secure.siteId);
    await host.stop();
    await until(
      () => api("DELETE", `/hosts/${host.id}?force=1`),
      ({ status }) => status < 300,
    );
    await acme.stop();
  });

  it.each(ofDomains)("%s: %s", (_tool, _effect, test) => test());
});

it("set_backup_schedule: the volume was backed up at its minute, by its schedule", async () => {
  const [backup] = await until(
    async () => (await api<{ data: Backup[] }>("GET", `/sites/${shop.id}/volumes/files/backups`)).body.data,
    (found) => found.some(({ status }) => status === "VERIFIED" || status === "STORED"),
    4 * 60_000,
  );
  expect(backup?.trigger).toBe("schedule");
  expect(Date.parse(backup?.createdAt ?? "")).toBeGreaterThanOrEqual(backupDueAt.setUTCSeconds(0, 0));
  await quiet();
});

holdsItsTools("chat-facts");
