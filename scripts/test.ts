import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./lib/bundle.ts";
import { installPackages } from "./lib/docker-engine.ts";
import { startEmbeddedService } from "./lib/embedded-service.ts";

/** Every tier, on a service started for it. Arguments go to vitest; what cannot run fails. */
let status = 1;
let closingLine = "0 passed, 1 failed";
try {
  // For the pages in a real browser, and the invoices they print.
  if (!existsSync("/usr/bin/chromium")) await installPackages(["chromium"]);
  if (!existsSync("/usr/bin/pdftotext")) await installPackages(["poppler-utils"]);
  // For the units that the install script writes; nothing of it is started.
  if (!existsSync("/usr/bin/systemd-analyze")) await installPackages(["systemd"]);
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
} catch (error) {
  console.error(error);
  status = 1;
}
process.stdout.write(`\n${closingLine}\n`, () => process.exit(status));
