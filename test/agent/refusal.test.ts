import { describe, expect, it } from "vitest";
import { refusalIn } from "../../agent/databases/server-refusal.ts";

describe("why a database's program failed", () => {
  it("is the server's own line, not the statement that its client prints above it", () => {
    const said =
      "--------------\nCREATE VIEW `a` AS SELECT 'secret'\nERROR 1 (HY000): in it\n--------------\n\nERROR 1449 (HY000) at line 2: The user specified as a definer ('data_1'@'%') does not exist\n";
    expect(refusalIn(said)).toBe(
      "ERROR 1449 (HY000) at line 2: The user specified as a definer ('data_1'@'%') does not exist",
    );
  });

  it.each([
    ["ERROR 1062 (23000) at line 3: Duplicate entry 'it's secret' for key 'PRIMARY'", "Duplicate entry '…'"],
    [
      "ERROR 1064 (42000) at line 1: the right syntax to use near 'table 'secret' \nsecret' at line 1",
      "the right syntax to use near '…'",
    ],
    [
      "ERROR 1366 (22007) at line 1: Incorrect integer value: 'secret' for column `a`.`b`.`c` at row 1",
      "Incorrect integer value: '…'",
    ],
  ])("says nothing of the rows: %j", (said, shown) => {
    expect(refusalIn(said)).toContain(shown);
    expect(refusalIn(said)).not.toContain("secret");
  });

  it("is mariadb-dump's as well", () =>
    expect(
      refusalIn("mariadb-dump: Couldn't execute 'SHOW FIELDS FROM `secret`': View 'a.b' is invalid (1356)\n"),
    ).toBe("mariadb-dump: Couldn't execute '…'"));

  it("is PostgreSQL's first error, not what its programs print before it", () => {
    const said =
      'WARNING:  role "b_data" does not exist\npg_restore: while PROCESSING TOC:\npg_restore: from TOC entry 3; 1 2 TABLE t a\n' +
      'pg_restore: error: could not execute query: ERROR:  type "public.hstore" does not exist\nDETAIL: secret\n';
    expect(refusalIn(said)).toBe(
      'pg_restore: error: could not execute query: ERROR:  type "public.hstore" does not exist',
    );
    expect(refusalIn("NOTICE:  secret\nERROR:  42501\n")).toBe("ERROR:  42501");
    expect(refusalIn("psql:<stdin>:3: ERROR:  22012")).toBe("psql:<stdin>:3: ERROR:  22012");
  });

  it("names what is not there, and is one line of any other program", () => {
    const missing = "ERROR 1146 (42S02) at line 2: Table 'a.b' doesn't exist";
    expect(refusalIn(missing)).toBe(missing);
    expect(refusalIn("pg_dump: error: no\nDETAIL: secret")).toBe("pg_dump: error: no");
  });
});
