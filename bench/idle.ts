import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { api, createSite, pay, remove, settled, stateDirectory } from "../test/e2e/service.ts";

/** What the agent uses while its host carries a hundred sites that nobody asks anything of. */
const count = Number(process.env["BENCH_SITES"] ?? 100);
const watchedSeconds = 60;
const atOnce = 4;

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
// What the last deployments began has ended: their old containers' drain, the first minute's metrics.
await delay(70_000);

const agent = (
  JSON.parse(readFileSync(join(stateDirectory, "processes.json"), "utf8")) as Record<string, number>
)["agent"];
/** Seconds of processor time that the process has used (proc(5): fields 14 and 15, in hundredths). */
const usedSeconds = () => {
  const fields = readFileSync(`/proc/${agent}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
};
const before = usedSeconds();
await delay(watchedSeconds * 1000);
const percent = ((usedSeconds() - before) / watchedSeconds) * 100;
const residentKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent}/status`, "utf8"))?.[1]);

console.log(`\nThe agent with ${count} idle sites, over ${watchedSeconds} s\n`);
console.log("| resident, MB | of one core, % |\n|---|---|");
console.log(`| ${(residentKb / 1024).toFixed(0)} | ${percent.toFixed(1)} |`);

await api("PATCH", `/packs/${pack.id}`, { active: false });
for (let at = 0; at < siteIds.length; at += atOnce)
  await Promise.all(siteIds.slice(at, at + atOnce).map(remove));
