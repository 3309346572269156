import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { difference } from "../../agent/databases/backups/compare.ts";
import type { Fingerprint } from "../../protocol/agent/backups.ts";
import { backupStatuses } from "../../protocol/states.ts";
import {
  backupScheduleProblem,
  isShrunken,
  nextBackupAt,
  surplusBackups,
} from "../../worker/domain/backup-rules.ts";

const day = 24 * 60 * 60_000;
const now = new Date("2026-11-21T12:00:00Z");

/** Any history of one database's backups, newest first. */
const history = fc
  .array(
    fc.record({
      status: fc.constantFrom(...backupStatuses),
      ageDays: fc.oneof(fc.constantFrom(29, 30, 31), fc.integer({ min: 0, max: 400 })),
    }),
    { maxLength: 40 },
  )
  .map((made) =>
    made
      .sort((a, b) => a.ageDays - b.ageDays)
      .map(({ status, ageDays }, index) => ({
        id: `bak_${String(9000 - index)}`,
        status,
        createdAt: new Date(now.getTime() - ageDays * day),
        finishedAt: null,
        shrunkFrom: null as string | null,
      })),
  );

describe("what retention takes", () => {
  it("is never one of the newest verified ones, of which so many stay as there are to keep", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 20 }), (all, keep) => {
        const gone = new Set(surplusBackups(all, keep, now));
        const verified = all.filter(({ status }) => status === "VERIFIED");
        const left = verified.filter(({ id }) => !gone.has(id));
        expect(left).toEqual(verified.slice(0, keep));
      }),
    );
  });

  it("is never the newest that has not shrunk, and beside it no more than otherwise", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 20 }), fc.nat(40), (all, keep, shrunken) => {
        const verified = all.filter(({ status }) => status === "VERIFIED");
        const whole = verified[Math.min(shrunken, verified.length - 1)];
        if (!whole) return;
        const newer = new Set(verified.slice(0, verified.indexOf(whole)).map(({ id }) => id));
        const shrunk = all.map((row) => (newer.has(row.id) ? { ...row, shrunkFrom: whole.id } : row));
        const kept = new Set(surplusBackups(all, keep, now));
        kept.delete(whole.id);
        expect(new Set(surplusBackups(shrunk, keep, now))).toEqual(kept);
      }),
    );
  });

  it("is also the last large one, once what shrank from it is all that there is to compare with", () => {
    const at = (id: string, shrunkFrom: string | null) => ({
      id,
      status: "VERIFIED" as const,
      createdAt: now,
      finishedAt: now,
      shrunkFrom,
    });
    expect(surplusBackups([at("4", "1"), at("3", "1"), at("2", null), at("1", null)], 1, now)).toEqual([
      "3",
      "1",
    ]);
    expect(surplusBackups([at("4", "1"), at("3", "1")], 1, now)).toEqual(["3"]);
  });

  it("is a failed one a week after it failed, however old it is, to the moment", () => {
    const failed = (agoMs: number) => [
      {
        id: "1",
        status: "FAILED" as const,
        createdAt: new Date(0),
        finishedAt: new Date(now.getTime() - agoMs),
        shrunkFrom: null,
      },
    ];
    expect(surplusBackups(failed(7 * day), 1, now)).toEqual([]);
    expect(surplusBackups(failed(7 * day + 1), 1, now)).toEqual(["1"]);
  });

  it("is none that is to be verified again, for a week, also behind enough newer ones", () => {
    const one = { createdAt: new Date(0), shrunkFrom: null };
    const backups = (agoMs: number) => [
      { ...one, id: "2", status: "VERIFIED" as const, finishedAt: now },
      { ...one, id: "1", status: "STORED" as const, finishedAt: new Date(now.getTime() - agoMs) },
    ];
    expect(surplusBackups(backups(7 * day), 1, now)).toEqual([]);
    expect(surplusBackups(backups(7 * day + 1), 1, now)).toEqual(["1"]);
  });

  it.each([
    [{ rows: 9 }, true],
    [{ rows: 10 }, false],
    [{ rows: 0 }, true],
    [{ tables: 0 }, true],
    [{ sizeBytes: 99 }, true],
    [{ sizeBytes: 100 }, false],
    [{ rows: null }, false],
  ])("takes a backup of %o for shrunken: %s", (now, expected) => {
    const before = { tables: 1, rows: 100, sizeBytes: 1000 };
    expect(isShrunken({ ...before, ...now }, before)).toBe(expected);
    expect(isShrunken({ ...before, ...now }, { ...before, rows: null, tables: null, sizeBytes: null })).toBe(
      false,
    );
  });

  it("is nothing that runs, and nothing that may be good while there are too few that are, but what could not be proven for a month", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 20 }), (all, keep) => {
        const gone = all.filter(({ id }) => surplusBackups(all, keep, now).includes(id));
        expect(gone.filter(({ status }) => status === "RUNNING")).toEqual([]);
        if (all.filter(({ status }) => status === "VERIFIED").length >= keep) return;
        // Of those that no host could prove, the old ones go behind enough newer ones.
        const complete = all.filter(({ status }) => status === "VERIFIED" || status === "STORED");
        const older = complete.slice(keep).filter(({ status, createdAt }) => {
          const ageDays = (now.getTime() - createdAt.getTime()) / day;
          return status === "STORED" && ageDays > 30;
        });
        expect(gone.filter(({ status }) => status !== "FAILED")).toEqual(older);
      }),
    );
  });

  it("leaves what was not proven a month to be proven, however many are newer", () => {
    const stored = (id: string, ageDays: number) => ({
      id,
      status: "STORED" as const,
      createdAt: new Date(now.getTime() - ageDays * day),
      finishedAt: new Date(now.getTime() - ageDays * day),
      shrunkFrom: null,
    });
    const all = [stored("bak_3", 0), stored("bak_2", 30), stored("bak_1", 30.1)];
    expect(surplusBackups(all, 1, now)).toEqual(["bak_1"]);
  });

  it("is nothing more when it is done again", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 20 }), (all, keep) => {
        const gone = new Set(surplusBackups(all, keep, now));
        expect(
          surplusBackups(
            all.filter(({ id }) => !gone.has(id)),
            keep,
            now,
          ),
        ).toEqual([]);
      }),
    );
  });
});

describe("the next planned backup", () => {
  it("is after now, within the period, at that hour", () => {
    const times = fc.date({ min: new Date("2020-01-01"), max: new Date("2040-01-01"), noInvalidDate: true });
    fc.assert(
      fc.property(
        times,
        fc.constantFrom("daily" as const, "weekly" as const),
        fc.integer({ min: 0, max: 23 }),
        fc.string({ minLength: 8 }),
        (at, schedule, hourUtc, id) => {
          const next = nextBackupAt({ schedule, hourUtc }, id, at)!;
          const waitMs = next.getTime() - at.getTime();
          expect([waitMs > 0, waitMs <= (schedule === "daily" ? day : 7 * day) + 1000]).toEqual([true, true]);
          expect(next.getUTCHours()).toBe(hourUtc);
          const after = nextBackupAt({ schedule, hourUtc }, id, next)!;
          expect(after.getTime() - next.getTime()).toBe(schedule === "daily" ? day : 7 * day);
        },
      ),
    );
  });

  it("lies in another minute for another id, and weekly ones on all days", () => {
    const ids = Array.from(
      { length: 500 },
      (_, index) => `db_${(index * 7919).toString(36).padStart(12, "0")}`,
    );
    const daily = ids.map((id) => nextBackupAt({ schedule: "daily", hourUtc: 3 }, id, now)!.getUTCMinutes());
    expect(new Set(daily).size).toBeGreaterThan(50);
    const weekly = ids.map((id) => nextBackupAt({ schedule: "weekly", hourUtc: 3 }, id, now)!.getUTCDay());
    expect(new Set(weekly).size).toBe(7);
    // Those of one minute as well.
    expect(new Set(weekly.filter((_, index) => daily[index] === daily[0])).size).toBeGreaterThan(2);
  });

  it("is of an id's last characters: what comes before tells when it was made", () => {
    const at = (id: string) => nextBackupAt({ schedule: "daily", hourUtc: 3 }, id, now);
    expect(at("db_one_abcdef")).toEqual(at("db_another_abcdef"));
  });

  it("is as a cron expression says, in UTC and by no other minute", () => {
    const at = (schedule: string) => nextBackupAt({ schedule, hourUtc: 3 }, "db_1", now)?.toISOString();
    expect(at("30 */6 * * *")).toBe("2026-11-21T12:30:00.000Z");
    expect(at("0 12 * * *")).toBe("2026-11-22T12:00:00.000Z");
    expect(at("15 4 1 * *")).toBe("2026-12-01T04:15:00.000Z");
  });

  it("is refused where two would be less than an hour apart, or it never comes", () => {
    for (const schedule of [null, "daily", "weekly", "@hourly", "0 * * * *", "5 3 * * mon", "59 0,23 * * *"])
      expect([schedule, backupScheduleProblem(schedule, now)]).toEqual([schedule, null]);
    for (const schedule of ["*/30 * * * *", "0,59 3 * * *", "0,5 0 29 2 *", "0 3 30 2 *", "61 * * * *"])
      expect([schedule, backupScheduleProblem(schedule, now)]).toEqual([schedule, expect.any(String)]);
  });

  it("is none without a schedule", () => {
    expect(nextBackupAt({ schedule: null, hourUtc: 3 }, "db_1", now)).toBeNull();
  });
});

describe("a restored copy differs", () => {
  const table = { name: "items", rows: "3", checksum: "12345678901234567890" };
  const held = {
    tables: [table],
    objects: { views: "1" },
    counters: [{ name: "ids", from: "10", to: "20" }],
  };
  const at = (value: string) => [{ name: "ids", from: value, to: value }];

  it("from what was backed up by a table, a row, a value, a view or a counter, and not otherwise", () => {
    const same = { ...held, counters: at("15") };
    expect(difference(held, same)).toBeNull();
    const others = [
      [{ ...same, tables: [] }, /items is missing/],
      [{ ...same, tables: [{ ...table, rows: "2" }] }, /2 rows instead of 3/],
      [{ ...same, tables: [{ ...table, checksum: "12345678901234567891" }] }, /contents .* differ/],
      [{ ...same, tables: [table, { ...table, name: "more" }] }, /more was not backed up/],
      [{ ...same, objects: {} }, /0 views instead of 1/],
      [{ ...same, objects: { ...held.objects, triggers: "1" } }, /1 triggers instead of 0/],
      [{ ...same, counters: [] }, /ids is missing/],
      [{ ...same, counters: at("9") }, /ids is at 9/],
      [{ ...same, counters: at("21") }, /ids is at 21/],
    ] satisfies [Fingerprint, RegExp][];
    for (const [found, says] of others) expect(difference(held, found)).toMatch(says);
  });
});
