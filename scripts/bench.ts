import { startEmbeddedService } from "./lib/embedded-service.ts";

/** What the Worker does by itself, each in a workerd of its own, then bench/deploys.ts on a service started for it. */
await import("../bench/requests.ts");
await import("../bench/webhook.ts");
const service = await startEmbeddedService("bench");
try {
  Object.assign(process.env, service.env);
  await import("../bench/deploys.ts");
} finally {
  await service.stop();
}
