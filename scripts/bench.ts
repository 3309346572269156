import { startEmbeddedService } from "./lib/embedded-service.ts";

/**
 * First the Worker's benchmarks and backups, then a host's on a service started for them. Arguments select benchmarks
 * by name.
 */
const alone = ["startup", "requests", "chat", "access-log", "webhook", "backups"];
const onService = ["deploys", "dockerfiles", "idle", "logs", "neighbours", "pages"];

const named = process.argv.slice(2);
const unknown = named.filter((name) => ![...alone, ...onService].includes(name));
if (unknown.length > 0)
  throw new Error(
    `There is no benchmark ${unknown.join(", ")}: name some of ${[...alone, ...onService].join(", ")}, or none for all`,
  );
const wanted = (name: string) => named.length === 0 || named.includes(name);

for (const name of alone.filter(wanted)) await import(`../bench/${name}.ts`);
if (onService.some(wanted)) {
  // A host's default interval, not the tests'.
  const service = await startEmbeddedService("bench", { BERTH_SAMPLE_SECONDS: "60" });
  try {
    Object.assign(process.env, service.env);
    for (const name of onService.filter(wanted)) await import(`../bench/${name}.ts`);
  } finally {
    await service.stop();
  }
}
