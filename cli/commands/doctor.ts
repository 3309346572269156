import { command } from "../command.ts";
import { clientFor, connect, connection, signal } from "../context.ts";
import { Failure, exitCodes } from "../failure.ts";
import { checkoutRoot, linkedSite } from "../git.ts";
import { bold, roughly, safe, showValue, styled } from "../terminal.ts";
import { readConfig } from "../config.ts";
import { profilesFile } from "../context.ts";
import { version } from "../version.ts";

type Check = { check: string; ok: boolean; detail: string };

export const doctor = command(
  "doctor",
  "Check what commands need: the service, the key, the clock, Git",
  "checks",
).action(async () => {
  const checks: Check[] = [
    { check: "berth", ok: true, detail: `${version}, Node ${process.versions.node}, ${process.platform}` },
  ];
  const attempt = async (check: string, work: () => Promise<string>): Promise<boolean> => {
    try {
      checks.push({ check, ok: true, detail: await work() });
      return true;
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      const hint = error instanceof Failure && error.hint !== undefined ? ` ${error.hint}` : "";
      checks.push({ check, ok: false, detail: detail + hint });
      return false;
    }
  };
  await attempt("configuration", async () => {
    const { profiles } = readConfig(profilesFile());
    const count = Object.keys(profiles).length;
    return `${profilesFile()}, ${count === 1 ? "1 profile" : `${count} profiles`}`;
  });
  const isThere = await attempt("service", async () => {
    const { url } = connection();
    const started = performance.now();
    const { version: there } = await (await clientFor(url, undefined)).call("getHealth", {}, { signal });
    return `${url}, version ${there}, ${Math.round(performance.now() - started)} ms`;
  });
  // Without it there is nothing to compare the clock with, and nobody who knows the key.
  if (isThere) {
    await attempt("clock", clock);
    await attempt("key", async () => (await (await connect()).call("getAccount", {}, { signal })).email);
  }
  await attempt("Git checkout", async () => (await checkoutRoot()) ?? "none here");
  await attempt("linked site", async () => (await linkedSite()) ?? "none: berth link <site>");
  const widest = Math.max(...checks.map(({ check }) => check.length));
  showValue("checks", { checks }, () =>
    checks
      .map(
        ({ check, ok, detail }) =>
          `${ok ? styled("green", "✓") : styled("red", "✗")} ${bold(check.padEnd(widest))}  ${safe(detail)}`,
      )
      .join("\n"),
  );
  if (checks.some(({ ok }) => !ok)) process.exitCode = exitCodes.failure;
});

async function clock(): Promise<string> {
  const { url } = connection();
  const response = await (await clientFor(url, undefined)).file({ id: "getHealth", input: {} }, { signal });
  await response.body?.cancel();
  const there = response.headers.get("Date");
  if (there === null) return "unknown: the service does not report its own";
  const minutes = Math.round((Date.now() - Date.parse(there)) / 60_000);
  if (minutes === 0) return "agrees with the service";
  throw new Failure(
    `This computer's clock is ${roughly(Math.abs(minutes) * 60)} ${minutes > 0 ? "ahead" : "behind"}:`,
    { hint: "ages in lists are wrong, and so is what --since omits." },
  );
}
