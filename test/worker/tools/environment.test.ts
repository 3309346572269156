import { expect } from "vitest";
import type { EnvHistory } from "../../../protocol/api/env-history.ts";
import { effectsOf, scene, useTool } from "../assistant.ts";
import { api, createSite, finish, jobOf, runningSite, site } from "../service.ts";

const shown = async (key: string, siteId: string) =>
  (await site(key, siteId)).envVariables.map(({ key: name, value }) => [name, value]);

async function withVariables() {
  const { key, host } = await scene();
  const { siteId } = await createSite(key, { name: "configured" });
  const envVariables = [
    { key: "COLOUR", value: "blue" },
    { key: "TOKEN", value: "do-not-show", encrypted: true },
  ];
  await api(key, "PATCH", `/sites/${siteId}`, { envVariables });
  return { key, host, siteId };
}

effectsOf("environment", {
  list_env_vars: [
    "shows plain values, and of secrets the names",
    async () => {
      const { key } = await withVariables();
      const { result } = await useTool(key, "list_env_vars", { site: "configured" });
      expect(result).toMatchObject([
        { key: "COLOUR", value: "blue" },
        { key: "TOKEN", value: null },
      ]);
    },
  ],
  set_env_vars: [
    "adds and changes variables, which the next start gets",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "to-set" });
      await useTool(key, "set_env_vars", {
        site: "to-set",
        entries: [
          { key: "A", value: "1" },
          { key: "B", value: "2", secret: true },
        ],
      });
      expect(await shown(key, siteId)).toEqual([
        ["A", "1"],
        ["B", null],
      ]);
      await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
      const { job, attempt } = await jobOf(host, "site.restart");
      expect(job.args.run.env).toMatchObject([
        { key: "A", value: "1" },
        { key: "B", value: "2" },
      ]);
      await finish(host, job, attempt);
      // For builds alone, and the site restarted with the others at once.
      const { result } = await useTool(key, "set_env_vars", {
        site: "to-set",
        entries: [
          { key: "A", value: "3" },
          { key: "C", value: "4", scope: "build" },
        ],
        apply: true,
      });
      expect(result).toMatchObject({ restartRequired: false });
      const applied = await jobOf(host, "site.restart");
      expect(applied.job.args.run.env).toMatchObject([
        { key: "A", value: "3" },
        { key: "B", value: "2" },
        { key: "C", value: "4", scope: "build" },
      ]);
      await finish(host, applied.job, applied.attempt);
      expect((await site(key, siteId)).envVariables).toMatchObject([{}, {}, { key: "C", scope: "build" }]);
      // Where it cannot be restarted, what was done is said.
      await api(key, "PATCH", `/sites/${siteId}`, { action: "stop" });
      const late = { site: "to-set", entries: [{ key: "A", value: "5" }], apply: true };
      const { result: refused } = await useTool(key, "set_env_vars", late);
      expect((refused as { error: string }).error).toContain("The variables are stored, but");
      expect((await shown(key, siteId))[0]).toEqual(["A", "5"]);
    },
  ],
  delete_env_vars: [
    "removes them after a yes, and no others",
    async () => {
      const { key, siteId } = await withVariables();
      const unknown = { site: "configured", keys: ["TOKEN", "TOCKEN"] };
      const { result } = await useTool(key, "delete_env_vars", unknown, { asks: false });
      expect(JSON.stringify(result)).toContain("has no variables TOCKEN");
      const { asked } = await useTool(key, "delete_env_vars", { site: "configured", keys: ["TOKEN"] });
      expect(asked).toContain("TOKEN");
      expect(await shown(key, siteId)).toEqual([["COLOUR", "blue"]]);
    },
  ],
  list_env_history: [
    "says who changed which variables when, without values",
    async () => {
      const { key } = await withVariables();
      const { result } = await useTool(key, "list_env_history", { site: "configured" });
      expect(result).toMatchObject([{ version: 1, actor: "key" }]);
      expect(JSON.stringify(result)).not.toMatch(/blue|do-not-show/);
    },
  ],
  restore_env_version: [
    "brings it back after a yes, and is recorded as the assistant's",
    async () => {
      const { key, siteId } = await withVariables();
      await api(key, "PATCH", `/sites/${siteId}`, { envVariables: [{ key: "COLOUR", value: "red" }] });
      await useTool(key, "restore_env_version", { site: "configured", version: 1 });
      expect(await shown(key, siteId)).toEqual([
        ["COLOUR", "blue"],
        ["TOKEN", null],
      ]);
      const { body } = await api<EnvHistory>(key, "GET", `/sites/${siteId}/env`);
      expect(body.data[0]).toMatchObject({
        actor: "assistant",
        actorId: expect.stringMatching(/^conv_/) as string,
      });
    },
  ],
  generate_secret: [
    "sets a value of its length that neither the model nor the reply holds",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "with-secret" });
      const { result, reply } = await useTool(key, "generate_secret", {
        site: "with-secret",
        key: "SESSION_KEY",
        length: 40,
      });
      await api(key, "PATCH", `/sites/${siteId}`, { action: "restart" });
      const { job } = await jobOf(host, "site.restart");
      const value = job.args.run.env[0]?.value ?? "";
      expect(value).toMatch(/^[\w-]{40}$/);
      expect(JSON.stringify([result, reply])).not.toContain(value);
    },
  ],
});
