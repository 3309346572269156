import { command } from "../command.ts";
import { clientFor, connect, connection, signal } from "../context.ts";
import { Failure, exitCodes } from "../failure.ts";
import { checkoutRoot, linkedSite } from "../git.ts";
import { bold, safe, showValue, styled } from "../terminal.ts";
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
  const attempt = async (check: string, work: () => Promise<string>): Promise<void> => {
    try {
      checks.push({ check, ok: true, detail: await work() });
    } catch (error) {
      checks.push({ check, ok: false, detail: error instanceof Error ? error.message : String(error) });
    }
  };
  await attempt("configuration", async () => {
    const { profiles } = readConfig(profilesFile());
    const count = Object.keys(profiles).length;
    return `${profilesFile()}, ${count === 1 ? "1 profile" : `${count} profiles`}`;
  });
  await attempt("service", async () => {
    const { url } = connection();
    const started = performance.now();
    const { version: there } = await (await clientFor(url, undefined)).call("getHealth", {}, { signal });
    return `${url}, version ${there}, ${Math.round(performance.now() - started)} ms`;
  });
  await attempt("clock", async () => {
    const { url } = connection();
    const response = await (await clientFor(url, undefined)).file({ id: "getHealth", input: {} }, { signal });
    await response.body?.cancel();
    const seconds = Math.round(
      (Date.now() - Date.parse(response.headers.get("Date") ?? new Date().toUTCString())) / 1000,
    );
    if (Math.abs(seconds) > 60)
      throw new Failure(
        `This computer's clock is ${Math.abs(seconds)} s ${seconds > 0 ? "ahead" : "behind"}: times in lists are wrong.`,
      );
    return "agrees with the service";
  });
  await attempt("key", async () => (await (await connect()).call("getAccount", {}, { signal })).email);
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
