import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { openJournal } from "../../agent/journal.ts";
import { formatId } from "../../protocol/ids.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
const jobId = (number: number) => formatId("job", number, new Uint8Array(10));

it("keeps every result that was written when the process is killed, and nothing that was only begun", async () => {
  const file = join(folder, "killed.db");
  const source = `
    const { openJournal } = await import(${JSON.stringify(join(import.meta.dirname, "../../agent/journal.ts"))});
    const journal = openJournal(${JSON.stringify(file)});
    journal.accept({ jobId: ${JSON.stringify(jobId(1))}, attempt: 1 }, "site.stop");
    journal.finish({ type: "done", jobId: ${JSON.stringify(jobId(1))}, attempt: 1, result: {} });
    journal.accept({ jobId: ${JSON.stringify(jobId(2))}, attempt: 1 }, "site.stop");
    console.log("written");
    setInterval(() => {}, 1000);`;
  const child = spawn(
    process.execPath,
    ["--input-type=module", "--disable-warning=ExperimentalWarning", "--eval", source],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  const journal = openJournal(file);
  expect(journal.unacknowledged()).toEqual([{ type: "done", jobId: jobId(1), attempt: 1, result: {} }]);
  journal.forget({ jobId: jobId(1), attempt: 1 });
  expect(journal.unacknowledged()).toEqual([]);
  journal.close();
});

it("takes a job offered anew in place of its older attempt, and no late result of that one", () => {
  const journal = openJournal(join(folder, "again.db"));
  journal.accept({ jobId: jobId(1), attempt: 1 }, "site.stop");
  journal.accept({ jobId: jobId(1), attempt: 2 }, "site.stop");
  journal.finish({ type: "done", jobId: jobId(1), attempt: 1, result: {} });
  expect(journal.unacknowledged()).toEqual([]);
  journal.forget({ jobId: jobId(1), attempt: 1 });
  journal.finish({ type: "done", jobId: jobId(1), attempt: 2, result: {} });
  expect(journal.unacknowledged()).toMatchObject([{ attempt: 2 }]);
  journal.close();
});

it("remembers the last thousand jobs that ended while the agent runs, and all that run or are not acknowledged", () => {
  const file = join(folder, "long.db");
  let journal = openJournal(file);
  const done = (number: number) => ({ type: "done", jobId: jobId(number), attempt: 1, result: {} }) as const;
  for (const number of [1, 2]) journal.accept({ jobId: jobId(number), attempt: 1 }, "site.command");
  journal.finish(done(2));
  journal.close();
  journal = openJournal(file);
  // The next agent adopts it.
  journal.accept({ jobId: jobId(1), attempt: 1 }, "site.command");
  const other = new DatabaseSync(file);
  other.exec(`INSERT INTO jobs (job_id, attempt, kind)
    WITH RECURSIVE ended (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM ended WHERE n < 5000) SELECT 'job_' || n, 1, 'site.stop' FROM ended`);
  for (let number = 3; number <= 102; number++) {
    journal.accept({ jobId: jobId(number), attempt: 1 }, "site.stop");
    journal.forget({ jobId: jobId(number), attempt: 1 });
  }
  // The last thousand, the one that runs and the one whose result is not acknowledged.
  expect(other.prepare("SELECT count(*) AS jobs FROM jobs").get()).toEqual({ jobs: 1002 });
  other.close();
  for (const number of [1, 2, 3])
    expect(journal.accept({ jobId: jobId(number), attempt: 1 }, "site.deploy")).toBe(false);
  journal.finish(done(1));
  expect(journal.unacknowledged()).toEqual([done(1), done(2)]);
  journal.close();
});

it("holds neither arguments nor secrets", () => {
  const file = join(folder, "quiet.db");
  const journal = openJournal(file);
  journal.accept({ jobId: jobId(1), attempt: 1 }, "site.deploy");
  journal.close();
  expect(readFileSync(file).toString("latin1")).not.toMatch(/token|github|env/i);
});

it("knows after a restart which attempts it has taken before, and takes only higher ones", () => {
  const file = join(folder, "fence.db");
  let journal = openJournal(file);
  expect(journal.accept({ jobId: jobId(1), attempt: 2 }, "site.stop")).toBe(true);
  journal.finish({ type: "done", jobId: jobId(1), attempt: 2, result: {} });
  journal.forget({ jobId: jobId(1), attempt: 2 });
  journal.close();
  journal = openJournal(file);
  for (const attempt of [1, 2]) expect(journal.accept({ jobId: jobId(1), attempt }, "site.stop")).toBe(false);
  expect(journal.accept({ jobId: jobId(1), attempt: 3 }, "site.stop")).toBe(true);
  journal.close();
});

it("keeps a result that is not acknowledged when the same lease is offered once more", () => {
  const journal = openJournal(join(folder, "twice.db"));
  journal.accept({ jobId: jobId(1), attempt: 1 }, "site.stop");
  journal.finish({ type: "done", jobId: jobId(1), attempt: 1, result: {} });
  expect(journal.accept({ jobId: jobId(1), attempt: 1 }, "site.stop")).toBe(false);
  expect(journal.unacknowledged()).toHaveLength(1);
  journal.close();
});

it("begins anew where the file is damaged: the control plane offers what is missing", () => {
  const file = join(folder, "damaged.db");
  writeFileSync(file, "not a database".repeat(1000));
  const journal = openJournal(file);
  expect(journal.accept({ jobId: jobId(1), attempt: 1 }, "site.stop")).toBe(true);
  journal.close();
});

it("takes jobs and keeps their results while nothing can be written, as on a full disk", () => {
  const file = join(folder, "refusing.db");
  const journal = openJournal(file);
  const done = (number: number, attempt = 1) =>
    ({ type: "done", jobId: jobId(number), attempt, result: {} }) as const;
  journal.accept({ jobId: jobId(1), attempt: 2 }, "site.stop");
  const other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  expect(journal.accept({ jobId: jobId(1), attempt: 2 }, "site.stop")).toBe(false);
  expect(journal.accept({ jobId: jobId(2), attempt: 1 }, "site.stop")).toBe(true);
  expect(journal.accept({ jobId: jobId(2), attempt: 1 }, "site.stop")).toBe(false);
  journal.finish(done(1, 2));
  journal.finish(done(2));
  journal.delivered(jobId(2), { seq: 1, at: null, printedBytes: 1 });
  expect(journal.unacknowledged()).toEqual([done(2), done(1, 2)]);
  journal.forget({ jobId: jobId(1), attempt: 2 });
  other.exec("ROLLBACK");
  other.close();
  expect(journal.unacknowledged()).toEqual([done(2)]);
  expect(journal.accept({ jobId: jobId(2), attempt: 1 }, "site.stop")).toBe(false);
  expect(journal.accept({ jobId: jobId(2), attempt: 2 }, "site.stop")).toBe(true);
  expect(journal.unacknowledged()).toEqual([]);
  journal.close();
});

it("is there without its file where the disk takes nothing when the agent starts", async () => {
  const file = join(folder, "full.db");
  const source = `
    const { openJournal } = await import(${JSON.stringify(join(import.meta.dirname, "../../agent/journal.ts"))});
    const journal = openJournal(${JSON.stringify(file)});
    console.log(journal.accept({ jobId: ${JSON.stringify(jobId(1))}, attempt: 1 }, "site.stop"));`;
  const child = spawn(
    "prlimit",
    [
      "--fsize=0",
      "--",
      process.execPath,
      "--disable-warning=ExperimentalWarning",
      "--input-type=module",
      "--eval",
      source,
    ],
    { stdio: ["ignore", "pipe", "ignore"] },
  );
  expect(await text(child.stdout)).toBe("true\n");
});
