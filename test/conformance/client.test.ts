import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";
import { readGitHost, stateDirectory } from "../support/embedded-service.ts";
import { baseUrl, password, person, send, siteUrl } from "./service.ts";

const run = promisify(execFile);
const here = join(import.meta.dirname, "client");
const bin = (name: string) => join(here, "node_modules", ".bin", name);
// Beside the driver, so that both find the same packages.
const folder = mkdtempSync(join(here, "generated-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a client generated from openapi.json type-checks and drives the main job", async () => {
  const { body } = await send(null, "GET", "/openapi.json");
  writeFileSync(join(folder, "openapi.json"), JSON.stringify(body));
  await run(process.execPath, [
    bin("openapi-typescript"),
    join(folder, "openapi.json"),
    "-o",
    join(folder, "schema.d.ts"),
  ]);
  copyFileSync(join(here, "drive.ts"), join(folder, "drive.ts"));
  const checked = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--allowImportingTsExtensions",
    "--noUncheckedIndexedAccess",
  ];
  const target = [
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
    "--target",
    "es2024",
    "--types",
    "node",
  ];
  await run(process.execPath, [bin("tsc"), ...checked, ...target, join(folder, "drive.ts")]).catch(
    (error: { stdout: string }) => {
      throw new Error(error.stdout);
    },
  );

  const somebody = await person();
  const { key } = await somebody.newKey();
  // The embedded service has a Git server; another deployment shows an honest failure.
  const source = stateDirectory && readGitHost();
  const githubUrl = source ? `${source}/examples/static-page.git` : "git.invalid/owner/repo";
  const { stdout } = await run(process.execPath, [
    join(folder, "drive.ts"),
    baseUrl,
    siteUrl,
    key,
    githubUrl,
    somebody.email,
    password,
  ]);
  const driven = JSON.parse(stdout) as { status: string; url: string; lines: string[] };
  expect(driven.status).toBe(source ? "RUNNING" : "FAILED");
  expect(driven.url).toMatch(/^https?:\/\//);
  expect(driven.lines.length).toBeGreaterThan(0);
});
