import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./lib/bundle.ts";
import { installPackages } from "./lib/docker-engine.ts";
import { leftoversFile } from "./lib/engine-leftovers.ts";
import { startEmbeddedService } from "./lib/embedded-service.ts";

/** Programs that tests run, and Debian's packages of them. */
const tools = {
  // The pages in a real browser, and the invoices they print.
  "/usr/bin/chromium": "chromium",
  "/usr/bin/pdftotext": "poppler-utils",
  // Let's Encrypt's test server, for sites' certificates.
  "/usr/bin/pebble": "pebble",
  // It reads the units that the install script writes; nothing is started.
  "/usr/bin/systemd-analyze": "systemd",
};

/** Every tier, on a service started for it. Arguments go to vitest; what cannot run fails. */
let status = 1;
let closingLine = "0 passed, 1 failed";
try {
  const missing = Object.entries(tools).filter(([program]) => !existsSync(program));
  if (missing.length > 0) await installPackages(missing.map(([, name]) => name));
  const service = await startEmbeddedService("test", {
    BERTH_START_TIMEOUT_SECONDS: "15",
    BERTH_BUILD_TIMEOUT_SECONDS: "60",
  });
  const closingLineFile = join(service.stateDirectory, "closing-line.txt");
  rmSync(closingLineFile, { force: true });
  const vitest = spawn(
    join(projectRoot, "node_modules", ".bin", "vitest"),
    ["run", "--reporter=default", "--reporter=./test/support/closing-line.ts", ...process.argv.slice(2)],
    {
      cwd: projectRoot,
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, ...service.env, BERTH_CLOSING_LINE_FILE: closingLineFile },
    },
  );
  process.once("exit", () => vitest.kill());
  status = await new Promise<number>((resolve, reject) => {
    vitest.once("error", reject);
    vitest.once("exit", (code) => resolve(code ?? 1));
  });
  if (existsSync(closingLineFile)) closingLine = readFileSync(closingLineFile, "utf8");
  await service.stop();
  const left = JSON.parse(readFileSync(join(service.stateDirectory, leftoversFile), "utf8")) as string[];
  if (left.length > 0) {
    console.error(`\nThe tests left on the engine:\n${left.map((name) => `  ${name}\n`).join("")}`);
    closingLine = closingLine.replace(/(\d+) failed/, (_, failed) => `${Number(failed) + 1} failed`);
    status = 1;
  }
} catch (error) {
  console.error(error);
  status = 1;
}
process.stdout.write(`\n${closingLine}\n`, () => process.exit(status));
