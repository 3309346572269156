import { beforeAll, expect, it } from "vitest";
import type { Command } from "../../protocol/api/commands.ts";
import type { Schedule } from "../../protocol/api/schedules.ts";
import { pagesOfOperator } from "./pages.ts";
import {
  account,
  api,
  bindings,
  createSite,
  finish,
  finishNext,
  operator,
  ready,
  readyAgent,
  runningSite,
} from "./service.ts";

let pages: Awaited<ReturnType<typeof pagesOfOperator>>;
beforeAll(async () => {
  pages = await pagesOfOperator();
});
const pathOf = (siteId: string) => `/sites/${siteId}/jobs`;
const commandsOf = async (siteId: string) =>
  (await api<{ data: Command[] }>(await operator(), "GET", `/sites/${siteId}/commands`)).body.data;
const schedulesOf = async (siteId: string) =>
  (await api<{ data: Schedule[] }>(await operator(), "GET", `/sites/${siteId}/schedules`)).body.data;

it("a site's jobs are its owner's alone, also one by one", async () => {
  const on = await readyAgent();
  const [own, foreign] = [await runningSite(await operator(), on), await runningSite(await account(), on)];
  expect((await pages.show(pathOf(foreign.siteId))).status).toBe(403);
  expect((await pages.send(pathOf(foreign.siteId), "run", { command: "true" })).status).toBe(403);
  const { location } = await pages.send(pathOf(own.siteId), "run", { command: "true" });
  const id = location.split("/").at(-1) ?? "";
  const other = await createSite(await operator());
  expect((await pages.show(`${pathOf(other.siteId)}/${id}`)).status).toBe(404);
  expect((await pages.show(`${pathOf(own.siteId)}/cmd_unknown`)).status).toBe(404);
  on.close();
});

it("a command is run, its output shown without a script, and its end; nothing of it is HTML", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  on.send(ready(10, { freeCommands: 10 }));
  const empty = await pages.send(pathOf(siteId), "run", { command: "  " });
  expect(empty.status).toBe(400);
  expect(empty.text).toMatch(/name="command"[^>]*aria-invalid="true"/);
  const { location } = await pages.send(pathOf(siteId), "run", {
    command: "echo '<b>'",
    timeoutSeconds: "30",
  });
  const [command] = await commandsOf(siteId);
  expect(location).toBe(`${pathOf(siteId)}/${command?.id}`);
  expect(command).toMatchObject({ command: "echo '<b>'", timeoutSeconds: 30 });
  const waiting = await pages.show(location);
  expect(waiting.text).toContain("echo &#39;&lt;b&gt;&#39;");
  expect(waiting.text).toContain(`data-stream="/api/v1/commands/${command?.id}/logs"`);
  const { job, attempt } = await on.next("job");
  const log = bindings.DEPLOYMENT_LOG.get(bindings.DEPLOYMENT_LOG.idFromName(command?.id ?? ""));
  const at = new Date().toISOString();
  await log.append(1, 1, [{ at, stream: "stdout", text: "<script>alert(1)</script>" }]);
  await finish(on, job, attempt, { exitCode: 0, error: null });
  const { text } = await pages.show(`${location}?plain=1`);
  expect(text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  const after = await pages.show(location);
  expect(after.text).toContain("Succeeded");
  expect(after.text).toContain("Run again");
  expect((await pages.show(pathOf(siteId))).text).toContain("code 0");
  on.close();
});

it("a command that ran out of memory asks for a larger plan, in the list and on its own page", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  on.send(ready(10, { freeCommands: 10 }));
  const { location } = await pages.send(pathOf(siteId), "run", { command: "true" });
  const error = "exited with 137 because it used more memory than the site's pack has: choose a larger pack.";
  await finishNext(on, { exitCode: 137, error });
  for (const path of [pathOf(siteId), location])
    expect((await pages.show(path)).text).toContain("than the site&#39;s plan has: choose a larger plan.");
  on.close();
});

it("a cron expression is told in words: in the list, while it is typed, and where there is no script", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const fields = { name: "report", cron: "0 9 * * mon-fri", command: "true", timeoutSeconds: "60" };
  const told = async (cron: string) => {
    const { text } = await pages.show(`${pathOf(siteId)}?cron=${encodeURIComponent(cron)}`);
    const [, inside = ""] = /<span hidden[^>]*id="telling-cron">(.*?)<\/span>/.exec(text) ?? [];
    return inside.replaceAll(/<[^>]*>/g, "");
  };
  expect(await told(fields.cron)).toMatch(/^Monday to Friday at 09:00 UTC, next /);
  expect(await told("0 0 30 2 *")).toBe("This date never occurs");
  expect(await told("99 * * * *")).toMatch(/^Not a cron expression/);
  expect(await told("<b>")).toBe("Not a cron expression yet");
  const asked = await pages.send(pathOf(siteId), "schedule", { ...fields, name: "", tell: "true" });
  expect(asked.status).toBe(200);
  expect(asked.text).toMatch(/data-told="cron">Monday to Friday at 09:00 UTC/);
  expect(await schedulesOf(siteId)).toEqual([]);
  await pages.send(pathOf(siteId), "schedule", fields);
  expect((await pages.show(pathOf(siteId))).text).toContain(
    "Monday to Friday at 09:00 UTC: <code>true</code>",
  );
  on.close();
});

it("a schedule is added, switched, changed and deleted; its next three runs are shown", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const fields = { name: "clean-up", cron: "30  3 * * *", command: "rm -rf <tmp>", timeoutSeconds: "60" };
  const wrong = await pages.send(pathOf(siteId), "schedule", { ...fields, cron: "99 * * * *" });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toMatch(/name="cron"[^>]*aria-invalid="true"/);
  expect(wrong.text).toContain("rm -rf &lt;tmp&gt;");
  expect((await pages.send(pathOf(siteId), "schedule", fields)).status).toBe(303);
  const [schedule] = await schedulesOf(siteId);
  expect(schedule).toMatchObject({ name: "clean-up", cron: "30 3 * * *", timeoutSeconds: 60, enabled: true });
  const { text } = await pages.show(pathOf(siteId));
  // The next one is told beside the field, too.
  const runs = [...text.matchAll(/<time datetime="[^"]*T03:30:00\.000Z"/g)].map(([time]) => time);
  expect([runs.length, new Set(runs).size]).toEqual([4, 3]);
  const id = schedule?.id ?? "";
  expect(text).toContain("It has not run yet.");
  on.send(ready(10, { freeCommands: 10 }));
  const ran = await pages.send(pathOf(siteId), "run", { command: "true" });
  await finishNext(on, { exitCode: 0, error: null });
  await bindings.DB.prepare("UPDATE commands SET schedule_id = ?, trigger = 'schedule' WHERE id = ?")
    .bind(id, ran.location.split("/").at(-1))
    .run();
  const [, last = ""] = /Last run:([^]*?)<\/p>/.exec((await pages.show(pathOf(siteId))).text) ?? [];
  expect(last).toContain(`href="${ran.location}"`);
  expect(last).toMatch(/<span class="dot good">Succeeded<\/span> <span class="soft">code 0 after [\d.]+ s</);
  const skip = (count: number) =>
    bindings.DB.prepare("UPDATE schedules SET skipped_runs = ? WHERE id = ?").bind(count, id).run();
  await skip(1);
  expect((await pages.show(pathOf(siteId))).text).toContain("Skipped once, because");
  await skip(2);
  expect((await pages.show(pathOf(siteId))).text).toContain("Skipped 2 times, because");
  await pages.send(pathOf(siteId), `switch:${id}`, { id, enabled: "false" });
  expect((await schedulesOf(siteId))[0]?.enabled).toBe(false);
  await pages.send(pathOf(siteId), `change:${id}`, { id, ...fields, cron: "@hourly" });
  expect((await schedulesOf(siteId))[0]?.cron).toBe("@hourly");
  await pages.send(pathOf(siteId), `delete:${id}`, { id });
  expect(await schedulesOf(siteId)).toEqual([]);
  on.close();
});
