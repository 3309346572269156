import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { containerName } from "../../agent/docker/database-objects.ts";
import { WriteLimits } from "../../agent/databases/write-limits.ts";
import { databaseImages, ensureImages } from "../../scripts/lib/base-images.ts";
import type { DatabaseSpec } from "../../protocol/agent/jobs.ts";
import { DatabaseHost } from "../support/database-host.ts";

const host = await new DatabaseHost().open();
beforeAll(() => ensureImages(databaseImages), 15 * 60_000);
afterAll(() => host.close());

const engines = {
  postgresql: {
    ask: (spec: DatabaseSpec, statements: string) => host.psql(spec, statements),
    routine: "CREATE PROCEDURE more() LANGUAGE sql AS 'INSERT INTO t VALUES (3)'",
    giveBack: "SET default_transaction_read_only = off; DELETE FROM t; VACUUM FULL t; TRUNCATE t",
    refusal: /read-only transaction/,
  },
  mysql: {
    ask: (spec: DatabaseSpec, statements: string) => host.mariadb(spec, statements),
    routine: "CREATE PROCEDURE more() INSERT INTO t VALUES (3)",
    giveBack: "DELETE FROM t; TRUNCATE t",
    refusal: /denied/,
  },
};

describe.each(["postgresql", "mysql"] as const)(
  "a %s database beyond its pack on a host short of disk",
  (type) => {
    const spec = host.specOf(type);
    const { ask, routine, refusal, giveBack } = engines[type];
    const events: string[] = [];
    const writes = new WriteLimits({
      engine: host.engine,
      records: { addEvent: (_id, _container, { detail }) => void events.push(detail) },
    });
    const judge = async (usedMb: number, isShort = true, on = writes) => {
      const found = await host.engine.inspectContainer(containerName(spec.databaseId));
      const { databaseId } = spec;
      await on.judge({ databaseId, containerId: found?.id ?? "", usedMb, diskGb: 1 }, isShort);
    };
    const insert = "INSERT INTO t VALUES (2)";

    it("takes everything while there is room, or while it is hardly beyond", async () => {
      await host.does("database.provision", { database: spec });
      await ask(spec, `CREATE TABLE t (id int); INSERT INTO t VALUES (1); ${routine}`);
      await judge(5000, false);
      await judge(1100);
      await ask(spec, insert);
      expect(events).toEqual([]);
    });

    it("is read-only, its routines too, and its owner can still give room back", async () => {
      await judge(1200);
      expect(events).toEqual([
        expect.stringMatching(/holds 1\.2 GB, its pack has 1 GB and its host is short/),
      ]);
      await expect(ask(spec, insert)).rejects.toThrow(refusal);
      await expect(ask(spec, "CALL more()")).rejects.toThrow(refusal);
      await expect(ask(spec, "CREATE TABLE u (id int)")).rejects.toThrow(refusal);
      expect(await ask(spec, "SELECT count(*) FROM t")).toBe("2");
      await ask(spec, giveBack);
      expect(await ask(spec, "SELECT count(*) FROM t")).toBe("0");
    });

    it("stays so until it is back under its pack, also for the next agent, and then takes everything", async () => {
      await judge(1050, false);
      await expect(ask(spec, insert)).rejects.toThrow(refusal);
      const next = new WriteLimits({
        engine: host.engine,
        records: { addEvent: (_id, _container, { detail }) => void events.push(detail) },
      });
      await judge(900, true, next);
      await ask(spec, `${insert}; CALL more()`);
      await judge(900);
      expect(events.at(-1)).toMatch(/accepts writes/);
    });

    it("lets nobody in where it went on growing all the same, until a start, which a larger pack is", async () => {
      await judge(1200);
      // A rotation, which allows everything, is no way round it.
      await host.rotate(spec);
      await judge(1250);
      await expect(ask(spec, insert)).rejects.toThrow(refusal);
      await judge(1400);
      await expect(ask(spec, "SELECT count(*) FROM t")).rejects.toThrow(/not permitted to log in|denied/);
      expect(events.at(-1)).toMatch(/its logins are locked/);
      await host.does("database.restart", { database: spec });
      await ask(spec, insert);
    });
  },
);
