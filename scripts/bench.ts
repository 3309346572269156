import { startEmbeddedService } from "./lib/embedded-service.ts";

/** What the Worker does by itself and a backup, then what a host does on a service started for it. */
await import("../bench/requests.ts");
await import("../bench/webhook.ts");
await import("../bench/backups.ts");
const service = await startEmbeddedService("bench");
try {
  Object.assign(process.env, service.env);
  await import("../bench/deploys.ts");
  await import("../bench/idle.ts");
} finally {
  await service.stop();
}
