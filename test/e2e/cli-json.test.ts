import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { printedBy, type Printed } from "../../cli/command.ts";
import { createProgram, everyCommand, type AnyCommand } from "../../cli/program.ts";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { answers } from "../../protocol/cli.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { api, local, pay, plainServer, remove, Repository, request, site, until } from "./service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Every command of the built file, as a process with a home of its own, against a service with hosts, databases and sites. */
const home = temporaryFolder();
const program = join(home, "berth.mjs");
const checkout = join(home, "checkout");

const pathOf = (one: AnyCommand): string =>
  one.parent?.parent ? `${pathOf(one.parent)} ${one.name()}` : one.name();
const leaves = new Map(
  everyCommand(createProgram())
    .filter(({ commands }) => commands.length === 0)
    .map((one) => [pathOf(one), printedBy(one)]),
);
/** An operation with several answers prints one of them. */
function schemaOf(prints: Exclude<Printed, null>): z.ZodType {
  const name = typeof prints === "object" ? prints.lines : prints;
  if (name in answers) return answers[name as keyof typeof answers];
  const operation = ({ ...operations, ...entryOperations } as Record<string, Operation>)[name];
  return z.union((operation?.answers ?? []).map(({ schema }) => schema));
}

const run = new Set<string>();
let [key, shop] = ["", ""];
type Options = {
  cwd?: string;
  env?: Record<string, string>;
  exitCode?: number;
  file?: string;
  input?: string;
};

/** Starts a command on the site that this file is about. */
async function start(name: string, args: string[], options: Options): Promise<ChildProcess> {
  expect(leaves.has(name), name).toBe(true);
  // A key may make one request a second, so that each makes the requests of a few commands only.
  if (run.size % 10 === 0)
    key = (await api<{ key: string }>("POST", "/keys", { name: `Commands ${run.size}` })).body.key;
  run.add(name);
  // What follows -- belongs to the command that the site is to run.
  const at = args.includes("--") ? args.indexOf("--") : args.length;
  const all = [...args.slice(0, at), "--json", "--quiet", "--yes", ...args.slice(at)];
  const child = spawn(process.execPath, [options.file ?? program, ...name.split(" "), ...all], {
    cwd: options.cwd ?? home,
    stdio: "pipe",
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      BERTH_URL: local.siteUrl,
      BERTH_TOKEN: key,
      BERTH_SITE: shop,
      ...options.env,
    },
  });
  child.stdin.end(options.input);
  return child;
}

async function ended(child: ChildProcess): Promise<{ code: number | null; stdout: string; stderr: string }> {
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (part: Buffer) => (stdout += part.toString()));
  child.stderr?.on("data", (part: Buffer) => (stderr += part.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

type Value = { [field: string]: Value } & string;

/** A command that goes on until Ctrl-C prints a value on each line: the last one. */
function parsed(name: string, stdout: string): Value {
  const prints = leaves.get(name);
  if (!prints) throw new Error(`${name} prints no JSON`);
  const texts = typeof prints === "object" ? stdout.trim().split("\n").filter(Boolean) : [stdout];
  return texts.map((text) => schemaOf(prints).parse(JSON.parse(text))).at(-1) as Value;
}

/** What the command prints, by its schema. */
async function json(name: string, args: string[] = [], options: Options = {}): Promise<Value> {
  const { code, stdout, stderr } = await ended(await start(name, args, options));
  expect([[name, ...args], code, stderr]).toEqual([[name, ...args], options.exitCode ?? 0, ""]);
  return parsed(name, stdout);
}

/** A command that cannot do it prints nothing, exits with the code of the reason, and says it as JSON. */
async function refused(name: string, exitCode: number, args: string[], reason: string): Promise<void> {
  const { code, stdout, stderr } = await ended(await start(name, args, {}));
  expect([name, code, stdout]).toEqual([name, exitCode, ""]);
  expect(JSON.parse(stderr)).toMatchObject({
    error: { code: expect.any(String), message: expect.stringContaining(reason) },
  });
}

/** A command that goes on until Ctrl-C: its first line. `cause`: what makes it print one, again and again. */
async function firstLine(name: string, args: string[], cause?: () => Promise<unknown>): Promise<Value> {
  const child = await start(name, args, {});
  const over = ended(child);
  let printed = "";
  child.stdout?.on("data", (part: Buffer) => (printed += part.toString()));
  await until(
    async () => {
      await cause?.();
      return printed;
    },
    (now) => now.includes("\n"),
  );
  child.kill("SIGINT");
  expect([name, (await over).code]).toEqual([name, 130]);
  return parsed(name, `${printed.split("\n")[0]}\n`);
}

const list = (value: Value): Value[] => (value as unknown as { data: Value[] }).data;
const first = (value: Value): Value => {
  const [found] = list(value);
  if (!found) throw new Error(`Nothing is listed: ${JSON.stringify(value)}`);
  return found;
};
const database = async (id: string, status: string) =>
  until(
    async () => (await api("GET", `/databases/${id}`)).body,
    (now) => now["status"] === status && now["restoring"] === null,
  );
const running = async (id: string, status = "RUNNING") =>
  until(
    () => site(id),
    (now) => now.status === status,
  );
/** Until no host has work left. */
const idle = async () =>
  until(
    async () => (await api<{ data: unknown[] }>("GET", "/jobs")).body.data,
    ({ length }) => length === 0,
  );

/** Keeps a note in its volume. */
const server = {
  ...plainServer("one"),
  "server.js": `
if (require("node:fs").existsSync("/data")) require("node:fs").writeFileSync("/data/notes.txt", "hello");
console.log("up");
require("node:http").createServer((q, s) => s.end("here")).listen(process.env.PORT || 3000);`,
};
const sleeps = "FROM node:24-bookworm-slim\nRUN sleep 300\n";
const fails = "FROM node:24-bookworm-slim\nRUN exit 7\n";

let repository: Repository;
beforeAll(async () => {
  await Promise.all([bundleCli(program), ensureImages(["postgres:17"])]);
  repository = new Repository(server);
  execFileSync("git", ["clone", "--quiet", repository.directory, checkout]);
  const origin = `http://${repository.address}`;
  execFileSync("git", ["-C", checkout, "remote", "set-url", "origin", origin]);
  mkdirSync(join(home, "other"));
}, 15 * 60_000);

let invoice: Value;

describe("each command prints JSON by its schema:", () => {
  it("a site is created, paid, deployed, and put back", async () => {
    const created = await json("sites create", [`shop-${process.pid}`, "--repository", repository.address]);
    shop = created["siteId"] ?? "";
    await json("sites set", ['volumes=[{"name":"files","mountPath":"/data"}]']);
    invoice = await json("invoices show", [created["invoiceId"] ?? ""]);
    await pay(created["invoiceToken"] ?? "");
    await json("invoices wait", [invoice["id"] ?? ""]);
    await json("deployments follow");
    const deployment = await json("deploy", ["--rebuild"]);
    const oldest = list(await json("deployments list")).at(-1);
    await json("deployments show", [deployment["id"] ?? ""]);
    await json("deployments compare", [deployment["id"] ?? "", oldest?.["id"] ?? ""]);
    await json("deployments logs", [deployment["id"] ?? ""]);
    await json("rollback");
    await idle();
    repository.commit({ Dockerfile: fails }, "Fails");
    await refused("deploy", 1, [], "ended as FAILED");
    const [failed] = list(await json("deployments list"));
    await json("deployments explain", [failed?.["id"] ?? ""]);
    repository.commit({ Dockerfile: sleeps }, "Sleeps");
    const sleeping = await json("deploy", ["--no-wait"]);
    await json("deployments cancel", [sleeping["id"] ?? ""]);
    await idle();
    repository.commit(server, "Works again");
  });

  it("what a site is, does and did", async () => {
    await running(shop);
    await request(`${(await site(shop)).url}/`);
    for (const name of [
      "sites list",
      "sites show",
      "sites diagnose",
      "sites health",
      "sites probe",
      "sites disk",
      "logs",
      "requests",
      "traffic",
      "metrics",
      "events",
      "open",
      "webhook show",
      "webhook rotate",
      "volumes list",
      "ingress show",
      "domains list",
      "env list",
      "env history",
      "schedules list",
      "jobs list",
    ])
      await json(name);
    for (const action of ["stop", "start", "restart"] as const) {
      await json(`sites ${action}`);
      await running(shop, action === "stop" ? "STOPPED" : "RUNNING");
      await idle();
    }
  });

  it("variables, domains, the ingress, commands and schedules", async () => {
    await json("env set", ["A=1", "B=two words"]);
    await json("env generate", ["SECRET", "--length", "20"]);
    await json("env pull", ["pulled.env", "--force"]);
    writeFileSync(join(home, "some.env"), "A=2\nC=3\n");
    await json("env diff", ["some.env"], { exitCode: 1 });
    await json("env push", ["some.env"]);
    await json("env unset", ["C"]);
    await json("env restore", ["1"]);
    const domain = `www.shop-${process.pid}.example.org`;
    await json("domains add", [domain]);
    await json("domains verify", [domain]);
    await refused("domains renew", 5, [domain], "");
    await json("domains remove", [domain]);
    await json("ingress set", ["httpsOnly=false", "maxBodyMb=null"]);
    await json("ingress maintenance", ["on", "--message", "Back soon"]);
    await json("ingress maintenance", ["off"]);
    await json("ingress redirect", ["/old", "/new"]);
    await json("ingress unredirect", ["/old"]);
    await json("ingress protect", ["ada"], { input: "correct horse battery\n" });
    await json("ingress unprotect");
    await idle();
    const job = await json("exec", ["--", "true"]);
    await json("jobs show", [job["id"] ?? ""]);
    await json("jobs logs", [job["id"] ?? ""]);
    const long = await json("exec", ["--detach", "--", "sleep", "300"]);
    await json("jobs cancel", [long["id"] ?? ""]);
    const schedule = await json("schedules create", ["nightly", "0 3 * * *", "node --version"]);
    await json("schedules set", [schedule["id"] ?? "", "--disable"]);
    await json("schedules delete", [schedule["id"] ?? ""]);
    await idle();
  });

  it("a site's volumes and their backups", async () => {
    await json("volumes ls", ["files"]);
    await json("volumes cat", ["files", "notes.txt"]);
    await json("volumes cp", ["files", "notes.txt", "copied.txt"]);
    const backup = await json("volumes backup", ["files"]);
    await json("volumes backups", ["files"]);
    await json("volumes schedule", ["files", "daily", "--keep", "3"]);
    await json("volumes restore", ["restored", backup["id"] ?? ""]);
    await idle();
    await json("volumes delete", ["restored"]);
    await idle();
  });

  it("a database and its backups", async () => {
    const created = await json("databases create", ["main", "postgresql"]);
    const db = created["databaseId"] ?? "";
    await pay(created["invoiceToken"] ?? "");
    await database(db, "RUNNING");
    for (const one of ["show", "credentials", "schema", "insight", "logs", "metrics", "events", "disk"])
      await json(`databases ${one}`, [db]);
    await json("databases list");
    await json("databases query", [db, "CREATE TABLE items (id int)", "--write"]);
    await json("databases query", [db, "SELECT 1 AS one"]);
    await firstLine("databases tunnel", [db]);
    await refused("databases end-session", 4, [db, "999999"], "no session 999999");
    await json("databases link", [db]);
    await json("databases unlink", [db]);
    await json("databases rotate", [db]);
    await idle();
    const backup = await json("backups create", [db]);
    const id = backup["id"] ?? "";
    await json("backups list", [db]);
    await json("backups verify", [id]);
    await idle();
    await json("backups download", [id, "some.backup"]);
    await json("databases restore", [db, id]);
    await database(db, "RUNNING");
    await idle();
    await json("backups delete", [id]);
    for (const action of ["stop", "start", "restart"] as const) {
      await json(`databases ${action}`, [db]);
      await database(db, action === "stop" ? "STOPPED" : "RUNNING");
      await idle();
    }
    const large = await json("packs create", [
      "kind=database",
      `name=Large ${process.pid}`,
      "amountCents=90000",
      "memoryMb=1024",
      "cpuMilli=1500",
      "diskGb=30",
    ]);
    await json("databases resize", [db, large["id"] ?? ""]);
    await json("packs set", [large["id"] ?? "", "active=false"]);
    await json("databases delete", [db]);
    await until(
      async () => (await api("GET", `/databases/${db}`)).status,
      (status) => status === 404,
    );
  });

  it("a checkout", async () => {
    const here = { cwd: checkout, env: { BERTH_SITE: "" } };
    const file = await json("init", ["--force", "--name", `from-file-${process.pid}`], here);
    expect(file["file"]).toContain("berth.json");
    // 1 says that the site differs from the file.
    await json("diff", [], { ...here, exitCode: 1 });
    const applied = await json("up", [], here);
    await json("link", [applied["siteId"] ?? ""], here);
    await json("unlink", [], here);
    await remove(applied["siteId"] ?? "");
  });

  it("money", async () => {
    const clone = await json("sites clone", [`clone-${process.pid}`]);
    await json("invoices cancel", [clone["invoiceId"] ?? ""]);
    const large = await json("packs create", [
      "kind=site",
      `name=Large ${process.pid}`,
      "amountCents=90000",
      "memoryMb=1024",
      "cpuMilli=1500",
      "diskGb=30",
    ]);
    await json("accounts resize", [shop, large["id"] ?? ""]);
    await json("sites resize", [large["id"] ?? ""]);
    await json("packs set", [large["id"] ?? "", "active=false"]);
    for (const name of [
      "packs list",
      "packs all",
      "invoices list",
      "billing show",
      "credits show",
      "credits packages",
      "credits all-packages",
    ])
      await json(name);
    await json("invoices open", [invoice["id"] ?? ""]);
    await json("invoices pdf", [invoice["id"] ?? "", "some.pdf"]);
    await json("billing set", ["name=Ada Ltd", "vatId=null"]);
    const small = await json("credits create-package", [`Small ${process.pid}`, "10", "100"]);
    const bought = await json("credits buy", [small["id"] ?? ""]);
    await json("credits set-package", [small["id"] ?? "", "active=false"]);
    await json("operator void", [bought["invoiceId"] ?? ""]);
    await json("operator preview-refund", [invoice["id"] ?? ""]);
  });

  it("the assistant, notifications and the account", async () => {
    await json("credits grant", [local.email, "5"]);
    const reply = await json("chat", ["help"]);
    const conversation = reply["conversationId"] ?? "";
    await json("conversations list");
    await json("conversations show", [conversation]);
    await json("conversations rename", [conversation, "A title"]);
    await json("conversations delete", [conversation]);
    await json("conversations price");
    const channel = await json("notifications add", [
      "webhook",
      "unhealthy",
      "--to",
      "https://example.com/hook",
    ]);
    await json("notifications set", [channel["id"] ?? "", "enabled=false"]);
    await json("notifications list");
    await json("notifications test", [channel["id"] ?? ""]);
    await json("notifications deliveries");
    await json("notifications delete", [channel["id"] ?? ""]);
    for (const name of ["whoami", "keys", "activity", "unhealthy", "disk"]) await json(name);
    await json("search", ["shop"]);
    await json("completion", ["bash"]);
    await json("api", ["getSite", `id=${shop}`]);
    let changes = 0;
    await firstLine("watch", [], () =>
      api("PATCH", `/sites/${shop}`, { envVariables: [{ key: "CHANGES", value: String(++changes) }] }),
    );
    await json("doctor");
    // It replaces its own file.
    const installed = join(home, "other", "berth.mjs");
    copyFileSync(program, installed);
    await json("upgrade", [], { file: installed });
  });

  it("the operator's work", async () => {
    for (const name of [
      "operator overview",
      "operator system",
      "operator dns",
      "operator test-mail",
      "operator sites",
      "operator databases",
      "operator invoices",
      "operator flagged-payments",
      "operator verify-ledger",
      "operator activity",
      "operator failing-backups",
      "operator rotate-secrets",
      "accounts list",
      "settings show",
    ])
      await json(name);
    await json("operator check-payments");
    // No payment needs somebody's eye.
    await refused("operator resolve-payment", 4, ["flag_0", "by hand"], "");
    // Other files leave hosts on record that are gone.
    const own = list(await json("hosts list")).find(({ connected }) => connected)?.["id"] ?? "";
    await json("hosts usage", [own]);
    await json("hosts set-aside", [own]);
    await refused("hosts delete-set-aside", 5, [own, shop], "A record assigns this");
    const host = (await json("hosts create", [`host-${process.pid}`]))["id"] ?? "";
    await json("hosts set", [host, "ipv4=203.0.113.7", "ipv6=null"]);
    await json("hosts drain", [host]);
    await json("hosts activate", [host]);
    await json("hosts delete", [host, "--force"]);

    repository.commit({ Dockerfile: fails }, "Fails again");
    await refused("deploy", 1, [], "ended as FAILED");
    const jobs = list(await json("queue list", ["--state", "ended"]));
    await json("queue retry", [
      jobs.find((one) => one["siteId"] === shop && one["status"] === "FAILED")?.["id"] ?? "",
    ]);
    await idle();
    repository.commit({ Dockerfile: sleeps }, "Sleeps again");
    await json("deploy", ["--no-wait"]);
    await json("queue cancel", [first(await json("queue list"))["id"] ?? ""]);
    await idle();

    const email = `ada-${process.pid}@example.com`;
    await request(`${local.siteUrl}/api/auth/sign-up/email`, {
      method: "POST",
      headers: { Origin: local.siteUrl, "Content-Type": "application/json" },
      body: JSON.stringify({ name: "Ada", email, password: "correct horse battery" }),
    });
    const account = await until(
      () => json("accounts list", ["--email", email]),
      (found) => list(found).length > 0,
    );
    const id = first(account)["id"] ?? "";
    await json("accounts show", [id]);
    await json("accounts set", [id, "plan=pro"]);
    await json("accounts suspend", [id, "--reason", "Unpaid"]);
    await json("accounts release", [id]);
    await json("accounts disable-two-factor", [id]);
    await json("settings set", ["brand.name=Acme"]);
    await json("settings set", ["brand.name=Berth"]);
    await json("operator refund", [invoice["id"] ?? "", "--force"]);
  });

  it("signing in and out; and no command is left", async () => {
    await json("sites delete", [shop]);
    await until(
      async () => (await api("GET", `/sites/${shop}`)).status,
      (status) => status === 404,
    );
    const { body } = await api<{ key: string }>("POST", "/keys", { name: "Laptop" });
    const env = { BERTH_TOKEN: "", BERTH_URL: "" };
    await json("login", [local.siteUrl, "--with-token"], { input: `${body.key}\n`, env });
    await json("profiles list", [], { env });
    await json("profiles use", ["default"], { env });
    await json("logout", [], { env });
    for (const name of ["terminal", "databases connect"]) await refused(name, 2, ["main"], "prints no JSON");
    expect([...leaves.keys()].filter((name) => !run.has(name))).toEqual([]);
  });
});
