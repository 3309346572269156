import { rmSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Host } from "../../agent/host.ts";
import { openRecords, type Records } from "../../agent/running/records.ts";
import { openRetirement } from "../../agent/sites/retire.ts";
import { engine } from "./engine.ts";
import { startTestIngress, type TestIngress } from "./ingress.ts";
import { emptyDisk } from "./empty-disk.ts";

export type SiteHost = {
  ingress: TestIngress;
  records: Records;
  /** The means of an agent that has just started: all it knows is in files and in the engine. */
  startAgent(settings?: { probationSeconds: number }): Host;
  /** Afterwards the engine has nothing of this host but its sites. */
  close(): Promise<void>;
};

/** A host of sites on the real engine with its ingress, without a firewall and a control plane. */
export async function openSiteHost(agentId: string): Promise<SiteHost> {
  const folder = mkdtempSync(join(tmpdir(), "berth-sites-"));
  const ingress = await startTestIngress(agentId);
  const records = openRecords(`${folder}.db`);
  return {
    ingress,
    records,
    startAgent: ({ probationSeconds } = { probationSeconds: 0 }) =>
      ({
        agentId,
        engine,
        ingress: ingress.responder.openRoutes(),
        isolation: { demand: () => Promise.resolve() },
        buildRoom: emptyDisk(),
        workDirectory: folder,
        settings: { probationSeconds },
        imageRepository: (siteId: string) => `berth-test/${siteId}`,
        ...openRetirement({
          engine,
          agentId,
          patience: { drainSeconds: 1.6, drainMaxSeconds: 5 },
          drains: records,
          keepLastLines: () => Promise.resolve(),
          onError: (error) => {
            throw error;
          },
        }),
      }) as unknown as Host,
    async close() {
      await ingress.stop();
      records.close();
      rmSync(folder, { recursive: true });
      for (const end of ["", "-shm", "-wal"]) rmSync(`${folder}.db${end}`, { force: true });
    },
  };
}
