import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, vi } from "vitest";
import { openJournal } from "../../agent/journal.ts";
import { openRecords } from "../../agent/running/records.ts";
import { openRequestRecords } from "../../agent/running/request-records.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("prepares no statement with numbered parameters, which Node 22 binds from 22.20 on only", () => {
  const folder = temporaryFolder();
  const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
  for (const [name, open] of Object.entries({ openJournal, openRecords, openRequestRecords }))
    open(join(folder, name)).close();
  const statements = prepare.mock.calls.map(([sql]) => sql);
  prepare.mockRestore();
  expect(statements.length).toBeGreaterThan(50);
  expect(statements.filter((sql) => /\?\d/.test(sql))).toEqual([]);
});
