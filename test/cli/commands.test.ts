import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { idPrefixes } from "../../protocol/ids.ts";
import { answers } from "../../protocol/cli.ts";
import { shellLine } from "../../cli/commands/exec.ts";
import { printedBy, type Printed } from "../../cli/command.ts";
import { createProgram, everyCommand, type AnyCommand } from "../../cli/program.ts";
import { entryOperations } from "../../protocol/api/entry-operations.ts";
import { operations, type Operation } from "../../protocol/api/operations.ts";
import { answerOf, answeringService, type Service } from "../support/answering-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const site = "site_001m80000000000000000000000";
const database = "db_001m80000000000000000000000";
const host = "host_001m80000000000000000000000";
const id = "x_001m80000000000000000000000";

/**
 * The arguments of each command, all of whose parts the service must take. A text says where a command is run that ends
 * only by Ctrl-C, or is the terminal's.
 */
const rows: Record<string, string[] | string> = {
  login: ["--token", "sk_test"],
  logout: [],
  whoami: [],
  "profiles list": [],
  "profiles use": ["default"],
  keys: [],
  "notifications list": [],
  "notifications add": ["webhook", "unhealthy", "--to", "https://example.com/hook"],
  "notifications set": [id, "enabled=false", 'kinds=["unhealthy"]'],
  "notifications test": [id],
  "notifications delete": [id],
  "notifications deliveries": ["--status", "sent"],
  activity: ["--actor", "key"],
  search: ["shop"],
  unhealthy: [],
  disk: [],
  watch: "processes.test.ts",
  "sites list": [],
  "sites show": [],
  "sites create": ["shop", "--repository", "https://github.com/acme/shop.git"],
  "sites clone": ["shop-two"],
  "sites set": ["port=8080", "keptImages=3", "healthCheckPath=/up", "languageVersion=22"],
  "sites resize": ["pack_001k0000000000000000000002"],
  "sites start": [],
  "sites stop": [],
  "sites restart": [],
  "sites diagnose": [],
  "sites health": [],
  "sites probe": ["--path", "/up"],
  "sites disk": [],
  "sites delete": [site],
  init: ["--force"],
  diff: [],
  up: [],
  deploy: ["--ref", "v1.2.3"],
  "deployments list": [],
  "deployments show": [id],
  "deployments explain": [id],
  "deployments compare": [id, "dep_001m80000000000000000000001"],
  "deployments follow": [id],
  "deployments logs": [id],
  "deployments cancel": [id],
  rollback: [],
  logs: [],
  requests: ["--status", "5xx"],
  traffic: [],
  metrics: [],
  events: [],
  open: [],
  link: [site],
  unlink: [],
  "env list": [],
  "env set": ["A=1", "B=two words"],
  "env generate": ["SECRET", "--length", "20"],
  "env unset": ["A"],
  "env pull": ["pulled.env", "--force"],
  "env push": ["some.env"],
  "env diff": ["some.env"],
  "env history": [],
  "env restore": ["3"],
  "domains list": [],
  "domains add": ["www.example.com"],
  "domains verify": ["www.example.com"],
  "domains renew": ["www.example.com"],
  "domains remove": ["www.example.com"],
  "ingress show": [],
  "ingress set": ["httpsOnly=true", "hsts.maxAgeSeconds=86400", 'allow=["203.0.113.0/24"]', "maxBodyMb=null"],
  "ingress maintenance": ["on", "--message", "Back soon"],
  "ingress redirect": ["/old", "/new"],
  "ingress unredirect": ["/old"],
  "ingress protect": "processes.test.ts",
  "ingress unprotect": [],
  terminal: "e2e/cli-streams.test.ts",
  exec: ["--", "npm", "run", "migrate"],
  "jobs list": [],
  "jobs show": [id],
  "jobs logs": [id],
  "jobs cancel": [id],
  "schedules list": [],
  "schedules create": ["nightly", "0 3 * * *", "npm run nightly"],
  "schedules set": [id, "--disable"],
  "schedules delete": [id],
  "volumes list": [],
  "volumes ls": ["data"],
  "volumes cat": ["data", "notes.txt"],
  "volumes cp": ["data", "notes.txt", "copied.txt"],
  "volumes backup": ["data"],
  "volumes backups": ["data"],
  "volumes schedule": ["data", "daily", "--keep", "3"],
  "volumes restore": ["data", id],
  "volumes delete": ["data"],
  "webhook show": [],
  "webhook rotate": [],
  "databases list": [],
  "databases show": [database],
  "databases create": ["main", "postgresql"],
  "databases credentials": [database],
  "databases connect": "e2e/cli-streams.test.ts",
  "databases tunnel": "processes.test.ts",
  "databases query": [database, "SELECT 1"],
  "databases schema": [database],
  "databases insight": [database],
  "databases logs": [database],
  "databases metrics": [database],
  "databases events": [database],
  "databases start": [database],
  "databases stop": [database],
  "databases restart": [database],
  "databases link": [database],
  "databases unlink": [database],
  "databases rotate": [database],
  "databases restore": [database, id],
  "databases disk": [database],
  "databases end-session": [database, "17"],
  "databases resize": [database, "pack_001k0000000000000000000002"],
  "databases delete": [database],
  "backups list": [],
  "backups create": [database],
  "backups verify": [id],
  "backups download": [id, "some.backup", "--force"],
  "backups delete": [id],
  "packs list": [],
  "packs all": [],
  "packs create": ["kind=site", "name=Big", "amountCents=900", "memoryMb=2048", "cpuMilli=2000", "diskGb=20"],
  "packs set": [id, "active=false", "discounts.12=10"],
  "invoices list": [],
  "invoices show": [id],
  "invoices open": [id],
  "invoices wait": [id],
  "invoices pdf": [id, "some.pdf", "--force"],
  "invoices cancel": [id],
  "billing show": [],
  "billing set": ["name=Ada Ltd", "vatId=null"],
  "credits show": [],
  "credits packages": [],
  "credits buy": [id],
  "credits grant": ["ada@example.com", "5"],
  "credits all-packages": [],
  "credits create-package": ["Small", "10", "100"],
  "credits set-package": [id, "active=false"],
  chat: ["help"],
  "conversations list": [],
  "conversations show": [id],
  "conversations rename": [id, "A title"],
  "conversations delete": [id],
  "conversations price": [],
  "operator overview": [],
  "operator system": [],
  "operator dns": [],
  "operator test-mail": [],
  "operator check-payments": [],
  "operator rotate-secrets": [],
  "operator sites": ["--status", "FAILED"],
  "operator databases": [],
  "operator invoices": ["--status", "paid"],
  "operator void": [id],
  "operator preview-refund": [id],
  "operator refund": [id, "--force"],
  "operator flagged-payments": ["--resolved"],
  "operator resolve-payment": [id, "refunded by hand"],
  "operator verify-ledger": [],
  "operator activity": [],
  "operator failing-backups": [],
  "hosts list": [],
  "hosts create": ["one"],
  "hosts set": ["fra-1", "ipv4=203.0.113.7", "ipv6=null"],
  "hosts drain": ["fra-1"],
  "hosts activate": [host],
  "hosts delete": ["fra-1", "--force"],
  "hosts usage": ["fra-1"],
  "hosts set-aside": ["fra-1"],
  "hosts delete-set-aside": ["fra-1", site],
  "queue list": ["--state", "stuck"],
  "queue cancel": [id],
  "queue retry": [id],
  "accounts list": ["--suspended"],
  "accounts show": [id],
  "accounts set": [id, "plan=pro"],
  "accounts resize": [site, "pack_001k0000000000000000000002"],
  "accounts suspend": [id, "--reason", "Unpaid"],
  "accounts release": [id],
  "accounts disable-two-factor": [id],
  "settings show": [],
  "settings set": ["brand.name=Acme", "seller.vatId=null"],
  api: ["getSite", `id=${site}`],
  doctor: [],
  completion: ["bash"],
  upgrade: "processes.test.ts",
};

const program = createProgram();
const pathOf = (one: AnyCommand): string =>
  one.parent?.parent ? `${pathOf(one.parent)} ${one.name()}` : one.name();
const leaves = everyCommand(program).filter(({ commands }) => commands.length === 0);

let service: Service;
const folder = temporaryFolder();
const before = join(import.meta.dirname, "../..");
beforeAll(async () => {
  const described = answerOf("getSite").value as { ingress: object };
  const schedule = (answerOf("listSchedules").value as { data: object[] }).data[0];
  const pack = (answerOf("listAllPacks").value as { data: object[] }).data[0];
  const shop = {
    ...described,
    id: site,
    name: "shop",
    url: "https://shop.example",
    envVariables: [{ key: "A", value: "1", encrypted: false, scope: "both" }],
    ingress: { ...described.ingress, redirects: [{ from: "/old", to: "/new", code: 308 }] },
  };
  const listedHost = (answerOf("listHosts").value as { data: object[] }).data[0];
  const line = { seq: 1, at: "2026-11-23T12:00:00.000Z", stream: "stdout", text: "done" };
  service = await answeringService({
    getSite: shop,
    getDeployment: { status: "LIVE", error: null },
    getCommandLogs: { data: [line] },
    getCommand: { status: "SUCCEEDED", exitCode: 0 },
    getInvoice: { status: "paid" },
    getBackup: { status: "STORED" },
    listSites: { data: [shop] },
    listHosts: { data: [{ ...listedHost, id: host, name: "fra-1" }] },
    listAllPacks: { data: [{ ...pack, id }] },
    listSchedules: { data: [{ ...schedule, cron: "0 3 * * *" }] },
    browseFiles: { kind: "file", path: "/notes.txt", text: "hello", sizeBytes: 5, truncated: false },
    chat: { pendingAction: null },
  });
  service.instead = ({ id: operation, body }) =>
    operation === "patchSite" && body.includes('"settings"')
      ? shop
      : operation === "linkBackup"
        ? { url: `${service.url}/backups/${id}/download?expires=1&by=key_1&signature=${"a".repeat(43)}` }
        : undefined;
  process.chdir(folder);
  execFileSync("git", ["init", "--quiet", "."]);
  execFileSync("git", ["remote", "add", "origin", "https://github.com/acme/shop.git"]);
  writeFileSync("berth.json", JSON.stringify({ name: "shop", settings: { port: 4000 } }));
  writeFileSync("some.env", "A=1\n");
  vi.stubEnv("XDG_CONFIG_HOME", folder);
  vi.stubEnv("BERTH_SITE", site);
  vi.stubEnv("BERTH_URL", service.url);
  vi.stubEnv("BERTH_TOKEN", "sk_test");
});
afterAll(async () => {
  vi.unstubAllEnvs();
  process.chdir(before);
  await service.close();
});

/** Runs a command in this process: what it writes, and the exit code. @throws what the command throws */
async function run(args: string[]): Promise<{ stdout: string; stderr: string; code: number }> {
  const written = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  const codeBefore = process.exitCode;
  process.exitCode = 0;
  try {
    await program.parseAsync(args, { from: "user" });
    return { ...written, code: process.exitCode };
  } finally {
    process.exitCode = codeBefore;
    for (const spy of spies) spy.mockRestore();
  }
}

it("a site from an image takes no option of a repository, which it would ignore", async () => {
  for (const option of ["--repository", "--branch", "--root-dir", "--build-command"])
    await expect(run(["sites", "create", "shop", "--image", "nginx", option, "x"])).rejects.toThrow(option);
});

it.each(["owner/name", "./shop", "/srv/shop.git", "git@github.com:shop.git"])(
  "%s, which is no address of a repository, is refused by the option's own name",
  async (address) => {
    const refused = run(["sites", "create", "shop", "--repository", address]);
    await expect(refused).rejects.toMatchObject({
      message: `${address} is not the address of a Git repository that the service could fetch.`,
      hint: expect.stringContaining("--repository github.com/owner/name") as string,
    });
  },
);

/** An operation with several answers prints one of them. */
function schemaOf(prints: Exclude<Printed, null>): z.ZodType {
  const name = typeof prints === "object" ? prints.lines : prints;
  if (name in answers) return answers[name as keyof typeof answers];
  const operation = ({ ...operations, ...entryOperations } as Record<string, Operation>)[name];
  return z.union((operation?.answers ?? []).map(({ schema }) => schema));
}

it("every command has a row here, and nothing else has", () => {
  expect(Object.keys(rows).toSorted()).toEqual(leaves.map(pathOf).toSorted());
});

describe.each(leaves.map((one) => ({ name: pathOf(one), prints: printedBy(one) })))(
  "berth $name",
  ({ name, prints }) => {
    const row = rows[name];
    const args = [...name.split(" "), ...(Array.isArray(row) ? row : []), "--yes"];
    if (prints === null || prints === undefined) {
      it("gives the terminal to another program, and refuses --json", async () => {
        const one = [...name.split(" "), ...(name.startsWith("databases") ? [database] : []), "--json"];
        await expect(run(one)).rejects.toThrow("prints no JSON");
      });
      return;
    }
    if (typeof row === "string") {
      it(`is run in ${row}`, () => {
        const file = row.startsWith("e2e/") ? `test/${row}` : `test/cli/${row}`;
        expect(readFileSync(join(before, file), "utf8")).toContain(name.split(" ").at(-1));
      });
      return;
    }
    it("prints with --json what its schema says, and nothing else", async () => {
      rmSync("copied.txt", { force: true });
      const at = args.indexOf("--");
      const { stdout, stderr } = await run(
        at < 0
          ? [...args, "--json", "--quiet"]
          : [...args.slice(0, at), "--json", "--quiet", ...args.slice(at, -1)],
      );
      const texts = typeof prints === "object" ? stdout.trim().split("\n") : [stdout];
      for (const text of texts) schemaOf(prints).parse(JSON.parse(text));
      if (name !== "exec") expect(stderr).toBe("");
    });
    it("prints text for people, without a value of the code in it", async () => {
      rmSync("copied.txt", { force: true });
      const at = args.indexOf("--");
      const { stdout } = await run(at < 0 ? args : args.slice(0, -1));
      expect(stdout.trim()).not.toBe("");
      expect(stdout).not.toMatch(/undefined|NaN|\[object Object\]|Invalid Date/);
    });
  },
);

it("words of a command for a terminal or of exec stay apart in the shell, and one word is a whole line", () => {
  expect(shellLine(["sh", "-c", "exit 9"])).toBe("sh -c 'exit 9'");
  expect(shellLine(["make && make test"])).toBe("make && make test");
});

describe("text for people", () => {
  /** What a command prints where operations have these fields in their answers. */
  async function printed(args: string[], answer: Record<string, object>): Promise<string> {
    const { instead } = service;
    service.instead = (asked) => answer[asked.id] ?? instead(asked);
    try {
      const { stdout, stderr } = await run(args);
      return stdout + stderr;
    } finally {
      service.instead = instead;
    }
  }

  it("says what has changed since the last good deployment, and what is not known", async () => {
    const changed = {
      commit: true,
      environment: [{ key: "TOKEN", change: "added" }],
      settings: ["port", "buildCommand"],
      unknownSettings: ["branch"],
    };
    const unapplied = [{ setting: "port", deployed: 3000, site: 4000 }];
    const text = await printed(["deployments", "explain", id], { explainDeployment: { changed, unapplied } });
    expect(text).toMatch(
      /Changed +the commit\n +port\n +buildCommand\n +variable TOKEN added\n +not known: branch\nNot applied +port: 3000, the site's: 4000/,
    );
  });

  it.each([
    ["sites stop", "RUNNING", "shop is being stopped."],
    ["sites stop", "STOPPED", "shop is STOPPED."],
    ["sites start", "STOPPED", "shop is being started."],
    ["sites restart", "RUNNING", "shop is being restarted."],
    ["databases stop main", "RUNNING", "main is being stopped."],
    ["databases start main", "RUNNING", "main is RUNNING."],
    ["databases restart main", "RUNNING", "main is being restarted."],
    ["jobs cancel cmd_1", "RUNNING", "cmd_1 is being cancelled."],
    ["jobs cancel cmd_1", "CANCELLED", "cmd_1 is CANCELLED."],
  ])("of berth %s with a resource that is %s is: %s", async (command, word, text) => {
    const stdout = await printed(command.split(" "), {
      listDatabases: { data: [{ id: database, name: "main" }] },
      patchSite: { status: word },
      patchDatabase: { status: word },
      cancelCommand: { id: "cmd_1", status: word },
    });
    expect(stdout).toBe(`${text}\n`);
  });

  it.each([
    [["sites", "set", "port=1", "--site", site], "deploy"],
    [["env", "set", "A=1", "--site", site], "sites restart"],
    [["env", "generate", "A", "--site", site], "sites restart"],
    [["env", "restore", "1", "--site", site], "sites restart"],
    [["env", "list", site], "env set NAME=value"],
    [["sites", "show", site], "env list"],
    [["domains", "list", site], "domains verify www.example.com --wait"],
    [["schedules", "list", site], "schedules create"],
    [["jobs", "list", site], "exec"],
  ])(
    "of berth %j names the site in the command to run next, which is another than the checkout's",
    async (args, line) => {
      const text = await printed(args, {
        getSite: {
          name: "shop",
          envVariables: args[0] === "env" ? [] : [{ key: "A", value: "1", scope: "both" }],
        },
        patchSite: { envVariables: [], restartRequired: true },
        generateSecret: { envVariables: [], restartRequired: true },
        restoreEnvVersion: { envVariables: [], restartRequired: true },
        listSchedules: { data: [] },
        listCommands: { data: [] },
        listDomains: {
          data: [
            {
              domain: "www.example.com",
              displayName: "www.example.com",
              status: "VERIFIED",
              verifiedAt: "2026-11-23T12:00:00.000Z",
              target: "shop.berth.example",
              problems: [],
            },
          ],
        },
      });
      expect(text).toContain(`berth ${line} --site ${site}`);
    },
  );

  it.each([
    [["backups", "verify", id], "backups list"],
    [["databases", "restore", database, id, "--yes"], `databases events ${database}`],
    [["deployments", "show", id], `rollback ${id} --site ${site}`],
  ])(
    "of berth %j names the profile in the command to run next, and --site only where it counts",
    async (args, line) => {
      const options = ["--site", "other", "--profile", "work", "--url", service.url, "--token", "sk_test"];
      const text = await printed([...args, ...options], {
        getDeployment: {
          id,
          siteId: site,
          number: 1,
          status: "SUPERSEDED",
          durations: {},
          key: null,
          canRollBack: true,
        },
      });
      expect(text).toContain(`berth ${line} --profile work`);
    },
  );

  it("quotes a name with spaces in the command to run next", async () =>
    expect(
      await printed(["env", "list", "My shop"], {
        listSites: { data: [{ id: site, name: "My shop", envVariables: [] }] },
      }),
    ).toContain("berth env set NAME=value --site 'My shop'"));

  it.each([
    [["sites", "create", "shop", "--image", "nginx", "--pack", "standard"], "createSite", "pack_1"],
    [["sites", "clone", "shop-two", "--pack", "Standard"], "cloneSite", "pack_1"],
    [["sites", "resize", "Standard"], "patchSite", "pack_1"],
    [["databases", "create", "main", "redis", "--pack", "Standard"], "createDatabase", "pack_2"],
    [["databases", "resize", database, "Standard"], "patchDatabase", "pack_2"],
  ])(
    "berth %j takes a pack by its name, which one of the other kind may have too",
    async (args, operation, pack) => {
      const packs = [
        { id: "pack_1", kind: "site", name: "Standard" },
        { id: "pack_2", kind: "database", name: "Standard" },
        { id: "pack_3", kind: "site", name: "Twice" },
        { id: "pack_4", kind: "site", name: "Twice" },
      ];
      const answer = { listPacks: { data: packs } };
      const from = service.asked.length;
      await printed(args, answer);
      const asked = service.asked.slice(from).find(({ id: one }) => one === operation);
      expect(JSON.parse(asked?.body ?? "{}")).toMatchObject({ packId: pack });
      await expect(printed(["sites", "resize", "Huge"], answer)).rejects.toThrow("no site pack named Huge");
      await expect(printed(["sites", "resize", "Twice"], answer)).rejects.toThrow(
        "Several site packs are named",
      );
    },
  );

  it("of a host that is named as the list names it, and of one that is not there", async () => {
    const from = service.asked.length;
    const notice = "2 sites stay.";
    const text = await printed(["hosts", "drain", "fra-1"], {
      patchHost: { name: "fra-1", status: "DRAINING", notice },
    });
    expect(text).toBe("fra-1 is DRAINING: 2 sites stay.\n");
    expect(service.asked.slice(from).at(-1)?.url).toContain(`/hosts/${host}`);
    await expect(run(["hosts", "usage", "fra-2"])).rejects.toThrow("You have no host named fra-2.");
  });

  it.each(["queue list", "operator sites", "operator databases"])(
    "%s is of a host by its name, as by its id",
    async (name) => {
      for (const chosen of ["fra-1", host]) {
        await run([...name.split(" "), "--host", chosen]);
        expect(service.asked.at(-1)?.url).toContain(`hostId=${host}`);
      }
    },
  );

  it("names the active queries of a database by the ids that end-session takes", async () => {
    const query = { statement: "SELECT  1", state: "active", waitsFor: null };
    const text = await printed(["databases", "insight", database], {
      getDatabaseInsight: {
        activeQueries: [{ ...query, id: "17", durationMs: 5000, blockedBy: ["16", "18"] }],
        slowQueries: [],
      },
    });
    expect(text).toMatch(/ID +DURATION +BLOCKED BY +STATEMENT\n17 +5\.0 s +16, 18 +SELECT 1\n\nNo slow/);
  });

  it("of one replica's log has as many lines of it as were asked for", async () => {
    const data = [1, 2, 1, 2, 2].map((replica, index) => ({
      seq: index,
      at: "2026-11-23T12:00:00.000Z",
      stream: "stdout",
      replica,
      text: `line ${index}`,
    }));
    const answer = { getSiteLogs: { data }, searchSiteLogs: { data, complete: true } };
    const last = (...args: string[]) => printed(["logs", "--replica", "1", ...args], answer);
    const from = service.asked.length;
    expect(await last("-n", "1")).toMatch(/^[^\n]*line 2\n$/);
    expect(service.asked.slice(from).at(-1)?.url).toContain("tail=1000");
    expect(await last("-n", "2")).toMatch(/line 0\n[^\n]*line 2\n$/);
    expect(await last("-n", "0")).toBe("");
    const none = { getSiteLogs: { data: [] }, searchSiteLogs: { data: [], complete: true } };
    expect(await printed(["logs"], none)).toBe("No lines: no container of the site has written any.\n");
    for (const args of [
      ["--search", "x"],
      ["--replica", "2"],
      ["--since", "1h"],
    ])
      expect(await printed(["logs", ...args], none)).toBe("No such lines.\n");
    expect(await last("-n", "1", "--search", "line")).toMatch(/^[^\n]*line 2\n$/);
    expect(service.asked.at(-1)?.url).toContain("limit=500");
  });

  it("leaves words in capitals whole, says of a disabled schedule that it does not run, and where to pay for a larger pack", async () => {
    const overview = { sites: { DEPLOYING: 1, currentVersion: 2 } };
    const text = await printed(["operator", "overview"], { getOverview: overview });
    expect(text).toMatch(/sites deploying +1\nsites current version +2/);
    const disabled = ["schedules", "create", "nightly", "@daily", "true", "--disabled"];
    expect(
      await printed(disabled, { createSchedule: { name: "nightly", enabled: false, nextRunAt: null } }),
    ).toBe("✓ nightly is made, and disabled.\n");
    const changed = { patchSite: { invoiceToken: "inv_1" }, patchDatabase: { invoiceToken: "inv_1" } };
    for (const args of [
      ["sites", "resize", "pack_1"],
      ["databases", "resize", database, "pack_1"],
    ]) {
      expect(await printed(args, changed)).toContain(`${service.url}/invoice/inv_1`);
      const none = { patchSite: { invoiceToken: null }, patchDatabase: { invoiceToken: null } };
      expect(await printed(args, none)).not.toContain("/invoice/");
    }
  });

  it("rotates secrets until a pass finds none that is left, and fails where some are left or cannot be read", async () => {
    const page = { examined: 3, resealed: 0, overtaken: 0, unreadable: [], nextCursor: null };
    const rotated = async (...pages: object[]) => {
      const { instead } = service;
      let at = 0;
      service.instead = (asked) =>
        asked.id === "rotateSecrets" ? { ...page, ...pages[at++] } : instead(asked);
      const { stdout, code } = await run(["operator", "rotate-secrets"]).finally(
        () => (service.instead = instead),
      );
      return { stdout, code, calls: at };
    };
    const all = {
      code: 0,
      stdout: expect.stringContaining("All secrets are encrypted with the current key."),
    };
    expect(await rotated()).toMatchObject({ ...all, calls: 1 });
    const busy = [{ nextCursor: "sites/1", resealed: 2 }, { overtaken: 1 }, { resealed: 1 }];
    expect(await rotated(...busy)).toMatchObject({
      ...all,
      calls: 4,
      stdout: expect.stringContaining("3 values re-encrypted"),
    });
    expect(await rotated({ unreadable: ["hosts:host_1"] })).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^No key decrypts hosts:host_1: (?![^]*All secrets)/m),
    });
    const left = await rotated(...Array.from({ length: 20 }, () => ({ resealed: 1 })));
    expect(left).toMatchObject({
      code: 1,
      calls: 10,
      stdout: expect.stringContaining("run this again later"),
    });
  });

  it("says by … that a text in a list goes on", async () => {
    const text = "one ".repeat(30);
    const query = { id: "17", statement: text, blockedBy: [] };
    const of = (args: string[]) =>
      printed(args, {
        listDeployments: { data: [{ id, status: "FAILED", error: text, trigger: "api", key: null }] },
        listCommands: { data: [{ id, status: "RUNNING", trigger: "api", exitCode: 0, command: text }] },
        listSchedules: { data: [{ id, name: "nightly", cron: "@daily", command: text, nextRunAt: null }] },
        getDatabaseInsight: { activeQueries: [query], slowQueries: [query] },
        getSite: { envVariables: [{ key: "A", value: text, scope: "both" }] },
      });
    for (const args of [
      ["deployments", "list"],
      ["jobs", "list"],
      ["schedules", "list"],
      ["env", "list"],
    ])
      expect(await of([...args, site])).toMatch(/one(?: o)?…/);
    expect(await of(["databases", "insight", database])).toMatch(/one…\n[^]*one…\n/);
  });

  it("asks for no CNAME record at the root of a zone, where none can be", async () => {
    const createDomain = {
      domain: "example.com",
      status: "PENDING_VERIFICATION",
      target: "shop.sites.example",
    };
    expect(await printed(["domains", "add", "example.com"], { createDomain })).toMatch(
      /Point it +CNAME, or ALIAS\/A at the root of a zone: example\.com → shop\.sites\.example\n/,
    );
  });

  it("says of a downloaded backup that failed its verification that it may be damaged", async () => {
    const download = (status: string) =>
      printed(["backups", "download", id, "some.backup", "--force"], { getBackup: { status } });
    expect(await download("FAILED")).toContain("may be damaged");
    expect(await download("STORED")).not.toContain("damaged");
  });

  it("does not call settings the same that are not known", async () => {
    const none = { settings: [], environment: [] };
    const compare = async (unknownSettings: string[]) =>
      printed(["deployments", "compare", id, "dep_other"], {
        compareDeployments: { ...none, unknownSettings },
      });
    expect(await compare([])).toMatch(/Settings +the same\nVariables +the same \(linked databases are not/);
    const text = await compare(["buildCommand", "branch"]);
    expect(text).toMatch(/Not known +buildCommand, branch: /);
    expect(text).not.toMatch(/Settings +the same/);
  });
});

/** Commands whose answer is a page, of operations that take a cursor. */
const pages = leaves.filter((one) => {
  // Price lists are short; secrets are rotated to the end by the command itself.
  if (["packs list", "credits packages", "operator rotate-secrets"].includes(pathOf(one))) return false;
  const prints = printedBy(one);
  const operation = (operations as Record<string, Operation>)[typeof prints === "string" ? prints : ""];
  const nextCursor = (operation?.answers[0]?.schema as { shape?: object } | undefined)?.shape;
  return (
    nextCursor !== undefined && "nextCursor" in nextCursor && "cursor" in (operation?.query?.shape ?? {})
  );
});
it("pages of lists are known here", () => expect(pages.length).toBeGreaterThan(20));
it.each(pages.map((one) => [pathOf(one), one] as const))(
  "berth %s says how the next page is read, and reads it",
  async (name, one) => {
    const id = printedBy(one) as string;
    const flags = one.options.map(({ long }) => long);
    expect(flags).toEqual(expect.arrayContaining(["--limit", "--cursor"]));
    const row = rows[name];
    const schema = (operations as Record<string, Operation>)[id]?.query?.shape["cursor"] as z.ZodType;
    const cursor =
      [...Object.values(idPrefixes).map((prefix) => `${prefix}_1`), "7"].find(
        (text) => schema.safeParse(text).success,
      ) ?? "";
    const instead = service.instead;
    service.instead = (asked) => (asked.id === id ? { nextCursor: "next-page" } : instead(asked));
    const args = [...name.split(" "), ...(Array.isArray(row) ? row : []), "--cursor", cursor];
    const from = service.asked.length;
    const { stdout } = await run(args).finally(() => (service.instead = instead));
    expect(stdout).toContain("More: --cursor ");
    const asked = service.asked.slice(from).find((each) => each.id === id);
    expect(new URL(asked?.url ?? "", service.url).searchParams.get("cursor")).toBe(cursor);
  },
);

describe("a connection that breaks after the request has arrived", () => {
  const created = leaves.map(pathOf).filter((name) => {
    const prints = printedBy(leaves.find((one) => pathOf(one) === name) ?? {});
    const operation = (operations as Record<string, Operation>)[typeof prints === "string" ? prints : ""];
    return operation?.creates !== undefined || name === "credits grant" || name === "credits buy";
  });
  it.each([...created, "exec", "deploy", "rollback"])(
    "leads `berth %s` to ask again as the same request, so that nothing is made twice",
    async (name) => {
      const row = rows[name];
      const from = service.asked.length;
      let cuts = 0;
      service.cut = ({ method }) => method !== "GET" && cuts++ === 0;
      const at = Array.isArray(row) ? row.indexOf("--") : -1;
      const given = Array.isArray(row) ? row : [];
      await run([...name.split(" "), "--quiet", ...(at < 0 ? ["--yes", ...given] : given)]);
      service.cut = () => false;
      const changes = service.asked.slice(from).filter(({ method }) => method !== "GET");
      expect(changes.length).toBe(2);
      expect(changes[1]).toEqual({ ...changes[0], headers: expect.anything() });
      const keys = changes.map(({ headers }) => headers["idempotency-key"]);
      expect([keys[0], keys[1]]).toEqual([expect.stringMatching(/^[\w-]{30,}$/), keys[0]]);
    },
  );
});

describe("the operations", () => {
  /** Not a person's at a terminal: of browsers, of other services, or of a first set-up. */
  const elsewhere = new Set(
    [
      "listKeys createKey revokeKey patchAccountProfile listSessions revokeSession revokeOtherSessions",
      "exportAccount getAccountDeletion deleteAccount triggerWebhook receiveStripeEvent getOpenApi setUp signUp",
      "signIn getSession signOut requestPasswordReset resetPassword getInvoiceByToken payInvoice followConversation",
      "downloadBackup listBackups",
    ]
      .join(" ")
      .split(" "),
  );
  const called = new Set<string>();

  it("are each called by a command, or are those of pages and other programs", () => {
    for (const file of readdirSync(join(before, "cli"), { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".ts")) continue;
      const source = readFileSync(join(before, "cli", file), "utf8");
      for (const [, name = ""] of source.matchAll(/"([a-z][A-Za-z]+)"/g)) called.add(name);
    }
    const missing = Object.keys({ ...operations, ...entryOperations }).filter(
      (name) => !called.has(name) && !elsewhere.has(name),
    );
    expect(missing).toEqual([]);
  });

  it.each(Object.entries({ ...operations, ...entryOperations } as Record<string, Operation>))(
    "%s is reached by `berth api`",
    async (name, operation) => {
      const params = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, param]) => `${param}=7`);
      const body = Object.entries(operation.examples?.body ?? {}).map(
        ([field, value]) => `${field}=${JSON.stringify(value)}`,
      );
      const query = Object.entries(operation.query?.shape ?? {}).flatMap(([field, schema]) =>
        (schema as z.ZodType).safeParse(undefined).success ? [] : [`${field}=text`],
      );
      const from = service.asked.length;
      const isEvents = operation.streams && !("follow" in (operation.query?.shape ?? {}));
      if (isEvents && operation.method === "get") return expect(operation.streams).toBe(true);
      // What its body must have is the service's to say; here it is that the request arrives.
      await run(["api", name, ...params, ...query, ...body]).catch((error: unknown) =>
        expect(error).toMatchObject({ code: "invalid_request" }),
      );
      expect(service.asked[from]?.id).toBe(name);
    },
  );
});
