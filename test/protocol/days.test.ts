import { afterEach, expect, it, vi } from "vitest";
import { ago } from "../../protocol/ago.ts";
import { day, localDay, localTime } from "../../protocol/days.ts";

afterEach(() => vi.unstubAllEnvs());

it("a day of a document is the one in UTC wherever it is read", () => {
  vi.stubEnv("TZ", "Pacific/Apia");
  expect([day("2026-12-31T23:59:59.999Z"), day("2028-02-29T00:00:00.000Z")]).toEqual([
    "31 Dec 2026",
    "29 Feb 2028",
  ]);
});

it("a time is told by the reader's clock, with its summer time, in the form of all days", () => {
  vi.stubEnv("TZ", "America/St_Johns");
  expect(localTime("2027-01-01T01:00:05.000Z")).toBe("31 Dec 2026, 21:30:05");
  expect(localTime("2027-09-01T01:00:05.000Z", "to the minute")).toBe("31 Aug 2027, 22:30");
  vi.stubEnv("TZ", "Asia/Kathmandu");
  expect(localDay("2026-09-30T18:15:00.000Z")).toBe("1 Oct 2026");
});

it("what is more than 30 days ago or to come has its day, as the reader's clock says", () => {
  vi.stubEnv("TZ", "Pacific/Apia");
  const nowMs = Date.parse("2027-03-01T12:00:00Z");
  expect(ago("2027-01-29T11:00:00.000Z", nowMs)).toBe("30 Jan 2027");
  expect(ago("2027-04-09T09:00:00.000Z", nowMs)).toBe("9 Apr 2027");
  expect(ago("2027-02-01T12:00:00.000Z", nowMs)).toBe("28 days ago");
});
