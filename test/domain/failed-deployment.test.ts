import { describe, expect, it } from "vitest";
import { explainFailure, stepOf, type Around } from "../../worker/domain/failed-deployment.ts";

const siteId = "site_1";
const none = { clone: null, build: null, start: null, swap: null };
const around: Around = {
  healthCheckPath: null,
  startTimeoutSeconds: null,
  largerPack: { id: "pack_2", name: "Medium", memoryMb: 1024 },
  lastGood: { id: "dep_1", number: 3 },
};
const failed = (error: string, durations: Partial<typeof none> = {}) => ({
  siteId,
  status: "FAILED" as const,
  error,
  durations: { ...none, ...durations },
  startedAt: new Date(0),
});
const explain = (error: string) => explainFailure(failed(error, { clone: 1, build: 2 } as never), around);

describe("the step that a deployment failed in", () => {
  it.each([
    ["queue", { ...failed("No host took this"), startedAt: null }],
    ["clone", failed("The repository needs a token")],
    ["build", failed("The build failed", { clone: 1 } as never)],
    [
      "release",
      failed("The release command failed: it exited with code 2.", { clone: 1, build: 2 } as never),
    ],
    ["start", failed("Nothing listens on port 3000", { clone: 1, build: 2 } as never)],
    ["probation", failed("The app exited", { clone: 1, build: 2, start: 3, swap: 4 } as never)],
  ])("is %s", (step, one) => {
    expect(stepOf(one)).toBe(step);
  });
});

describe("a known cause", () => {
  it("of an app without enough memory is mended by the next larger pack", () => {
    expect(
      explain(
        "The app was killed after 3.0 s because it used more memory than its pack has: choose a larger pack or use less.",
      ),
    ).toMatchObject({
      outOfMemory: true,
      cause: { code: "out_of_memory" },
      fixes: [
        { operation: "patchSite", input: { id: siteId, packId: "pack_2" } },
        { operation: "rollbackSite", input: { id: siteId, deploymentId: "dep_1" } },
      ],
    });
  });

  it("of an app on another port is mended by that port", () => {
    expect(
      explain(
        "Nothing listens on port 3000, but the app listens on 8080: set the site's port to it, or let the app use the PORT variable.",
      ),
    ).toMatchObject({
      cause: { code: "wrong_port" },
      fixes: [{ operation: "patchSite", input: { id: siteId, settings: { port: 8080 } } }, {}],
    });
  });

  it("of a health check says what it got, and offers to do without or to wait longer", () => {
    const { probe, cause, fixes } = explain(
      "The health check /up did not succeed within 60 s (it answers 500): mend it, change healthCheckPath or give it longer with startTimeoutSeconds.",
    );
    expect([probe, cause?.code]).toEqual(["answers 500", "health_check_failed"]);
    expect(fixes.map(({ input }) => input["settings"])).toEqual([
      { healthCheckPath: null },
      { startTimeoutSeconds: 120 },
      undefined,
    ]);
  });

  it("of an app that exits comes with its exit code", () => {
    expect(
      explain(
        "The app exited with code 1 after 0.3 s: the image lacks the package express: list it. Its last lines: Error",
      ),
    ).toMatchObject({ exitCode: 1, outOfMemory: false, cause: { code: "app_exited" } });
    expect(explain("The app exited with code 0 after 0.3 s: let it go on running.").cause?.code).toBe(
      "app_ended",
    );
    expect(
      explain(
        "The app exited with code 1 after 1.0 s: set the variable RAILS_MASTER_KEY to what config/master.key holds.",
      ).cause?.code,
    ).toBe("missing_variable");
  });

  it.each([
    [
      "build_failed",
      'The build failed: "npm ci" exited with code 1. package-lock.json does not fit package.json',
    ],
    [
      "build_out_of_memory",
      "The build was killed, most likely because it used more than the 2048 MB of memory a build has: let it use less.",
    ],
    ["build_timeout", "The build took more than 15 minutes: make it shorter."],
    ["release_failed", "The release command failed: it exited with code 3."],
    [
      "no_host",
      "No host took this within 60 minutes. Ask the operator whether the hosts are up, then try again.",
    ],
    ["not_detected", "Found a Gemfile, but not what starts the app: no Procfile."],
  ])("%s is told by its error", (code, error) => {
    expect(explain(error).cause?.code).toBe(code);
  });

  it("is none where the error is not known: the way back is offered all the same", () => {
    expect(explain("Something else happened.")).toMatchObject({
      cause: null,
      exitCode: null,
      fixes: [{ operation: "rollbackSite" }],
    });
  });
});
