import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { LogGuard } from "../../agent/running/log-guard.ts";
import type { SiteEvent } from "../../protocol/api/running.ts";
import { engine } from "../support/engine.ts";

const agentId = `logs-${process.pid}`;
const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();
let id: string | undefined;
afterEach(() => id && docker("rm", "--force", id));

it.each([200, 4095])(
  "a site that writes lines of %i bytes to its log as fast as it can is slowed by the kernel, and its owner is told",
  async (bytes) => {
    const flood = `const line = 'x'.repeat(${bytes}) + '\\n'; for (;;) require('fs').writeSync(1, line);`;
    const labels = [`berth.agent=${agentId}`, "berth.site=flood"].flatMap((label) => ["--label", label]);
    const logs = ["--log-opt", "max-size=10m", "--log-opt", "max-file=3"];
    id = docker(
      "run",
      "--detach",
      "--cpus",
      "0.5",
      ...labels,
      ...logs,
      "node:24-bookworm-slim",
      "node",
      "-e",
      flood,
    );
    const events: SiteEvent[] = [];
    const guard = new LogGuard({
      engine,
      records: { addEvent: (_owner, _id, event) => void events.push(event) },
      agentId,
    });
    const container = await engine.inspectContainer(id);
    const file = container?.logFile ?? "";
    /** Bytes a second; null: the file was another, so that they are not known. */
    const rate = async () => {
      const before = statSync(file);
      await delay(2000);
      const after = statSync(file);
      return before.birthtimeMs === after.birthtimeMs ? (after.size - before.size) / 2 : null;
    };
    await expect
      .poll(
        async () => {
          await guard.look();
          const found = await rate();
          return found !== null && found < 1_500_000;
        },
        { timeout: 90_000, interval: 10 },
      )
      .toBe(true);
    expect(events).toMatchObject([{ kind: "slowed" }]);
  },
);
