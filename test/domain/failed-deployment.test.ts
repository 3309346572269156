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
  ref: null,
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
    ["probation", failed("The app exited", { clone: 1, build: 2, start: 3 } as never)],
    // A version that served before is not started again.
    ["probation", failed("The app exited", { clone: 1, build: 2, swap: 4 } as never)],
    ["clone", { ...failed(""), error: null }],
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
      "The health check /up did not succeed within 60 s (it answers 500): fix it, change healthCheckPath or give it longer with startTimeoutSeconds.",
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
    expect(explain("The app exited with code 0 after 0.3 s: let it keep running.").cause?.code).toBe(
      "app_ended",
    );
    expect(
      explain(
        "The app exited with code 1 after 1.0 s: set the variable RAILS_MASTER_KEY to the contents of config/master.key.",
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
      "The build was killed, most likely because it used more than the 2048 MB of memory a build has: reduce its memory use.",
    ],
    ["build_timeout", "The build took more than 15 minutes: make it shorter."],
    ["release_failed", "The release command failed: it exited with code 3."],
    [
      "no_host",
      "No host took this within 60 minutes. Ask the operator whether the hosts are up, then try again.",
    ],
    ["not_detected", "Found a Gemfile, but not what starts the app: no Procfile."],
    ["not_detected", 'package.json has no "build" script: add one, or set buildCommand.'],
    ["build_failed", "The build left an index.html in none of: dist. Make it write there."],
    ["missing_variable", "The app exited with code 1 after 0.3 s: set the site's variable DATABASE_URL."],
    [
      "source_missing",
      "The branch or tag next does not exist in github.com/a/b: choose another one, or push it.",
    ],
    ["source_missing", "The commit 0123456789ab is not, or no longer, in github.com/a/b: push it."],
    [
      "source_missing",
      "Submodule ui: The commit 0123456789ab is not, or no longer, in github.com/a/ui: push it.",
    ],
    ["source_missing", "The file Dockerfile does not exist in api: dockerfilePath is relative to rootDir."],
    ["repository_unreadable", "The repository github.com/a/b does not exist, or is private: set gitToken."],
    ["repository_unreadable", "The Git host of github.com/a/b redirects: use the address it redirects to."],
    ["repository_unreadable", "The Git host of github.com/a/b could not be reached: check the address."],
  ])("%s is told by its error", (code, error) => {
    expect(explain(error).cause?.code).toBe(code);
  });

  it.each([
    ["The app exited with code 137 after 0.3 s.", 137],
    ["The command ended with exit code 42.", 42],
    ["The command ended with exit code: 127.", 127],
    ["It keeps exiting, last with code 255.", 255],
  ])("comes with the exit code that %j names", (error, exitCode) => {
    expect(explain(error).exitCode).toBe(exitCode);
  });

  it("is mended by a longer time to start, up to ten minutes, and at least twice what the site has", () => {
    const wanted = (seconds: number, startTimeoutSeconds: number | null) =>
      explainFailure(failed(`Nothing listens on port 3000 after ${seconds} s.`), {
        ...around,
        startTimeoutSeconds,
        lastGood: null,
      }).fixes;
    const fix = (startTimeoutSeconds: number) => [
      {
        summary: `Give the app ${startTimeoutSeconds} seconds to answer, then deploy again.`,
        operation: "patchSite",
        input: { id: siteId, settings: { startTimeoutSeconds } },
      },
    ];
    expect([wanted(60, null), wanted(60, 100), wanted(400, null)]).toEqual([fix(120), fix(200), fix(600)]);
    expect(wanted(600, 600)).toEqual([]);
  });

  it("that is nobody's fault is mended by another try, and nothing is offered that there is not", () => {
    const alone = { ...around, largerPack: null, lastGood: null };
    expect(explainFailure(failed("No host took this within 60 minutes."), alone).fixes).toEqual([
      { summary: "Deploy again.", operation: "patchSite", input: { id: siteId, action: "deploy" } },
    ]);
    expect(explainFailure({ ...failed("The host was interrupted."), ref: "v2" }, alone).fixes).toEqual([
      {
        summary: "Deploy again.",
        operation: "patchSite",
        input: { id: siteId, action: "deploy", ref: "v2" },
      },
    ]);
    const outOfMemory = "The app was killed because it used more memory than its pack has.";
    expect(explainFailure(failed(outOfMemory), alone).fixes).toEqual([]);
    expect(explain("A build ran out of memory, of which a build has 2048 MB.").outOfMemory).toBe(true);
  });

  it("is none where the error is not known: the way back is offered all the same", () => {
    expect(explain("Something else happened.")).toMatchObject({
      cause: null,
      exitCode: null,
      fixes: [{ operation: "rollbackSite" }],
    });
  });
});
