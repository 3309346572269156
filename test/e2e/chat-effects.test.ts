import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Command } from "../../protocol/api/commands.ts";
import type { Site, SiteCreated } from "../../protocol/api/sites.ts";
import type { DatabaseCreated } from "../../protocol/api/databases.ts";
import type { ToolName } from "../../protocol/api/tools.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { containersOf, docker, holdsItsTools, quiet, shows, startModel, use } from "./scripted-chat.ts";
import {
  api,
  ended,
  launch,
  leftovers,
  pay,
  remove,
  Repository,
  request,
  settled,
  site,
  until,
} from "./service.ts";

/** Does what its address asks for; otherwise it says its version. */
const talker = (version: string) => `
const fs = require("node:fs");
const id = require("node:crypto").randomUUID();
require("node:http").createServer((q, s) => {
  const [, what, name] = q.url.split("/");
  const answers = {
    env: () => process.env[name] ?? "unset",
    id: () => id,
    log: () => (console.log("heard", name), "logged"),
    write: () => (fs.appendFileSync("/data/notes", name + " "), "written"),
    notes: () => fs.readFileSync("/data/notes", "utf8"),
  };
  s.end(answers[what]?.() ?? "version ${version}");
}).listen(process.env.PORT);`;
const Dockerfile = `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`;

let takeModelAway: () => Promise<void>;
let repository: Repository;
let shop: Site;
const answer = (path = "/", headers: Record<string, string> = {}) => request(shop.url + path, { headers });
const on = <Input extends object>(input: Input) => ({ site: shop.name, ...input });
const says = async (path: string, text: string) =>
  until(
    () => answer(path),
    (got) => got.text === text,
  );
/** Deploys through the tool, and waits for its end. */
async function deployed(wanted = "LIVE"): Promise<string> {
  const { result } = await use("deploy_site", { site: shop.name });
  const { deploymentId } = result as { deploymentId: string };
  expect((await ended(deploymentId)).status).toBe(wanted);
  await quiet();
  return deploymentId;
}
async function restarted(path: string, text: string): Promise<void> {
  await use("restart_site", { site: shop.name });
  await says(path, text);
  await quiet();
}
const status = async (id: string, wanted: string) =>
  until(
    () => site(id),
    (now) => now.status === wanted,
  );

beforeAll(async () => {
  await ensureImages(["postgres:17"]);
  takeModelAway = await startModel();
  repository = new Repository({ Dockerfile, "server.js": talker("one") });
  shop = await launch({ githubUrl: repository.address });
  expect([shop.status, shop.latestDeployment?.error]).toEqual(["RUNNING", null]);
}, 15 * 60_000);
afterAll(async () => {
  await remove(shop.id);
  // It is there only where a test failed.
  if (databaseId) await api("DELETE", `/databases/${databaseId}?skipFinalBackup=1`);
  await quiet();
  await takeModelAway();
});

type Row = [tool: ToolName, effect: string, test: () => Promise<void>];

const ofSites: Row[] = [
  [
    "set_env_vars",
    "the container has a variable after restart_site, and not before",
    async () => {
      await use("set_env_vars", { site: shop.name, entries: [{ key: "COLOUR", value: "blue" }] });
      expect((await answer("/env/COLOUR")).text).toBe("unset");
      await use("restart_site", { site: shop.name });
      await says("/env/COLOUR", "blue");
    },
  ],
  [
    "deploy_site",
    "visitors are answered by the newest commit",
    async () => {
      repository.commit({ "server.js": talker("two") }, "Second");
      await use("deploy_site", { site: shop.name });
      await says("/", "version two");
      await quiet();
    },
  ],
  [
    "scale_site",
    "as many containers as asked for answer",
    async () => {
      const { result } = await use("scale_site", { site: shop.name, replicas: 2 });
      expect(result).toMatchObject({ replicas: 2, applied: "now" });
      await until(
        () => containersOf(shop.id).length,
        (count) => count === 2,
      );
      const found = new Set<string>();
      await until(
        async () => found.add((await answer("/id")).text).size,
        (count) => count === 2,
      );
      await use("scale_site", { site: shop.name, replicas: 1 });
      await until(
        () => containersOf(shop.id).length,
        (count) => count === 1,
      );
    },
  ],
  [
    "stop_site",
    "no container runs and visitors are answered 503, until start_site",
    async () => {
      const unchanged = async () => expect((await answer()).text).toBe("version two");
      await use("stop_site", { site: shop.name }, { unchanged });
      await status(shop.id, "STOPPED");
      expect([(await answer()).status, containersOf(shop.id)]).toEqual([503, []]);
      await use("start_site", { site: shop.name });
      await says("/", "version two");
    },
  ],
  [
    "create_site",
    "its address answers once it is paid, and after delete_site nothing of it is left",
    async () => {
      const name = `other-${process.pid}`;
      const { result } = await use("create_site", {
        name,
        deployType: "github",
        githubUrl: repository.address,
        port: 3000,
      });
      const { siteId, invoiceToken } = result as SiteCreated;
      await pay(invoiceToken);
      const { url } = await settled(siteId);
      expect((await request(url)).text).toBe("version two");
      await use("delete_site", { site: name });
      await until(
        async () => (await api("GET", `/sites/${siteId}`)).status,
        (gone) => gone === 404,
      );
      expect(leftovers(siteId)).toEqual([]);
    },
  ],
  [
    "set_cron_job",
    "the command runs when its minute comes: delete_cron_job below waits for it",
    async () => {
      const every = { name: "each-minute", cron: "* * * * *", command: "echo at $((40 + 2)) of the hour" };
      await use("set_cron_job", on(every));
      const { result } = await use("list_cron_jobs", on({}));
      expect(result).toMatchObject([every]);
    },
  ],
  [
    "generate_secret",
    "the container has a value that the model was not told",
    async () => {
      const { reply, result } = await use("generate_secret", on({ key: "SESSION", length: 32 }));
      await use("restart_site", on({}));
      const { text } = await until(
        () => answer("/env/SESSION"),
        (got) => got.text !== "unset",
      );
      expect(text).toMatch(/^[\w-]{32}$/);
      expect(JSON.stringify([reply, result])).not.toContain(text);
      await quiet();
    },
  ],
  [
    "delete_env_vars",
    "the container lacks the variable after a restart, and has it again after restore_env_version",
    async () => {
      const { result } = await use("list_env_history", on({}));
      const [latest] = result as { version: number }[];
      await use("delete_env_vars", on({ keys: ["COLOUR"] }));
      await restarted("/env/COLOUR", "unset");
      await use("restore_env_version", on({ version: latest?.version ?? 0 }));
      await restarted("/env/COLOUR", "blue");
    },
  ],
  [
    "rollback_site",
    "visitors are answered by the earlier version, and by the newest after deploy_site",
    async () => {
      const { result } = await use("list_rollback_targets", on({}));
      const targets = result as { id: string; number: number }[];
      const deployment = targets.find(({ number }) => number === 1)?.id;
      const unchanged = async () => expect((await answer()).text).toBe("version two");
      await use("rollback_site", on({ deployment }), { unchanged });
      await says("/", "version one");
      await quiet();
      await deployed();
      expect((await answer()).text).toBe("version two");
    },
  ],
  [
    "update_site_settings",
    "the container listens on another port from the next deployment on",
    async () => {
      await use("update_site_settings", on({ settings: { port: 4321 } }));
      expect((await answer("/env/PORT")).text).toBe("3000");
      await deployed();
      expect((await answer("/env/PORT")).text).toBe("4321");
    },
  ],
  [
    "explain_failed_deployment",
    "names the step that failed and its code, list_unhealthy_resources the site, and visitors keep their version",
    async () => {
      repository.commit(
        { Dockerfile: Dockerfile.replace("USER", "RUN echo in pieces; exit 7\nUSER") },
        "Bad",
      );
      const deployment = await deployed("FAILED");
      const told = JSON.stringify((await use("explain_failed_deployment", on({}))).result);
      expect([told.includes("in pieces"), /\b7\b/.test(told)]).toEqual([true, true]);
      const { result: log } = await use("get_build_logs", { deployment, search: "in pieces" });
      expect(JSON.stringify(log)).toContain("in pieces");
      const { result } = await use("list_unhealthy_resources", {});
      expect(JSON.stringify(result)).toContain(shop.name);
      expect((await answer()).text).toBe("version two");
    },
  ],
  [
    "cancel_deployment",
    "ends the build, and visitors keep their version",
    async () => {
      repository.commit({ Dockerfile: Dockerfile.replace("USER", "RUN sleep 50\nUSER") }, "Slow");
      const { deploymentId: deployment } = (await use("deploy_site", on({}))).result as {
        deploymentId: string;
      };
      await shows(`/deployments/${deployment}/logs`, "sleep 50");
      await use("cancel_deployment", { deployment });
      expect((await ended(deployment)).status).toBe("CANCELLED");
      repository.commit({ Dockerfile }, "Good again");
      expect((await answer()).text).toBe("version two");
    },
  ],
  [
    "get_deploy_webhook",
    "what posts to the address deploys the newest commit; after rotate_deploy_webhook only the new one does",
    async () => {
      const address = ({ message }: { message: string }) =>
        /https?:\S+\/webhooks\/deploy\/\S+/.exec(message)?.[0] ?? "";
      const post = async (url: string) => (await request(url, { method: "POST" })).status;
      const first = address((await use("get_deploy_webhook", on({}))).reply);
      repository.commit({ "server.js": talker("three") }, "Third");
      expect(await post(first)).toBe(202);
      await says("/", "version three");
      await quiet();
      const second = address((await use("rotate_deploy_webhook", on({}))).reply);
      expect([await post(first), await post(second)]).toEqual([404, 202]);
      await quiet();
    },
  ],
  [
    "set_redirect_rules",
    "visitors of an old path are sent to the new one, until there are no rules",
    async () => {
      await use("set_redirect_rules", on({ rules: [{ from: "/old", to: "/new", code: 301 }] }));
      const { headers } = await until(
        () => answer("/old"),
        (got) => got.status === 301,
      );
      expect(headers.location).toBe("/new");
      await use("set_redirect_rules", on({ rules: [] }));
      await says("/old", "version three");
    },
  ],
  [
    "set_access_protection",
    "only who knows the password is let in, until it is taken away",
    async () => {
      await use("set_access_protection", on({ auth: { username: "team", password: "correct horse" } }));
      await until(answer, (got) => got.status === 401);
      const Authorization = `Basic ${Buffer.from("team:correct horse").toString("base64")}`;
      expect((await answer("/", { Authorization })).text).toBe("version three");
      await use("set_access_protection", on({ auth: null }));
      await says("/", "version three");
    },
  ],
  [
    "set_maintenance_mode",
    "visitors see the page while the container runs on, until it is turned off without a question",
    async () => {
      // The replaced container drains before it is gone.
      const running = await until(
        () => containersOf(shop.id),
        ({ length }) => length === 1,
      );
      await use("set_maintenance_mode", on({ on: true, message: "Back at noon." }));
      const { text } = await until(answer, (got) => got.status === 503);
      expect([text.includes("Back at noon."), containersOf(shop.id)]).toEqual([true, running]);
      await use("set_maintenance_mode", on({ on: false }), { asks: false });
      await says("/", "version three");
    },
  ],
  [
    "get_site_logs",
    "shows what the container wrote, also search_log_history, and get_access_logs the request that caused it",
    async () => {
      await answer("/log/a-marker");
      await shows(`/sites/${shop.id}/logs/search?text=a-marker`, "heard");
      await shows(`/sites/${shop.id}/requests?path=/log`, "a-marker");
      const told = [
        await use("get_site_logs", on({ search: "heard" })),
        await use("search_log_history", on({ text: "heard" })),
        await use("get_access_logs", on({ path: "/log" })),
      ].map(({ result }) => JSON.stringify(result).includes("a-marker"));
      expect(told).toEqual([true, true, true]);
    },
  ],
  [
    "browse_files",
    "shows a file as it is in the container, and run_health_check that the container answers",
    async () => {
      expect(JSON.stringify((await use("browse_files", on({ path: "/app" }))).result)).toContain("server.js");
      const { result } = await use("browse_files", on({ path: "/app/server.js" }));
      expect(JSON.stringify(result)).toContain("version three");
      const { result: health } = await use("run_health_check", on({}));
      expect(JSON.stringify(health)).toContain('"isHealthy":true');
    },
  ],
  [
    "run_command",
    "runs it in the image with the environment, and get_job_output shows what it wrote and how it ended",
    async () => {
      const { result } = await use("run_command", on({ command: "echo it is $COLOUR here; exit 3" }));
      const { id: run } = result as Command;
      await shows(`/commands/${run}`, '"exitCode":3');
      const told = (await use("get_job_output", { run })).result as { command: Command; output: string[] };
      expect([told.command.exitCode, told.output[0]]).toEqual([3, "it is blue here"]);
    },
  ],
  [
    "create_volume",
    "what the app writes survives a restart, and restore_backup of its backup brings back what was there",
    async () => {
      await use("create_volume", on({ name: "notes", path: "/data" }));
      await deployed();
      await answer("/write/first");
      const { result } = await use("create_backup", on({ volume: "notes" }));
      const { id: backup } = result as { id: string };
      await shows(`/backups/${backup}`, "VERIFIED");
      await answer("/write/second");
      await restarted("/notes", "first second ");
      await use("stop_site", on({}));
      await status(shop.id, "STOPPED");
      await use("restore_backup", on({ volume: "notes", backup }));
      await use("start_site", on({}));
      await says("/notes", "first ");
    },
  ],
  [
    "delete_cron_job",
    "the schedule that ran before is gone",
    async () => {
      await until(
        async () => (await api<{ data: Command[] }>("GET", `/sites/${shop.id}/commands`)).body.data,
        (runs) => runs.some(({ trigger, exitCode }) => trigger === "schedule" && exitCode === 0),
      );
      await use("delete_cron_job", on({ name: "each-minute" }));
      expect((await use("list_cron_jobs", on({}))).result).toEqual([]);
    },
  ],
  [
    "delete_volume",
    "nothing of its data is left on the engine, once nothing mounts it and no command runs",
    async () => {
      await use("update_site_settings", on({ settings: { volumes: [] } }));
      await deployed();
      // The replaced container drains before it is gone.
      await until(
        () => leftovers(shop.id).filter((line) => line.startsWith("container")),
        ({ length }) => length === 1,
      );
      const volumes = () => leftovers(shop.id).filter((line) => line.startsWith("volume"));
      await use("delete_volume", on({ name: "notes" }), {
        unchanged: async () => expect(volumes()).toHaveLength(1),
      });
      await until(volumes, (left) => left.length === 0);
    },
  ],
];

const db = `items-${process.pid}`;
let databaseId = "";
let connection = "";
const databaseContainer = () => docker("ps", "--quiet", "--filter", `label=berth.database=${databaseId}`);
const connectionIn = ({ message }: { message: string }) => /postgresql:\S+/.exec(message)?.[0] ?? "";
/** What the server itself answers to who comes with this address. */
async function ask(address: string, statement: string): Promise<string> {
  const psql = [
    "exec",
    databaseContainer(),
    "psql",
    address,
    "-qAt",
    "-v",
    "ON_ERROR_STOP=1",
    "-c",
    statement,
  ];
  return (await promisify(execFile)("docker", psql)).stdout.trim();
}
const database = (wanted: string) => shows(`/databases/${databaseId}`, `"status":"${wanted}"`);
const write = (query: string) => use("run_write_query", { db, query });
const names = async () =>
  ((await use("run_read_query", { db, query: "SELECT name FROM items ORDER BY 1" })).result as Rows).rows;
type Rows = { rows: unknown[] };

const ofDatabases: Row[] = [
  [
    "create_database",
    "a server takes connections at the address of get_connection_string, once it is paid",
    async () => {
      const { result } = await use("create_database", { name: db, type: "postgresql" });
      const { invoiceToken, databaseId: id } = result as DatabaseCreated;
      databaseId = id;
      await pay(invoiceToken);
      await database("RUNNING");
      const { reply, result: told } = await use("get_connection_string", { db });
      connection = connectionIn(reply);
      expect(JSON.stringify(told)).not.toContain(connection);
      expect(await ask(connection, "SELECT 6 * 7")).toBe("42");
    },
  ],
  [
    "run_write_query",
    "changes rows after a yes, which run_read_query and describe_schema then show",
    async () => {
      await write("CREATE TABLE items (name text)");
      const unchanged = async () => expect(await ask(connection, "SELECT count(*) FROM items")).toBe("0");
      await use(
        "run_write_query",
        { db, query: "INSERT INTO items VALUES ('hat'), ('shoe')" },
        { unchanged },
      );
      expect(await ask(connection, "SELECT string_agg(name, ' ') FROM items")).toBe("hat shoe");
      expect(JSON.stringify(await names())).toMatch(/hat.*shoe/);
      expect(JSON.stringify((await use("describe_schema", { db })).result)).toContain("name text");
    },
  ],
  [
    "restore_backup",
    "a backup of create_backup brings a deleted row back",
    async () => {
      const { id: backup } = (await use("create_backup", { db })).result as { id: string };
      await shows(`/backups/${backup}`, "VERIFIED");
      await quiet();
      await write("DELETE FROM items WHERE name = 'hat'");
      expect(JSON.stringify(await names())).not.toContain("hat");
      await use("restore_backup", { db, backup });
      await quiet();
      expect(JSON.stringify(await names())).toMatch(/hat.*shoe/);
      const { reply } = await use("get_backup_download_link", { backup });
      const link = /https?:\S+/.exec(reply.message)?.[0] ?? "";
      expect((await request(link)).status).toBe(200);
      await use("delete_backup", { backup });
      expect((await request(link)).status).not.toBe(200);
    },
  ],
  [
    "link_database",
    "the site's container has the address, until it is taken away",
    async () => {
      await use("link_database", on({ db, variable: "DATA_URL" }), { asks: false });
      await use("restart_site", on({}));
      const { text } = await until(
        () => answer("/env/DATA_URL"),
        (got) => got.text !== "unset",
      );
      expect(await ask(text, "SELECT count(*) FROM items")).toBe("2");
      await quiet();
      await use("link_database", on({ db, linked: false }));
      await quiet();
      await restarted("/env/DATA_URL", "unset");
    },
  ],
  [
    "rotate_database_password",
    "the server takes the new password and refuses the old one",
    async () => {
      await use("rotate_database_password", { db });
      await quiet();
      const now = connectionIn((await use("get_connection_string", { db })).reply);
      expect(await ask(now, "SELECT 1")).toBe("1");
      await until(
        () =>
          ask(connection, "SELECT 1").then(
            () => "taken",
            () => "refused",
          ),
        (old) => old === "refused",
      );
      connection = now;
    },
  ],
  [
    "kill_query",
    "ends the session that list_active_queries shows",
    async () => {
      const ends = ask(connection, "SELECT pg_sleep(600)").then(
        () => "went on",
        (error: Error) => error.message,
      );
      await shows(`/databases/${databaseId}/insight`, "pg_sleep(600)");
      const active = (await use("list_active_queries", { db })).result as { id: string; statement: string }[];
      const query = active.find(({ statement }) => statement.includes("pg_sleep(600)"))?.id ?? "";
      await use("kill_query", { db, query });
      expect(await ends).toMatch(/terminat/);
    },
  ],
  [
    "restart_database",
    "the server runs anew with its rows",
    async () => {
      const since = () => ask(connection, "SELECT pg_postmaster_start_time()").catch(() => "");
      const before = await since();
      await use("restart_database", { db });
      await until(since, (now) => now !== "" && now !== before);
      await quiet();
      expect(await ask(connection, "SELECT count(*) FROM items")).toBe("2");
    },
  ],
  [
    "stop_database",
    "no server runs, until start_database brings it and its rows back",
    async () => {
      await use("stop_database", { db });
      await database("STOPPED");
      expect(databaseContainer()).toBe("");
      await use("start_database", { db });
      await database("RUNNING");
      expect(await ask(connection, "SELECT count(*) FROM items")).toBe("2");
      await quiet();
    },
  ],
  [
    "delete_database",
    "nothing of it is left on the engine",
    async () => {
      await use("delete_database", { db, skipFinalBackup: true });
      await until(
        async () => (await api("GET", `/databases/${databaseId}`)).status,
        (gone) => gone === 404,
      );
      const label = ["--quiet", "--filter", `label=berth.database=${databaseId}`];
      expect([docker("ps", "--all", ...label), docker("volume", "ls", ...label)]).toEqual(["", ""]);
    },
  ],
];

describe("what the assistant's tools do to sites", () => {
  it.each(ofSites)("%s: %s", (_tool, _effect, test) => test());
});

describe("what the assistant's tools do to databases", () => {
  it.each(ofDatabases)("%s: %s", (_tool, _effect, test) => test());
});

holdsItsTools("chat-effects");
