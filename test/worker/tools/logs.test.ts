import { expect } from "vitest";
import type { SiteSample } from "../../../protocol/api/running.ts";
import { answerNext, effectsOf, runningDatabase, scene, useTool } from "../assistant.ts";
import { bindings, runningSite } from "../service.ts";

const at = "2026-01-01T00:00:01.000000001Z";
const line = (text: string) => ({ at, stream: "stdout" as const, text });
const sample: SiteSample = {
  at: "2026-01-01T00:00:00.000Z",
  cpuMilli: 12,
  memoryMb: 34,
  networkInBytes: 5,
  networkOutBytes: 6,
  diskMb: null,
};

effectsOf("logs", {
  get_site_logs: [
    "asks the host, and shows the lines that hold a text",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "talks" });
      const using = useTool(key, "get_site_logs", { site: "talks", search: "error" });
      const question = await answerNext(host, {
        kind: "logs",
        lines: [line("all is well"), line("an error: no disk")],
      });
      expect(question).toMatchObject({ kind: "logs", siteId });
      expect((await using).result).toMatchObject([{ text: "an error: no disk" }]);
    },
  ],
  get_site_metrics: [
    "asks the host for its samples",
    async () => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "measured" });
      const using = useTool(key, "get_site_metrics", { site: "measured", minutes: 1 });
      await answerNext(host, { kind: "metrics", samples: [{ ...sample, cpuMilli: 99 }, sample] });
      expect((await using).result).toEqual([sample]);
    },
  ],
  list_container_events: [
    "asks the host what became of the containers of a site or database",
    async () => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "ended" });
      const oom = { at: sample.at, kind: "oom" as const, detail: "It used more than 256 MB." };
      const using = useTool(key, "list_container_events", { site: "ended" });
      await answerNext(host, { kind: "events", events: [oom] });
      expect((await using).result).toEqual([oom]);
      const { name } = await runningDatabase(key, host);
      const again = useTool(key, "list_container_events", { db: name });
      await answerNext(host, { kind: "events", events: [] });
      expect((await again).result).toEqual([]);
    },
  ],
  list_unhealthy_resources: [
    "names what is not well, with the reason, and leaves out what is",
    async () => {
      const { key, host } = await scene();
      await runningSite(key, host, { name: "well" });
      const { siteId } = await runningSite(key, host, { name: "ill" });
      await bindings.DB.prepare("UPDATE sites SET status = 'FAILED' WHERE id = ?").bind(siteId).run();
      const { result } = await useTool(key, "list_unhealthy_resources", {});
      expect(result).toMatchObject({ unhealthy: [{ kind: "site", name: "ill", reason: "it is FAILED" }] });
    },
  ],
});
