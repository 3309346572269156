import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openRecords } from "../agent/running/records.ts";
import { keepSamples } from "../protocol/agent/running.ts";
import { api, createSite, pay, remove, settled, stateDirectory } from "../test/e2e/service.ts";

/**
 * The resource usage of the agent and its child programs while the host carries a hundred idle sites, for long enough
 * to include one measurement of disk use. The sites have a day's samples.
 */
const count = Number(process.env["BENCH_SITES"] ?? 100);
const watchedMinutes = Number(process.env["BENCH_MINUTES"] ?? 11);
const atOnce = 4;
const minuteMs = 60_000;

const dockerfile = `FROM caddy:2\nUSER 65534\nENV HOME=/tmp XDG_CONFIG_HOME=/tmp XDG_DATA_HOME=/tmp\nCMD ["caddy", "file-server", "--listen", ":3000", "--root", "/usr/share"]\n`;

const { body: pack } = await api<{ id: string }>("POST", "/packs", {
  kind: "site",
  name: `Idle ${Date.now()}`,
  amountCents: 100,
  memoryMb: 64,
  cpuMilli: 100,
  diskGb: 1,
});

const siteIds: string[] = [];
async function launchSome(): Promise<void> {
  while (siteIds.length < count) {
    const input = { deployType: "dockerfile", dockerfile, packId: pack.id };
    const name = `idle-${siteIds.length}`;
    const at = siteIds.push(name) - 1;
    const { siteId, invoiceToken } = await createSite({ ...input, name });
    siteIds[at] = siteId;
    await pay(invoiceToken);
    const { status, latestDeployment } = await settled(siteId);
    if (status !== "RUNNING") throw new Error(`${name} is ${status}: ${latestDeployment?.error}`);
  }
}
await Promise.all(Array.from({ length: atOnce }, launchSome));

const { agent, "ingress-responder": responder } = JSON.parse(
  readFileSync(join(stateDirectory, "processes.json"), "utf8"),
) as Record<string, number>;
const processes = {
  agent,
  responder,
  "Docker engine": Number(readFileSync("/var/run/docker.pid", "utf8")),
};

/** Seconds of CPU time of the process and of its ended children (proc(5): fields 14 to 17, in hundredths). */
function usedSeconds(id: number | undefined): number {
  const fields = readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / 100;
}
const residentMb = (id: number | undefined): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1]) / 1024;

/** Between two full minutes, so that each measured minute includes everything periodic. */
const betweenTwoTicks = () => delay(((minuteMs * 3) / 2 - (Date.now() % minuteMs)) % minuteMs);

// Wait until everything that the last deployments started has ended: draining old containers, the first minute's
// metrics.
await delay(minuteMs);
await betweenTwoTicks();
const records = openRecords(join(stateDirectory, "agent", "running.db"));
const sample = { cpuMilli: 0.3, memoryMb: 12.3, networkInBytes: 1234, networkOutBytes: 12345, diskMb: 1.2 };
const now = Date.now();
for (let minute = keepSamples - 1; minute > 0; minute--)
  records.addSamples(
    new Date(now - minute * minuteMs),
    minuteMs,
    siteIds.map((siteId) => [siteId, sample]),
  );
records.close();

const used = (): number[] => Object.values(processes).map(usedSeconds);
await delay(5000);
const readings = [used()];
for (let minute = 0; minute < watchedMinutes; minute++) {
  await delay(minuteMs);
  readings.push(used());
}

console.log(`\nWith ${count} idle sites, over ${watchedMinutes} minutes\n`);
console.log("| | of one core, % | its costliest minute, % | resident, MB |\n|---|---|---|---|");
const figures = Object.entries(processes).map(([name, id], index) => {
  const at = readings.map((reading) => reading[index] ?? 0);
  const seconds = at.slice(1).map((one, minute) => one - (at[minute] ?? 0));
  const percent = (seconds.reduce((sum, one) => sum + one, 0) / seconds.length / 60) * 100;
  const dearest = (Math.max(...seconds) / 60) * 100;
  console.log(`| ${name} | ${percent.toFixed(2)} | ${dearest.toFixed(2)} | ${residentMb(id).toFixed(0)} |`);
  return { percent, memoryMb: residentMb(id) };
});
console.log("\nThe agent: less than 2 % and less than 150 MB.");
const [ofAgent] = figures;
if (!ofAgent || ofAgent.percent >= 2 || ofAgent.memoryMb >= 150) process.exitCode = 1;

await api("PATCH", `/packs/${pack.id}`, { active: false });
for (let at = 0; at < siteIds.length; at += atOnce)
  await Promise.all(siteIds.slice(at, at + atOnce).map(remove));
