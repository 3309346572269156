import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./lib/bundle.ts";
import { startEmbeddedService } from "./lib/embedded-service.ts";

/** Every tier, on a service started for it. Arguments go to vitest; what cannot run fails. */
const service = await startEmbeddedService("test");
const closingLineFile = join(projectRoot, ".berth", "closing-line.txt");
rmSync(closingLineFile, { force: true });
const { status } = spawnSync(
  join(projectRoot, "node_modules", ".bin", "vitest"),
  ["run", "--reporter=default", "--reporter=./test/support/closing-line.ts", ...process.argv.slice(2)],
  {
    cwd: projectRoot,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...service.env, BERTH_CLOSING_LINE_FILE: closingLineFile },
  },
);
await service.stop();
// The last line, once all is down.
console.log(
  `\n${existsSync(closingLineFile) ? readFileSync(closingLineFile, "utf8") : "0 passed, 1 failed"}`,
);
process.exit(status ?? 1);
