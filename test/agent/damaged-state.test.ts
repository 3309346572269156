import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, it } from "vitest";
import { openJournal } from "../../agent/journal.ts";
import { openRecords } from "../../agent/running/records.ts";
import { FromAgent } from "../../protocol/agent/messages.ts";
import { SiteEvent, SiteSample } from "../../protocol/api/running.ts";
import { formatId } from "../../protocol/ids.ts";
import { randomOf } from "../support/random.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Each write is waited for, some ten thousand times. */
const inMemory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
let folder: string;
beforeEach(() => (folder = temporaryFolder(inMemory)));

const id = <K extends "job" | "site" | "deployment" | "database">(kind: K, number: number) =>
  formatId(kind, number, new Uint8Array(10));
const at = "2026-01-01T00:00:00.000Z";

/** Everything an agent does with its journal, as after each start. */
function useJournal(file: string): void {
  const journal = openJournal(file);
  try {
    for (const report of journal.unacknowledged()) FromAgent.parse(report);
    for (let number = 0; number < 30; number++) {
      const lease = { jobId: id("job", number), attempt: 1 };
      journal.deliveredUntil(lease.jobId);
      journal.delivered(lease.jobId, { seq: number, at, printedBytes: 1 });
      journal.accept(lease, "site.stop");
      journal.finish({ type: "failed", ...lease, error: "a".repeat(300), cancelled: false, durations: null });
      if (number % 3 === 0) journal.forget(lease);
    }
    // What is new is kept, whatever was there.
    journal.accept({ jobId: id("job", 99), attempt: 9 }, "site.stop");
    journal.finish({ type: "done", jobId: id("job", 99), attempt: 9, result: {} });
    expect(journal.unacknowledged().filter(({ attempt }) => attempt === 9)).toHaveLength(1);
  } finally {
    journal.close();
  }
}

function useRecords(file: string): void {
  const records = openRecords(file);
  try {
    const siteId = id("site", 1);
    const deploymentId = id("deployment", 1);
    const databaseId = id("database", 1);
    for (const sample of records.samples(siteId)) SiteSample.parse(sample);
    for (const event of records.events(siteId)) SiteEvent.parse(event);
    for (const { crash } of records.crashes()) FromAgent.parse(crash);
    for (const { crash } of records.databasesOut()) FromAgent.parse(crash);
    records.lastLines(siteId);
    records.lastKind("container");
    records.eventsUpTo();
    records.drainsUntil("container");
    const sample = { cpuMilli: 1, memoryMb: 2, networkInBytes: 3, networkOutBytes: 4, diskMb: null };
    for (let minute = 0; minute < 50; minute++)
      records.addSamples(new Date(minute * 60_000), 60_000, [
        [siteId, sample],
        [databaseId, sample],
      ]);
    for (let number = 0; number < 30; number++)
      records.addEvent(siteId, `container${number}`, { at, kind: "exit", detail: `${number} `.repeat(20) });
    records.addLastLines(siteId, "container", [{ at, stream: "stdout", text: "a line" }]);
    records.addCrash({
      crash: { type: "crashed", siteId, deploymentId, error: "It ended." },
      containerId: "c",
      isOut: true,
    });
    const crash = { type: "databaseCrashed", databaseId, at, error: "It ended." } as const;
    records.addDatabaseOut({ crash, containerId: "d", isOut: true, isKnown: false });
    records.takenIn("1767225600.000000001");
    records.drainUntil("container", new Date(at));
    records.useOnce("nonce", at, new Date(at));
    records.keepOnly([siteId, databaseId], new Date(at));
    expect(records.crashes()).toHaveLength(1);
    expect(records.databasesOut()).toHaveLength(1);
    expect(records.samples(siteId).length).toBeGreaterThan(0);
  } finally {
    records.close();
  }
}

describe.each([
  ["journal.db", useJournal],
  ["running.db", useRecords],
])("the agent's %s", (name, use) => {
  const file = () => join(folder, name);
  const damaged = () => `${file()}.damaged`;
  /** As systemd starts it again: what it finds out amid its work ends it, once. */
  const start = () => {
    try {
      use(file());
    } catch {
      use(file());
    }
  };
  const mode = (path: string) => statSync(path).mode & 0o777;

  it("that was damaged anywhere is begun anew, or is still right", () => {
    use(file());
    const whole = readFileSync(file());
    const random = randomOf(20_260_101);
    for (let round = 0; round < 150; round++) {
      const bytes = Buffer.from(whole);
      const from = random.below(bytes.length);
      const length = [1, 16, 512, 4096][round % 4] ?? 1;
      for (let at = from; at < Math.min(from + length, bytes.length); at++)
        bytes[at] = round % 8 < 4 ? random.below(256) : 0;
      writeFileSync(file(), round % 10 === 9 ? bytes.subarray(0, from) : bytes);
      for (const suffix of ["-wal", "-shm"]) rmSync(file() + suffix, { force: true });
      expect(start, `round ${round}`).not.toThrow();
      expect(start, `round ${round}, again`).not.toThrow();
    }
    // One of all that were damaged is kept.
    expect(readdirSync(folder).toSorted()).toEqual([name, `${name}.damaged`]);
  });

  it.each([
    ["a table that lacks a column", "ALTER TABLE {} DROP COLUMN {}"],
    ["a table that has one more", "ALTER TABLE {} ADD COLUMN later TEXT NOT NULL DEFAULT ''"],
    ["a table of another name", "ALTER TABLE {} RENAME TO later"],
  ])("of another version, with %s, is begun anew and kept aside", (_, change) => {
    use(file());
    const db = new DatabaseSync(file());
    const [table, column] = name === "journal.db" ? ["jobs", "kind"] : ["last_lines", "lines"];
    db.exec(change.replace("{}", table).replace("{}", column));
    db.close();
    const before = readFileSync(file());
    if (change.includes("RENAME")) {
      // A table more is another version's own business.
      use(file());
      return;
    }
    use(file());
    expect(readFileSync(damaged()).equals(before)).toBe(true);
  });

  it("is begun anew where a folder is in its place, or beside it", () => {
    mkdirSync(join(file(), "below"), { recursive: true });
    mkdirSync(join(`${file()}-wal`, "below"), { recursive: true });
    use(file());
    mkdirSync(join(damaged(), "below"), { recursive: true });
    writeFileSync(file(), "not a database".repeat(1000));
    use(file());
    expect(existsSync(damaged())).toBe(true);
  });

  it("is its owner's to read only", () => {
    writeFileSync(file(), "", { mode: 0o644 });
    const db = name === "journal.db" ? openJournal(file()) : openRecords(file());
    try {
      for (const suffix of ["", "-wal", "-shm"]) expect(mode(file() + suffix)).toBe(0o600);
    } finally {
      db.close();
    }
  });
});
