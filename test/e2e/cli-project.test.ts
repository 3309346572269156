import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bundleCli } from "../../scripts/lib/bundle.ts";
import { local, pay, plainServer, remove, Repository, request } from "./service.ts";

const home = mkdtempSync(join(tmpdir(), "berth-project-"));
const program = join(home, "berth.mjs");
const checkout = join(home, "checkout");
beforeAll(() => bundleCli(program));
afterAll(() => rmSync(home, { recursive: true, force: true }));

type Run = { code: number | null; stdout: string; stderr: string };
function berth(...args: string[]): Promise<Run> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: checkout,
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      BERTH_URL: local.siteUrl,
      BERTH_TOKEN: local.apiKey,
    },
    stdio: "pipe",
  });
  child.stdin.end();
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (part: Buffer) => (run.stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (run.stderr += part.toString()));
  return new Promise((resolve) => child.once("close", (code) => resolve({ ...run, code })));
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
  expect(file).toMatchObject({ name, source: { repository: repository.address.replace(/\.git$/, "") } });
  const published = await request(String(file["$schema"]));
  expect(JSON.parse(published.text)).toMatchObject({ title: "berth.json", type: "object" });
  // The embedded Git server knows the address with its ending only.
  const write = (more: object) =>
    writeFileSync(path, JSON.stringify({ ...file, source: { repository: repository.address }, ...more }));
  write({ variables: { GREETING: "hello" } });

  expect(await berth("diff")).toMatchObject({ code: 1, stdout: expect.stringContaining(`+ site ${name}`) });
  const created = await berth("up", "--json");
  expect([created.code, created.stderr]).toMatchObject([0, expect.stringContaining("Pay to start it")]);
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

  write({ name: "another" });
  expect(await berth("up")).toMatchObject({ code: 2, stderr: expect.stringContaining("linked to") });
  writeFileSync(path, JSON.stringify({ name, prot: 80 }));
  expect(await berth("up")).toMatchObject({ code: 2, stderr: expect.stringContaining("prot") });
  await remove(siteId);
});
