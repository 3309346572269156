import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

const root = join(import.meta.dirname, "../..");

/** A paid Worker may weigh 10 MB; the free plan's 3 MB is the aim, with room for what is to come. */
const maxGzipKiB = 1408;

it("the Worker bundles by wrangler's own rules without a network, with the bindings it reads, and is small", async () => {
  const folder = temporaryFolder();
  // Whatever it would ask goes nowhere.
  const nowhere = "http://127.0.0.1:1";
  const { stdout } = await promisify(execFile)(
    join(root, "node_modules", ".bin", "wrangler"),
    ["deploy", "--dry-run", "--outdir", folder],
    {
      cwd: root,
      env: {
        ...process.env,
        HTTPS_PROXY: nowhere,
        HTTP_PROXY: nowhere,
        WRANGLER_SEND_METRICS: "false",
        WRANGLER_LOG_PATH: folder,
        NO_COLOR: "1",
      },
    },
  );
  const [said = "", sizeKiB, gzipKiB] = /Total Upload: ([\d.]+) KiB \/ gzip: ([\d.]+) KiB/.exec(stdout) ?? [];
  console.log(said);
  expect(Number(sizeKiB)).toBeGreaterThan(0);
  expect(Number(gzipKiB)).toBeLessThan(maxGzipKiB);
  for (const name of [
    "HOST_LINK",
    "KEY_GUARD",
    "DEPLOYMENT_LOG",
    "DEVICE_CODE",
    "RATE_LIMIT",
    "CONVERSATION",
    "PENDING_CALL",
    "DB",
    "BACKUPS",
    "ASSETS",
  ])
    expect(stdout).toContain(`env.${name} `);
  expect(stdout).not.toMatch(/warning/i);
});
