import { existsSync, mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { Supervisor } from "../../scripts/lib/supervisor.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
beforeEach(() => (folder = temporaryFolder()));

it("goes on without its logs on a full disk, and keeps them again once there is room", async () => {
  const log = join(folder, "logs", "talker.log");
  mkdirSync(join(folder, "logs"));
  // Where whatever is written is answered as on a full disk.
  for (const file of [log, join(folder, "processes.json.new")]) symlinkSync("/dev/full", file);
  const program = join(folder, "talker.mjs");
  writeFileSync(program, 'let said = 0; setInterval(() => console.log("said", ++said), 20);');
  const supervisor = new Supervisor(folder);
  try {
    await supervisor.start({ name: "talker", file: program, args: [] }, "said 10");
    unlinkSync(log);
    await expect.poll(() => existsSync(log) && readFileSync(log, "utf8")).toContain("said");
  } finally {
    await supervisor.stop();
  }
});
