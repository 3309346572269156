import { startEmbeddedService } from "./lib/embedded-service.ts";

/** bench/run.ts on a service started for it. */
const service = await startEmbeddedService("bench");
try {
  Object.assign(process.env, service.env);
  await import("../bench/run.ts");
} finally {
  await service.stop();
}
