import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RequestStats } from "../../protocol/api/requests.ts";
import {
  openRequestRecords,
  type RequestRecords,
  type SeenRequest,
} from "../../agent/running/request-records.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const minute = 60_000;
const hour = 60 * minute;
const now = Date.parse("2026-11-23T12:00:30.000Z");
const position = { file: "1-1", offset: 10 };

let folder: string;
let records: RequestRecords;
let clock: number;
const open = () => openRequestRecords(join(folder, "requests.db"), () => clock);
beforeEach(() => {
  folder = temporaryFolder();
  clock = 0;
  records = open();
});
afterEach(() => records.close());

const request = (part: Partial<SeenRequest> = {}): SeenRequest => ({
  siteId: "site_1",
  atMs: now,
  method: "GET",
  host: "shop.example.com",
  path: "/",
  query: null,
  status: 200,
  durationUs: 2000,
  bytesIn: 0,
  bytesOut: 100,
  address: "203.0.113.7",
  referrer: null,
  userAgent: null,
  deploymentId: null,
  replica: null,
  requestId: null,
  ...part,
});
const many = (count: number, part: (index: number) => Partial<SeenRequest>) =>
  Array.from({ length: count }, (_, index) => request(part(index)));
const list = (filters = {}, limit = 100, siteId = "site_1") => records.before(siteId, filters, null, limit);

describe("requests of a site", () => {
  it("are kept masked, newest first, and read page by page", () => {
    records.take(
      [
        request({ path: "/a", query: "token=1" }),
        request({ path: "/b", referrer: "https://x.example/?key=1", userAgent: "curl" }),
        request({ siteId: "site_2", path: "/other" }),
        request({ path: "/c", durationUs: 1234, requestId: "id" }),
      ],
      position,
    );
    expect(list().map(({ path }) => path)).toEqual(["/c", "/b", "/a"]);
    expect(list({}, 2).map(({ path }) => path)).toEqual(["/c", "/b"]);
    const last = Number(list({}, 2).at(-1)?.id);
    expect(records.before("site_1", {}, last, 2)).toMatchObject([{ path: "/a", query: "token=•••" }]);
    expect(list()[1]).toMatchObject({ referrer: "https://x.example/", userAgent: "curl" });
    expect(list()[0]).toMatchObject({ at: new Date(now).toISOString(), durationMs: 1.234, represents: 1 });
    expect(records.before("site_3", {}, null, 10)).toEqual([]);
  });

  it.each([
    [{ status: "404" }, ["/b"]],
    [{ status: "4xx" }, ["/c", "/b"]],
    [{ status: "0" }, ["/d"]],
    [{ path: "/b" }, ["/b"]],
    [{ path: "%" }, []],
    [{ method: "post" }, ["/c"]],
    [{ address: "2001:db8::1" }, ["/c"]],
    [{ from: new Date(now + 1).toISOString() }, ["/d"]],
    [{ to: new Date(now).toISOString() }, ["/a"]],
    [{ status: "4xx", method: "GET" }, ["/b"]],
  ])("are found by %j", (filters, found) => {
    records.take(
      [
        request({ path: "/a", atMs: now - 1 }),
        request({ path: "/b", status: 404 }),
        request({ path: "/c", status: 410, method: "POST", address: "2001:db8::1" }),
        request({ path: "/d", status: 0, atMs: now + 1 }),
      ],
      position,
    );
    expect(list(filters).map(({ path }) => path)).toEqual(found);
  });

  it("are the last ten thousand, and of a flood a sample that says what it stands for", () => {
    for (let batch = 0; batch < 30; batch++) {
      records.take(
        many(500, (index) => ({ path: `/${batch * 500 + index}` })),
        position,
      );
      clock += 1000;
    }
    const all = [...pages()];
    expect(all.length).toBeGreaterThanOrEqual(10_000);
    expect(all.length).toBeLessThanOrEqual(10_500);
    expect(all[0]).toMatchObject({ path: "/14999", represents: 1 });
    expect(all.map(({ path }) => path)).toEqual(all.map((_, index) => `/${14_999 - index}`));
    const following = [...followed(Number(all.at(-1)?.id) - 1)];
    expect(following).toEqual(all.toReversed());
    expect(list({ path: "/1234" }, 20).map(({ path }) => path)).toEqual(
      Array.from({ length: 10 }, (_, index) => `/${12_349 - index}`),
    );
    records.take(
      many(50_000, () => ({ siteId: "site_2" })),
      position,
    );
    const sample = [...pages("site_2")];
    expect(sample.length).toBe(2000);
    expect(sample.reduce((sum, { represents }) => sum + represents, 0)).toBe(50_000);
    expect(records.stats("site_2", "1h", now).totals.requests).toBe(50_000);
  });

  function* followed(after: number) {
    for (;;) {
      const page = records.after("site_1", {}, after, 70);
      yield* page;
      if (page.length === 0) return;
      after = Number(page.at(-1)?.id);
    }
  }

  function* pages(siteId = "site_1") {
    for (let before: number | null = null; ;) {
      const page = records.before(siteId, {}, before, 100);
      yield* page;
      if (page.length === 0) return;
      before = Number(page.at(-1)?.id);
    }
  }

  it("are gone with their site, and so is what was counted", () => {
    records.take([request(), request({ siteId: "site_2" })], position);
    records.keepOnly(["site_2"]);
    expect([list().length, list({}, 10, "site_2").length]).toEqual([0, 1]);
    expect(records.stats("site_1", "24h", now).totals.requests).toBe(0);
  });

  it("and the position in the log are there together after the agent was killed", () => {
    records.take([request()], position);
    const again = open();
    expect([again.position(), again.newest()]).toEqual([position, 1]);
    again.take([request()], { ...position, offset: 20 });
    again.close();
    expect(records.position()?.offset).toBe(20);
    expect(records.stats("site_1", "1h", now).totals.requests).toBe(2);
  });

  it("wake who follows them, until they stop", () => {
    const stopping = new AbortController();
    let woken = 0;
    records.onTaken("site_1", () => woken++, stopping.signal);
    records.take([request({ siteId: "site_2" })], position);
    records.take([request()], position);
    stopping.abort();
    records.take([request()], position);
    expect(woken).toBe(1);
  });
});

describe("statistics of a site", () => {
  it("count all requests, by status and minute, with quantiles, bytes and what was most frequent", () => {
    records.take(
      [
        ...many(90, () => ({ path: "/", userAgent: "a", durationUs: 1000 })),
        ...many(8, () => ({ path: "/api", status: 404, userAgent: "b", durationUs: 50_000 })),
        request({ status: 503, atMs: now - 3 * minute, bytesIn: 7 }),
        request({ status: 0, atMs: now - 3 * minute, referrer: "https://x.example/?a" }),
        request({ status: 101, atMs: now - 3 * minute, durationUs: 3_000_000_000 }),
      ],
      position,
    );
    const stats = RequestStats.parse(records.stats("site_1", "1h", now));
    expect(stats.totals).toMatchObject({
      requests: 101,
      statuses: { "1xx": 1, "2xx": 90, "3xx": 0, "4xx": 8, "5xx": 1, none: 1 },
      bytesIn: 7,
      bytesOut: 10_100,
    });
    expect(stats.totals.p50Ms).toBeCloseTo(1, 1);
    expect(stats.totals.p95Ms).toBeGreaterThan(48);
    expect(stats.totals.p99Ms).toBeLessThan(52);
    expect(stats.series.map(({ at, requests }) => [at, requests])).toEqual([
      ["2026-11-23T11:57:00.000Z", 3],
      ["2026-11-23T12:00:00.000Z", 98],
    ]);
    expect(stats.top).toEqual({
      paths: [
        { value: "/", requests: 93 },
        { value: "/api", requests: 8 },
      ],
      referrers: [{ value: "https://x.example/", requests: 1 }],
      userAgents: [
        { value: "a", requests: 90 },
        { value: "b", requests: 8 },
      ],
    });
  });

  it("are the same sums over days after they were rolled up, and end after thirty days", async () => {
    const ages = [0, 2 * hour, 23 * hour, 30 * hour, 6 * 24 * hour, 8 * 24 * hour, 29 * 24 * hour];
    for (const age of ages)
      for (let step = 0; step < 5; step++)
        records.take([request({ atMs: now - age - step * minute, path: `/${step}` })], position);
    const before = records.stats("site_1", "30d", now);
    await records.rollUp(now);
    await records.rollUp(now);
    expect(records.stats("site_1", "30d", now)).toEqual(before);
    expect(before.totals.requests).toBe(5 * ages.length);
    expect(records.stats("site_1", "24h", now).totals.requests).toBe(15);
    await records.rollUp(now + 31 * 24 * hour);
    expect(records.stats("site_1", "30d", now).totals.requests).toBe(0);
  });

  it("find the frequent among very many", async () => {
    for (let batch = 0; batch < 20; batch++)
      records.take(
        [...many(900, (index) => ({ path: `/${batch}-${index}` })), ...many(5, () => ({ path: "/often" }))],
        position,
      );
    await records.rollUp(now + 3 * hour);
    const { paths } = records.stats("site_1", "24h", now).top;
    expect(paths[0]).toEqual({ value: "/often", requests: 100 });
    expect(paths).toHaveLength(10);
  });

  it("of thirty days take less than 5 MB, at worst", async () => {
    const before = statSync(join(folder, "requests.db")).size;
    const start = now - 30 * 24 * hour;
    const long = "x".repeat(200);
    for (let at = start; at < now; at += 10 * minute)
      records.take(
        many(40, (index) => ({
          atMs: at + (index % 10) * minute,
          status: 100 * (1 + (index % 5)) + 2,
          durationUs: Math.round(200 * 1.3 ** index),
          path: `/${long.slice(0, 100)}${(index * 7919 + at) % 997}`,
          referrer: `https://${(index * 31 + at) % 997}.example/${long}`,
          userAgent: `${index} ${at} ${long}`,
        })),
        position,
      );
    await records.rollUp(now);
    records.close();
    const size = sizeWithoutRequests(join(folder, "requests.db"));
    records = open();
    expect(records.stats("site_1", "30d", now).series.length).toBeGreaterThan(700);
    expect(size - before).toBeLessThan(5_000_000);
  });
});

function sizeWithoutRequests(file: string): number {
  const db = new DatabaseSync(file);
  db.exec("DELETE FROM blocks; VACUUM");
  db.close();
  return statSync(file).size;
}
