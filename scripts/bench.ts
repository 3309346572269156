import { startEmbeddedService } from "./lib/embedded-service.ts";

/** bench/requests.ts in a workerd of its own, then bench/backups.ts, then bench/deploys.ts on a service started for it. */
await import("../bench/requests.ts");
await import("../bench/backups.ts");
const service = await startEmbeddedService("bench");
try {
  Object.assign(process.env, service.env);
  await import("../bench/deploys.ts");
} finally {
  await service.stop();
}
