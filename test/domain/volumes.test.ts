import { describe, expect, it } from "vitest";
import { refuseTooManyReplicas } from "../../worker/domain/replicas.ts";
import { drainNotice, lossWarning } from "../../worker/domain/volume-notice.ts";

describe("replicas", () => {
  it("have 64 MB each at least, and a site may always have one", () => {
    for (const [replicas, packMb] of [
      [1, 32],
      [1, 256],
      [4, 256],
      [10, 640],
    ] as const)
      expect(() => refuseTooManyReplicas("replicas", replicas, packMb)).not.toThrow();
    for (const [replicas, packMb, most] of [
      [5, 256, 4],
      [10, 639, 9],
      [2, 100, 1],
    ] as const)
      try {
        refuseTooManyReplicas("replicas", replicas, packMb);
        expect.unreachable();
      } catch (error) {
        expect(error).toMatchObject({
          code: "invalid_request",
          extra: { issues: [{ path: "replicas", message: expect.stringContaining(`at most ${most},`) }] },
        });
      }
  });
});

describe("sites with volumes", () => {
  it("are why a drained host does not get empty, and only a drained one", () => {
    expect(drainNotice("ACTIVE", { volumeSiteCount: 2, linkedSiteCount: 0, databaseCount: 0 })).toBeNull();
    expect(drainNotice("DRAINING", { volumeSiteCount: 0, linkedSiteCount: 0, databaseCount: 0 })).toBeNull();
    expect(drainNotice("DRAINING", { volumeSiteCount: 1, linkedSiteCount: 0, databaseCount: 0 })).toMatch(
      /^1 site with volumes cannot move/,
    );
    expect(drainNotice("DRAINING", { volumeSiteCount: 2, linkedSiteCount: 0, databaseCount: 0 })).toMatch(
      /^2 sites with volumes cannot move/,
    );
    expect(drainNotice("DRAINING", { volumeSiteCount: 0, linkedSiteCount: 2, databaseCount: 1 })).toMatch(
      /^1 database cannot move .*, and 2 sites stay beside a linked database\. To empty/,
    );
  });

  it("are named before their data is lost, ten at most", () => {
    const names = Array.from({ length: 10 }, (_, n) => `site-${n}`);
    expect(lossWarning("host-1", ["shop"], { volumeSiteCount: 1, databaseCount: 0 })).toMatch(
      /data of 1 site with volumes on it \(shop\)/,
    );
    expect(lossWarning("host-1", names, { volumeSiteCount: 12, databaseCount: 0 })).toMatch(
      /site-9 and 2 more\)/,
    );
    expect(lossWarning("host-1", names, { volumeSiteCount: 6, databaseCount: 5 })).toMatch(
      /data of 6 sites with volumes and 5 databases on it .*site-9 and 1 more\)/,
    );
  });
});
