import { expect, it } from "vitest";
import { reasonWithoutData } from "../../worker/domain/failure-reason.ts";

it.each([
  [
    "pg_dump ended with 1: ERROR: function hash_record_extended(timestamp with time zone, integer) does not exist",
    "pg_dump ended with 1: ERROR: function hash_record_extended(timestamp with time zone, integer) does not exist",
  ],
  ['ERROR: relation "orders" does not exist', 'ERROR: relation "orders" does not exist'],
  ['invalid input syntax for type integer: "4111 1111"', 'invalid input syntax for type integer: "…"'],
  ["Duplicate entry 'ada@example.com' for key 'users.email'", "Duplicate entry '…' for key '…'"],
  ["Key (email)=(ada@example.com) already exists.", "Key (email)=(…) already exists."],
  ["mariadb ended with 1: 78787878787878787878787878787878787878787878", "mariadb ended with 1: …"],
  ["ERROR: no\nDETAIL: Failing row contains (1, secret).\nCONTEXT: COPY t, line 3", "ERROR: no"],
  ["ERROR: no DETAIL: Failing row contains (1, secret).", "ERROR: no"],
  ["DETAIL: Failing row contains (1, secret).", ""],
  [" ERROR:\t no \n\n such  thing ", "ERROR: no such thing"],
  ["You have an error in your syntax near 'ada@example.com", "You have an error in your syntax near '…'"],
  ['invalid input syntax for type integer: "4111', 'invalid input syntax for type integer: "…"'],
  ["Key (email)=(ada@exam", "Key (email)=(…)"],
  ["at or near 'SELECT o'clock", "at or near '…'"],
  ["The host's disk is full and the site's too.", "The host's disk is full and the site's too."],
])("a reason keeps what the server says and no value of a row: %s", (said, kept) => {
  expect(reasonWithoutData(said)).toBe(kept);
});

it("a reason ends after 300 characters", () => {
  expect(reasonWithoutData("no ".repeat(1000)).length).toBeLessThanOrEqual(300);
});
