import fc from "fast-check";
import { expect, it } from "vitest";
import { jobKinds, jobTraits } from "../../protocol/agent/jobs.ts";
import { expiredReason, timeoutMsOf } from "../../worker/domain/job-rules.ts";

const times = fc.record({
  buildSeconds: fc.integer({ min: 10, max: 7200 }),
  releaseSeconds: fc.integer({ min: 1, max: 3600 }),
  startSeconds: fc.integer({ min: 1, max: 600 }),
});

it("a job has the time that the build, the release command and the start may take, and ten minutes for the rest of a deployment", () => {
  fc.assert(
    fc.property(times, (limits) => {
      const { buildSeconds, releaseSeconds, startSeconds } = limits;
      expect(timeoutMsOf("site.deploy", limits)).toBe(
        (buildSeconds + releaseSeconds + startSeconds + 600) * 1000,
      );
      expect(timeoutMsOf("site.stop", limits)).toBe(300_000);
      for (const kind of ["site.start", "site.restart"] as const)
        expect(timeoutMsOf(kind, limits)).toBeGreaterThan(startSeconds * 1000);
    }),
  );
});

it("the reason of a job that did not finish says what may help: its host, its command's effects, or a shorter build", () => {
  for (const kind of jobKinds)
    expect(expiredReason(kind, null)).toMatch(/^No host took this within 60 minutes\./);
  expect(expiredReason("site.command", 60_000)).toMatch(/the outcome is unknown\./);
  expect(expiredReason("site.deploy", 60_000)).toMatch(/again, shorten the build or ask the operator/);
  for (const kind of jobKinds.filter((one) => jobTraits[one].slot === "long"))
    expect(expiredReason(kind, 60_000)).toMatch(/again, ask the operator about the host\.$/);
});

it("the reason of what took too long names the time it had, in whole minutes", () => {
  const leasedMs = 8490_000;
  expect(expiredReason("site.deploy", leasedMs)).toContain("within 142 minutes");
  for (const kind of jobKinds)
    for (const had of [leasedMs, null]) expect(expiredReason(kind, had)).not.toMatch(/\d\.\d/);
});
