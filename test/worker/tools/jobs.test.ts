import { expect } from "vitest";
import type { Page } from "../../../protocol/api/common.ts";
import type { Schedule } from "../../../protocol/api/schedules.ts";
import { effectsOf, scene, useTool } from "../assistant.ts";
import { api, bindings, finish, runningSite, ready, jobOf } from "../service.ts";

async function withSite() {
  const { key, host } = await scene();
  const { siteId } = await runningSite(key, host, { name: "works" });
  host.send(ready(10, { freeCommands: 10 }));
  const schedules = async () =>
    (await api<Page<Schedule>>(key, "GET", `/sites/${siteId}/schedules`)).body.data;
  return { key, host, siteId, schedules };
}
const nightly = { name: "nightly", cron: "0 3 * * *", command: "npm run clean" };

effectsOf("jobs", {
  list_cron_jobs: [
    "lists schedules with their next run and how the last one ended",
    async () => {
      const { key, siteId } = await withSite();
      await api(key, "POST", `/sites/${siteId}/schedules`, nightly);
      const { result } = await useTool(key, "list_cron_jobs", { site: "works" });
      expect(result).toMatchObject([
        { ...nightly, nextRunAt: expect.stringContaining("T03:00") as string, lastRun: null },
      ]);
      await api(key, "POST", `/sites/${siteId}/commands`, { command: "true" });
      await bindings.DB.prepare(
        `UPDATE commands SET schedule_id = (SELECT id FROM schedules WHERE site_id = commands.site_id), status = 'FAILED', exit_code = 3
          WHERE site_id = ?`,
      )
        .bind(siteId)
        .run();
      expect((await useTool(key, "list_cron_jobs", { site: "works" })).result).toMatchObject([
        { name: "nightly", lastRun: { status: "FAILED", exitCode: 3 } },
      ]);
    },
  ],
  set_cron_job: [
    "creates a schedule, and changes the one of that name",
    async () => {
      const { key, schedules } = await withSite();
      await useTool(key, "set_cron_job", { site: "works", ...nightly });
      expect(await schedules()).toMatchObject([nightly]);
      await useTool(key, "set_cron_job", {
        site: "works",
        ...nightly,
        command: "npm run tidy",
        enabled: false,
      });
      expect(await schedules()).toMatchObject([{ command: "npm run tidy", enabled: false }]);
    },
  ],
  delete_cron_job: [
    "removes it after a yes",
    async () => {
      const { key, siteId, schedules } = await withSite();
      await api(key, "POST", `/sites/${siteId}/schedules`, nightly);
      await useTool(key, "delete_cron_job", { site: "works", name: "nightly" });
      expect(await schedules()).toEqual([]);
    },
  ],
  run_command: [
    "runs on the host exactly what the person was shown",
    async () => {
      const { key, host } = await withSite();
      const { asked } = await useTool(key, "run_command", { site: "works", command: "npm run migrate" });
      expect(asked).toContain("npm run migrate");
      const { job } = await jobOf(host, "site.command");
      expect(job.args).toMatchObject({ command: "npm run migrate" });
    },
  ],
  get_job_output: [
    "shows how a command ended and what it wrote last",
    async () => {
      const { key, host, siteId } = await withSite();
      const { body } = await api<{ id: string }>(key, "POST", `/sites/${siteId}/commands`, {
        command: "echo hello",
      });
      const { job, attempt } = await jobOf(host, "site.command");
      const line = (text: string) => ({ at: new Date(0).toISOString(), stream: "stdout" as const, text });
      const lines = [
        ...Array.from({ length: 1500 }, (_, index) => line(`${"-".repeat(40)} line ${index}`)),
        line("hello"),
      ];
      const logs = bindings.DEPLOYMENT_LOG;
      await logs.get(logs.idFromName(body.id)).append(attempt, 1, lines);
      await finish(host, job, attempt, { exitCode: 0, error: null });
      const { result } = await useTool(key, "get_job_output", { run: body.id });
      // Cut in the middle, as any long result.
      expect(JSON.stringify(result)).toMatch(/exitCode\W+0,.* \[…\] .*line 1499\W+hello\W+Command succeeded/);
    },
  ],
});
