import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { local, pay, plainServer, remove, Repository, request } from "./service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const home = temporaryFolder();
const program = join(home, "berth.mjs");
const checkout = join(home, "checkout");
beforeAll(() => bundleCli(program));

type Run = { code: number | null; stdout: string; stderr: string };
const berth = (...args: string[]): Promise<Run> => run(args);
/** @param interruptedBy what it prints when Ctrl-C is pressed */
function run(args: string[], { cwd = checkout, interruptedBy = /$^/ } = {}): Promise<Run> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      BERTH_URL: local.siteUrl,
      BERTH_TOKEN: local.apiKey,
    },
    stdio: "pipe",
  });
  child.stdin.end();
  const told: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (part: Buffer) => (told.stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => {
    told.stderr += part.toString();
    if (!child.killed && interruptedBy.test(told.stderr)) child.kill("SIGINT");
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ ...told, code })));
}

it("a checkout gets its berth.json, the site that it describes, and changes only by it", async () => {
  const repository = new Repository(plainServer("one"));
  mkdirSync(checkout);
  execFileSync("git", ["init", "--quiet", checkout]);
  execFileSync("git", ["-C", checkout, "remote", "add", "origin", `https://${repository.address}`]);
  const name = `up-${Date.now().toString(36)}`;
  expect(await berth("init", "--name", name)).toMatchObject({ code: 0 });
  const path = join(checkout, "berth.json");
  const file = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  // Without a commit, the branch of the checkout is a name only, and not one that the repository has.
  expect(file).toMatchObject({ name, source: { repository: repository.address } });
  expect(file["source"]).not.toHaveProperty("branch");
  const published = await request(String(file["$schema"]));
  expect(JSON.parse(published.text)).toMatchObject({ title: "berth.json", type: "object" });
  const write = (more: object) => writeFileSync(path, JSON.stringify({ ...file, ...more }));
  write({ variables: { GREETING: "hello" } });

  expect(await berth("diff")).toMatchObject({ code: 1, stdout: expect.stringContaining(`+ site ${name}`) });
  const created = await berth("up", "--json");
  expect([created.code, created.stderr]).toMatchObject([
    0,
    expect.stringContaining(`Pay to start ${name}: `),
  ]);
  const { siteId, invoices } = JSON.parse(created.stdout) as { siteId: string; invoices: string[] };
  await pay(invoices[0]?.split("/").at(-1) ?? "");
  expect((await berth("deployments", "follow")).code).toBe(0);
  expect(await berth("diff")).toMatchObject({ code: 0, stdout: "No difference.\n" });
  expect(await berth("up")).toMatchObject({ code: 0, stdout: "No difference.\n" });

  write({
    variables: {},
    settings: { replicas: 2 },
    schedules: [{ name: "nightly", cron: "0 3 * * *", command: "true" }],
  });
  expect(await berth("up")).toMatchObject({ code: 0, stderr: expect.stringContaining("kept") });
  expect(JSON.parse((await berth("diff", "--json")).stdout)).toEqual({
    changes: [],
    kept: [{ kind: "removeVariable", name: "GREETING" }],
  });
  expect(await berth("up", "--prune")).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
  expect(await berth("up", "--prune", "--yes")).toMatchObject({ code: 0 });
  expect((await berth("diff")).stdout).toBe("No difference.\n");

  expect((await berth("init", "--force")).code).toBe(0);
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ settings: { replicas: 2 } });
  expect(await berth("diff")).toMatchObject({ code: 0, stdout: "No difference.\n" });

  const { url } = JSON.parse((await berth("sites", "show", "--json")).stdout) as { url: string };
  const status = async () => (await request(url)).status;
  expect((await berth("ingress", "maintenance", "on", "--message", "Back soon")).code).toBe(0);
  await expect.poll(status).toBe(503);
  expect((await berth("ingress", "show")).stdout).toContain("Back soon");
  expect((await berth("ingress", "maintenance", "off")).code).toBe(0);
  await expect.poll(status).toBe(200);
  expect((await berth("ingress", "redirect", "/old", "/new", "--code", "302")).code).toBe(0);
  const old = async () => (await request(new URL("/old", url).href)).headers.location;
  await expect.poll(old).toMatch(/\/new$/);
  expect((await berth("ingress", "unredirect", "/old")).code).toBe(0);
  await expect.poll(old).toBe(undefined);
  expect(await berth("ingress", "unredirect", "/old")).toMatchObject({ code: 4 });
  const history = JSON.parse((await berth("env", "history", "--json")).stdout) as {
    data: { version: number }[];
  };
  expect(history.data.length).toBeGreaterThan(1);
  expect((await berth("env", "restore", String(history.data[1]?.version))).code).toBe(0);
  expect((await berth("env", "list")).stdout).toContain("GREETING");
  expect((await berth("traffic")).stdout).toContain("Requests");

  write({ name: "another" });
  expect(await berth("up")).toMatchObject({ code: 2, stderr: expect.stringContaining("linked to") });
  writeFileSync(path, JSON.stringify({ name, prot: 80 }));
  expect(await berth("up")).toMatchObject({ code: 2, stderr: expect.stringContaining("prot") });
  await remove(siteId);
});

it("Ctrl-C in the middle of up ends with 130, and the next one takes the steps that are left, each once", async () => {
  const folder = join(home, "interrupted");
  mkdirSync(folder);
  execFileSync("git", ["init", "--quiet", folder]);
  const name = `cut-${Date.now().toString(36)}`;
  const data = `${name}-data`;
  const file = {
    name,
    source: { image: "nginx" },
    variables: { GREETING: "hello", COLOUR: "blue" },
    databases: [{ name: data, type: "redis" }],
    domains: ["www", "shop", "blog"].map((each) => `${each}.${name}.example.org`),
  };
  writeFileSync(join(folder, "berth.json"), JSON.stringify(file));
  const codes: (number | null)[] = [];
  const steps: string[] = [];
  // Pressed as soon as a step is done: what is asked for at that moment is cut off, and may have had its effect.
  while (codes.at(-1) !== 0 && codes.length < 20) {
    const { code, stderr } = await run(["up"], {
      cwd: folder,
      interruptedBy: codes.length < 12 ? /✓/ : /$^/,
    });
    codes.push(code);
    steps.push(...stderr.split("\n").filter((line) => line.startsWith("✓")));
  }
  expect([codes.at(-1), new Set(codes.slice(0, -2))]).toEqual([0, new Set([130])]);
  // Pressed at its last step, it may be over, and no longer listen: then the signal itself ends it.
  expect([130, null]).toContain(codes.at(-2));
  expect(new Set(steps).size).toBe(steps.length);
  expect(await run(["diff"], { cwd: folder })).toMatchObject({ code: 0, stdout: "No difference.\n" });

  const list = async (...args: string[]) =>
    (
      JSON.parse((await run([...args, "--json"], { cwd: folder })).stdout) as {
        data: { id: string; name: string }[];
      }
    ).data;
  const own = (await list("sites", "list")).filter((one) => one.name === name);
  const databases = (await list("databases", "list")).filter((one) => one.name === data);
  expect([own.length, databases.length]).toEqual([1, 1]);
  const { domains } = JSON.parse(
    (await run(["sites", "show", own[0]?.id ?? "", "--json"], { cwd: folder })).stdout,
  ) as { domains: { domain: string }[] };
  expect(domains.map(({ domain }) => domain).toSorted()).toEqual(file.domains.toSorted());

  // A schedule is for who has paid: it says where, and takes nothing back.
  const schedules = [{ name: "nightly", cron: "0 3 * * *", command: "true" }];
  writeFileSync(join(folder, "berth.json"), JSON.stringify({ ...file, schedules }));
  const unpaid = await run(["up"], { cwd: folder });
  expect(unpaid).toMatchObject({ code: 7, stderr: expect.stringContaining("/invoice/inv_") });
  for (const [noun, id] of [["sites", own[0]?.id] as const, ["databases", databases[0]?.id] as const])
    expect((await run([noun, "delete", id ?? "", "--yes"], { cwd: folder })).code).toBe(0);
});
