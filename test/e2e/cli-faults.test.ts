import "reflect-metadata";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createServer as createTlsServer } from "node:tls";
import { deserialize, serialize } from "node:v8";
import { IP, SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { networkTo, type Network } from "../support/network.ts";
import { randomOf } from "../support/random.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startControlPlane } from "./control-plane.ts";
import { api, launch, local, plainServer, remove, Repository, request, signIn, until } from "./service.ts";

/** The built file against the service, over a network, with a clock and at a keyboard that are not as they should be. */
const home = temporaryFolder();
const program = join(home, "berth.mjs");
const seed = Number(process.env["BERTH_SEED"] ?? 22);
const random = randomOf(seed);
const port = Number(new URL(local.siteUrl).port);
let network: Network;
let siteId: string;
let repository: Repository;

/** Prints a number every 20 ms, and writes a file to its volume. */
const ticking = `
require("node:fs").writeFileSync("/data/notes.txt", "from the volume\\n".repeat(4000));
let ticks = 0;
setInterval(() => console.log("tick " + ++ticks), 20);
`;
const filesOf = (version: string) => {
  const files = plainServer(version);
  return { ...files, "server.js": ticking + files["server.js"] };
};

beforeAll(async () => {
  await bundleCli(program);
  network = await networkTo(port);
  repository = new Repository(filesOf("one"));
  const site = await launch({
    githubUrl: repository.address,
    volumes: [{ name: "files", mountPath: "/data" }],
  });
  expect(site.status).toBe("RUNNING");
  siteId = site.id;
});
afterEach(() => network.mend());
afterAll(async () => {
  network.close();
  await remove(siteId);
});

/** A key of its own for each test: a key may make sixty requests a minute. */
const newKey = async (name: string): Promise<string> =>
  (await api<{ key: string }>("POST", "/keys", { name })).body.key;

type Run = { code: number | null; stdout: string; stderr: string };
type Options = { cwd?: string; env?: Record<string, string>; under?: string[] };
/** @param under a program that runs it, with its arguments */
function start(args: string[], { cwd = home, env = {}, under = [] }: Options = {}) {
  const [name = "", ...rest] = [...under, process.execPath, program, ...args];
  const child = spawn(name, rest, {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      GIT_CEILING_DIRECTORIES: tmpdir(),
      BERTH_URL: network.url,
      BERTH_SITE: siteId,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, so that what it leaves behind is found.
    detached: true,
  });
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (part: Buffer) => (run.stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (run.stderr += part.toString()));
  const ended = new Promise<Run>((resolve) =>
    child.once("close", (code) => {
      expect(() => process.kill(-(child.pid ?? 0), 0)).toThrow("ESRCH");
      resolve({ ...run, code });
    }),
  );
  const seen = (pattern: RegExp) =>
    expect.poll(() => run.stdout + run.stderr, { timeout: 60_000 }).toMatch(pattern);
  return { child, run, seen, ended };
}

const numbersIn = (text: string, before: string): number[] =>
  [...text.matchAll(new RegExp(`${before} (\\d+)$`, "gm"))].map(([, number]) => Number(number));
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);
type Listed = { data: { id: string; name: string; status: string }[] };
const listed = async (path: string) => (await api<Listed>("GET", path)).body.data;

/** Streams break after a few lines, every change loses its first answer, and of other answers one in three is lost. */
function breakOften(): void {
  const lost = new Set<string>();
  network.cutAfterBytes = (asked) => {
    if (/^GET \S+\/logs/.test(asked)) return 2500 + random.below(4000);
    const isLost = !lost.delete(asked) && (!asked.startsWith("GET ") || random.below(3) === 0);
    if (!isLost) return Infinity;
    lost.add(asked);
    return 0;
  };
}

it("a deployment over a network that breaks again and again is asked for once, shown line by line, and ends with 0", async () => {
  const env = { BERTH_TOKEN: await newKey("deploy") };
  const before = await listed(`/sites/${siteId}/deployments`);
  repository.commit(
    {
      Dockerfile: plainServer("")["Dockerfile"]!.replace(
        "USER",
        `RUN for i in $(seq 300); do echo "printed $i"; done\nUSER`,
      ),
    },
    "Prints",
  );
  breakOften();
  const { code, stdout, stderr } = await start(["deploy"], { env }).ended;
  expect([code, stdout, stderr]).toEqual([
    0,
    expect.stringMatching(/^http\S+\n$/),
    expect.stringContaining("is live"),
  ]);
  expect(numbersIn(stderr, "printed"), stderr).toEqual(upTo(300));
  expect(network.cuts).toBeGreaterThan(3);
  expect((await listed(`/sites/${siteId}/deployments`)).length).toBe(before.length + 1);
});

it("a followed log over a network that breaks again and again has each line once, in order", async () => {
  const env = { BERTH_TOKEN: await newKey("logs") };
  breakOften();
  const following = start(["logs", "--follow", "--tail", "1"], { env });
  await until(
    () => numbersIn(following.run.stdout, "tick").length,
    (count) => count > 250,
  );
  following.child.kill("SIGINT");
  const { code, stdout } = await following.ended;
  const [first = 0, ...others] = numbersIn(stdout, "tick");
  expect(others).toEqual(others.map((_, at) => first + 1 + at));
  expect([code, network.cuts > 3]).toEqual([130, true]);
});

it("a command over a network that breaks again and again runs once, and its output comes whole", async () => {
  const env = { BERTH_TOKEN: await newKey("exec") };
  breakOften();
  const line = `for i in $(seq 200); do echo "printed $i"; sleep 0.02; done`;
  const { code, stdout } = await start(["exec", line], { env }).ended;
  expect([code, numbersIn(stdout, "printed")]).toEqual([0, upTo(200)]);
  expect(network.cuts).toBeGreaterThan(3);
  expect((await listed(`/sites/${siteId}/commands`)).length).toBe(1);
});

const unique = `f${Date.now().toString(36)}`;
it.each([
  ["sites create", [`${unique}-site`, "--image", "nginx"], "/sites?limit=100", `${unique}-site`],
  ["databases create", [`${unique}-data`, "redis"], "/databases?limit=100", `${unique}-data`],
  ["schedules create", [unique, "0 3 * * *", "true"], "/sites/:id/schedules", unique],
  ["domains add", [`${unique}.example.org`], "/sites/:id/domains", `${unique}.example.org`],
])("%s, whose answer is lost on the way, makes one thing and says so", async (name, args, list, made) => {
  const env = { BERTH_TOKEN: await newKey(name) };
  breakOften();
  const { code, stderr, stdout } = await start([...name.split(" "), ...args], { env }).ended;
  expect([code, stderr]).toEqual([0, expect.not.stringContaining("✗")]);
  expect(stdout).toContain(name === "schedules create" ? "runs in" : made);
  expect(network.cuts).toBeGreaterThan(0);
  const found = (await listed(list.replace(":id", siteId))).filter((one) =>
    Object.values(one).includes(made),
  );
  expect(found.length).toBe(1);
  const [noun] = name.split(" ");
  if (noun === "sites" || noun === "databases") await api("DELETE", `/${noun}/${found[0]?.id}`);
});

it("what is followed when the network goes away goes on, and the command says so and ends with 1", async () => {
  const env = { BERTH_TOKEN: await newKey("away") };
  const goAway = async (args: string[], seen: RegExp) => {
    const running = start(args, { env });
    await running.seen(seen);
    network.isDown = true;
    network.cut();
    const run = await running.ended;
    network.mend();
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("cannot be reached")]);
    return run.stderr;
  };
  expect(await goAway(["exec", "echo begun; sleep 8; echo done"], /begun/)).toMatch(
    /berth jobs show cmd_\w+/,
  );
  const [job] = await listed(`/sites/${siteId}/commands`);
  expect(await goAway(["deploy", "--rebuild"], /│ /)).toContain("berth deployments follow dep_");
  expect((await start(["deployments", "follow"], { env }).ended).code).toBe(0);
  const { status } = await until(
    async () =>
      (await api<{ status: string; finishedAt: string | null }>("GET", `/commands/${job?.id}`)).body,
    ({ finishedAt }) => finishedAt !== null,
  );
  expect(status).toBe("SUCCEEDED");
  network.isDown = true;
  const away = await start(["sites", "list"], { env }).ended;
  expect([away.code, away.stdout, away.stderr]).toEqual([
    1,
    "",
    expect.stringMatching(/✗ .*cannot be reached/),
  ]);
});

/** Answers the question of /device as a person in a browser. */
async function approve(userCode: string): Promise<void> {
  const { status } = await request(`${local.siteUrl}/device`, {
    method: "POST",
    headers: {
      Origin: local.siteUrl,
      Cookie: await signIn(local),
      "Content-Type": "application/x-www-form-urlencoded",
    },
    body: new URLSearchParams({ code: userCode, decision: "approve" }).toString(),
  });
  expect(status).toBe(200);
}

it("Ctrl-C while the key of an approved sign-in is on its way leaves no key that nobody has", async () => {
  const keys = async () => (await listed("/keys?limit=100")).filter(({ name }) => name.startsWith("CLI on"));
  const before = (await keys()).length;
  // What a sign-in asks after the approval: for the key, and whose it is.
  for (const moment of [/device-poll/, /\/account /]) {
    const config = mkdtempSync(join(home, "login-"));
    const env = { BERTH_URL: network.url, XDG_CONFIG_HOME: config };
    const login = start(["login", "--no-browser"], { env });
    await login.seen(/\n {4}\S{4}-\S{4}\n/);
    // No poll arrives before the approval: the next one brings the key.
    network.isDown = true;
    network.cut();
    await approve(/\n {4}(\S{4}-\S{4})\n/.exec(login.run.stderr)?.[1] ?? "");
    network.cutAfterBytes = (asked) => {
      if (moment.test(`${asked} `)) login.child.kill("SIGINT");
      return Infinity;
    };
    network.isDown = false;
    const { code } = await login.ended;
    network.mend();
    expect(code).toBe(130);
    const file = join(config, "berth", "config.json");
    if (existsSync(file)) {
      expect((await start(["whoami"], { env }).ended).code).toBe(0);
      expect((await start(["logout"], { env }).ended).code).toBe(0);
    }
    expect([moment, (await keys()).length]).toEqual([moment, before]);
  }
});

/** The keyboard, at moments that the seed chooses. */
async function interrupted(args: string[], withinMs: number, options: Options): Promise<Run> {
  const started = start(args, options);
  const timer = setTimeout(() => started.child.kill("SIGINT"), random.below(withinMs));
  const run = await started.ended;
  clearTimeout(timer);
  // null: it came before the program listened.
  expect([args[0], run.code, run.stderr]).toEqual([
    args[0],
    expect.toSatisfy((code: number | null) => code === null || code === 130 || code === 0),
    expect.not.stringMatching(/✗|Error|at file:/),
  ]);
  return run;
}

it("Ctrl-C at any moment of exec leaves no command running", async () => {
  const env = { BERTH_TOKEN: await newKey("Ctrl-C exec") };
  const before = new Set((await listed(`/sites/${siteId}/commands`)).map(({ id }) => id));
  for (let round = 0; round < 5; round++)
    expect((await interrupted(["exec", "sleep 300"], 3000, { env })).code).not.toBe(0);
  const made = async () =>
    (await listed(`/sites/${siteId}/commands`))
      .filter(({ id }) => !before.has(id))
      .map(({ status }) => status);
  await until(made, (statuses) => statuses.every((status) => status === "CANCELLED"), 60_000);
});

it("Ctrl-C at any moment of deploy and logs leaves the site in service, and the next deploy completes", async () => {
  const env = { BERTH_TOKEN: await newKey("Ctrl-C deploy") };
  const before = (await listed(`/sites/${siteId}/deployments`)).length;
  repository.commit(filesOf("two"), "Two");
  let asked = 0;
  for (let round = 0; round < 3; round++) {
    const { stderr } = await interrupted(["deploy"], 3000, { env });
    if (stderr.includes("Deployment #")) {
      asked++;
      expect(stderr).toContain("continues without you");
    }
    expect((await interrupted(["logs", "--follow"], 1500, { env })).code).not.toBe(0);
  }
  const { code, stdout } = await start(["deploy"], { env }).ended;
  expect([code, (await request(stdout.trim())).text]).toEqual([0, "version two"]);
  const after = await listed(`/sites/${siteId}/deployments`);
  // One that was asked for when Ctrl-C came may be there, or not.
  expect(after.length - before).toBeGreaterThanOrEqual(Math.min(asked, 1));
  expect(after.length - before).toBeLessThanOrEqual(4);
  expect(after.every(({ status }) => ["LIVE", "SUPERSEDED", "CANCELLED"].includes(status))).toBe(true);
});

it("Ctrl-C at any moment of databases create makes one database or none, and of volumes cp a whole file or none", async () => {
  const env = { BERTH_TOKEN: await newKey("Ctrl-C create") };
  const folder = mkdtempSync(join(home, "copies-"));
  for (let round = 0; round < 4; round++) {
    const name = `${unique}-${round}`;
    const create = ["databases", "create", name, "redis"];
    await interrupted(create, 700, { env });
    const again = await start(create, { env }).ended;
    // 5: the first one has made it, which the refusal says.
    if (again.code === 5) expect(again.stderr).toContain(`already have a database named ${name}`);
    else expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("/invoice/inv_") });
    const found = (await listed("/databases?limit=100")).filter((one) => one.name === name);
    expect(found.length).toBe(1);
    await api("DELETE", `/databases/${found[0]?.id}`);

    const copy = join(folder, `${round}.txt`);
    await interrupted(["volumes", "cp", "files", "notes.txt", copy], 700, { env });
    if (!existsSync(copy)) await start(["volumes", "cp", "files", "notes.txt", copy], { env }).ended;
    expect(readFileSync(copy, "utf8")).toBe("from the volume\n".repeat(4000));
  }
  expect(readdirSync(folder).toSorted()).toEqual(["0.txt", "1.txt", "2.txt", "3.txt"]);
});

it("Ctrl-C at any moment of up takes no step twice, and the next up takes those that are left", async () => {
  const cwd = mkdtempSync(join(home, "checkout-"));
  execFileSync("git", ["init", "--quiet", cwd]);
  const name = `${unique}-up`;
  const databases = [{ name: `${name}-data`, type: "redis" }];
  const domains = ["www", "shop"].map((each) => `${each}.${name}.example.org`);
  const file = { name, source: { image: "nginx" }, variables: { GREETING: "hello" }, databases, domains };
  writeFileSync(join(cwd, "berth.json"), JSON.stringify(file));
  const options = { cwd, env: { BERTH_TOKEN: await newKey("Ctrl-C up"), BERTH_SITE: "" } };
  for (let round = 0; round < 4; round++) await interrupted(["up"], 900, options);
  expect((await start(["up"], options).ended).code).toBe(0);
  expect(await start(["diff"], options).ended).toMatchObject({ code: 0, stdout: "No difference.\n" });
  const made = async (noun: string) =>
    (await listed(`/${noun}?limit=100`)).filter((one) => one.name.startsWith(name));
  const [sites, data] = [await made("sites"), await made("databases")];
  expect([sites.length, data.length]).toEqual([1, 1]);
  for (const [noun, id] of [["sites", sites[0]?.id] as const, ["databases", data[0]?.id] as const])
    await api("DELETE", `/${noun}/${id}`);
});

it("Ctrl-C at any moment of a sign-in keeps no half of one", async () => {
  for (let round = 0; round < 4; round++) {
    const config = mkdtempSync(join(home, "login-"));
    const env = { BERTH_URL: network.url, XDG_CONFIG_HOME: config };
    expect((await interrupted(["login", "--no-browser"], 2500, { env })).code).not.toBe(0);
    expect(readdirSync(config)).toEqual([]);
  }
});

/** Makes every code of a sign-in eleven minutes older; a code lives for ten. */
function ageCodes(state: string): void {
  const folder = join(state, "do", "berth-DeviceCode");
  const codes = readdirSync(folder).filter((each) => /^[0-9a-f]+\.sqlite$/.test(each));
  expect(codes).toHaveLength(1);
  for (const name of codes) {
    const database = new DatabaseSync(join(folder, name));
    const row = database.prepare("SELECT value FROM _cf_KV WHERE key = 'code'").get();
    const code = deserialize(row?.["value"] as Uint8Array) as { startedAtMs: number };
    const older = serialize({ ...code, startedAtMs: code.startedAtMs - 11 * 60_000 });
    database.prepare("UPDATE _cf_KV SET value = ? WHERE key = 'code'").run(older);
    database.close();
  }
}

it("a code that nobody approves expires at the service, and the sign-in ends with 3 and keeps nothing", async () => {
  const controlPlane = await startControlPlane({});
  const way = await networkTo(Number(new URL(controlPlane.siteUrl).port));
  try {
    const config = mkdtempSync(join(home, "login-"));
    const env = { BERTH_URL: way.url, XDG_CONFIG_HOME: config };
    let polls = 0;
    way.cutAfterBytes = (asked) => {
      if (asked.includes("poll")) polls++;
      return Infinity;
    };
    const login = start(["login", "--no-browser"], { env });
    await until(
      () => polls,
      (count) => count > 0,
    );
    const { promise, resolve } = Promise.withResolvers<void>();
    way.delay = promise;
    await controlPlane.whileStopped(ageCodes);
    resolve();
    expect(await login.ended).toMatchObject({ code: 3, stderr: expect.stringContaining("has expired") });
    expect(readdirSync(config)).toEqual([]);
  } finally {
    way.close();
    await controlPlane.stop();
  }
});

it.each([
  ["+5h", "5 h ahead"],
  ["-400d", "400 d behind"],
])("a clock that is off (%s) hinders no command, and doctor says how far", async (offset, text) => {
  const options = { env: { BERTH_TOKEN: await newKey(offset) }, under: ["faketime", "-f", offset] };
  for (const args of [["whoami"], ["sites", "list"], ["exec", "true"]])
    expect([args, (await start(args, options).ended).code]).toEqual([args, 0]);
  const doctor = await start(["doctor"], options).ended;
  expect(doctor).toMatchObject({ code: 1, stdout: expect.stringMatching(new RegExp(`✗ clock.*${text}`)) });
});

it.each([
  ["+3y", "expired"],
  ["-3y", "not yet valid"],
])(
  "where a clock (%s) makes the certificate of the service invalid, the command names the clock",
  async (offset, reason) => {
    const { url, caFile, close } = await withTls();
    try {
      const env = { BERTH_URL: url, BERTH_TOKEN: await newKey(`TLS ${offset}`), NODE_EXTRA_CA_CERTS: caFile };
      expect((await start(["whoami"], { env }).ended).code).toBe(0);
      const off = { env, under: ["faketime", "-f", offset] };
      const refused = await start(["whoami"], off).ended;
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringMatching(`certificate.*${reason}[^]*clock`),
      ]);
      // Asking again would not help.
      expect(refused.stderr).not.toContain("trying again");
      const doctor = await start(["doctor"], off).ended;
      expect(doctor).toMatchObject({ code: 1, stdout: expect.stringMatching(/✗ service .*clock/) });
    } finally {
      close();
    }
  },
);

/** The service behind TLS, with a certificate of an authority of its own that is valid for a year. */
async function withTls() {
  const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: "CN=berth",
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 365 * 86_400_000),
    keys,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [new SubjectAlternativeNameExtension([{ type: IP, value: "127.0.0.1" }])],
  });
  const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  const key = `-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----\n`;
  const cert = certificate.toString("pem");
  const caFile = join(mkdtempSync(join(home, "tls-")), "ca.pem");
  writeFileSync(caFile, cert);
  const server = createTlsServer({ key, cert }, (socket) => {
    const far = connect(port, "127.0.0.1");
    for (const one of [socket, far]) one.on("error", () => undefined);
    socket.pipe(far).pipe(socket);
  });
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caFile,
    close: () => void server.close(),
  };
}
