import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { projectRoot } from "./lib/bundle.ts";
import { startEmbeddedService } from "./lib/embedded-service.ts";

/** Every tier, on a service started for it. Arguments go to vitest; what cannot run fails. */
const service = await startEmbeddedService("test");
let status = 1;
try {
  const vitest = spawnSync(
    join(projectRoot, "node_modules", ".bin", "vitest"),
    ["run", "--reporter=default", "--reporter=./test/support/closing-line.ts", ...process.argv.slice(2)],
    {
      cwd: projectRoot,
      stdio: ["ignore", "pipe", "inherit"],
      encoding: "utf8",
      maxBuffer: 1024 ** 3,
      env: { ...process.env, ...service.env },
    },
  );
  status = vitest.status ?? 1;
  // Shown whole once the service is down, so that the closing line is the last one.
  await service.stop();
  process.stdout.write(vitest.stdout);
} catch (error) {
  console.error(error);
  await service.stop();
}
process.exit(status);
