import { describe, expect, it } from "vitest";
import type { Deployment } from "../../protocol/api/deployments.ts";
import { stepsOf, wholeMs } from "../../worker/pages/sites/deployment-words.tsx";
import { headlineOf } from "../../worker/pages/sites/failure.tsx";

const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const none = { clone: null, build: null, start: null, swap: null };
const deployment = (more: object): Deployment =>
  ({
    status: "BUILDING",
    commit: null,
    rollbackOf: null,
    createdAt: at(0),
    startedAt: at(2),
    finishedAt: null,
    durations: none,
    ...more,
  }) as Deployment;
const shown = (one: Deployment, now = 0) =>
  stepsOf(one, new Date(now * 1000)).map(
    ({ name, state, ms }) => `${name} ${state}${ms === null ? "" : ` ${ms / 1000} s`}`,
  );

it("what a host says of a failed deployment names settings as the dashboard labels them", () => {
  expect(
    headlineOf("Found no Dockerfile at the root: set rootDir to the folder of one. Or set dockerfilePath."),
  ).toEqual({
    headline: "Found no Dockerfile at the root: set “Folder of the app” to the folder of one.",
    rest: "Or set “Dockerfile path”.",
    line: null,
    hasLines: false,
  });
  expect(headlineOf("Nothing listens: give it longer with startTimeoutSeconds.").headline).toBe(
    "Nothing listens: give it longer with “Seconds a new version may take to answer”.",
  );
  expect(headlineOf("The file appConfig.ts is missing.").headline).toBe("The file appConfig.ts is missing.");
});

describe("the times that a deployment shows", () => {
  it("are in all those from the request to the outcome, waiting included, once it is over", () => {
    expect([wholeMs(deployment({})), wholeMs(deployment({ finishedAt: at(9) }))]).toEqual([null, 9000]);
  });

  it("add up: what is under way took what the steps before it have left", () => {
    expect(shown(deployment({ status: "QUEUED", startedAt: null }), 3)).toEqual([
      "wait now 3 s",
      "fetch ahead",
      "build ahead",
      "start ahead",
      "switch ahead",
    ]);
    expect(shown(deployment({ durations: { ...none, clone: 1000 } }), 10)).toEqual([
      "wait done 2 s",
      "fetch done 1 s",
      "build now 7 s",
      "start ahead",
      "switch ahead",
    ]);
  });

  it("name the step that goes on, although what the earlier ones took is reported only at the end", () => {
    expect(shown(deployment({}), 10)).toEqual([
      "wait done 2 s",
      "fetch now 8 s",
      "build ahead",
      "start ahead",
      "switch ahead",
    ]);
    const commit = "1146622340e0";
    expect(shown(deployment({ commit }), 10)).toEqual([
      "wait done 2 s",
      "fetch done",
      "build now 8 s",
      "start ahead",
      "switch ahead",
    ]);
    // Its start would seem to take as long as the build did.
    expect(shown(deployment({ commit, status: "STARTING" }), 300)).toEqual([
      "wait done 2 s",
      "fetch done",
      "build done",
      "start now",
      "switch ahead",
    ]);
  });

  it.each([
    ["BUILDING", "ahead"],
    ["STARTING", "now"],
  ])(
    "do not say of a rollback that is %s that it fetched or built what its host may have",
    (status, start) => {
      expect(shown(deployment({ commit: "1146622340e0", rollbackOf: "dep_1", status }), 10)).toEqual([
        "wait done 2 s",
        "fetch perhaps",
        "build perhaps",
        `start ${start}`,
        "switch ahead",
      ]);
    },
  );

  it("say which step failed and after how long, and that those behind it never came", () => {
    const failed = { status: "FAILED", finishedAt: at(30), durations: { ...none, clone: 1000, build: 5000 } };
    expect(shown(deployment(failed), 99)).toEqual([
      "wait done 2 s",
      "fetch done 1 s",
      "build done 5 s",
      "start failed 22 s",
      "switch missed",
    ]);
    expect(shown(deployment({ ...failed, status: "CANCELLED" }), 99).slice(3)).toEqual([
      "start missed",
      "switch missed",
    ]);
  });

  it("leave out a step that was not needed, as the build of one that was built before", () => {
    const durations = { clone: 1000, build: null, start: 2000, swap: 100 };
    expect(shown(deployment({ status: "LIVE", finishedAt: at(6), durations }), 99)).toEqual([
      "wait done 2 s",
      "fetch done 1 s",
      "build skipped",
      "start done 2 s",
      "switch done 0.1 s",
    ]);
  });

  it("never run backwards where a clock was set back", () => {
    expect(shown(deployment({ createdAt: at(5) }), 3)[0]).toBe("wait done 0 s");
    expect(shown(deployment({ createdAt: at(5), durations: { ...none, clone: 1000 } }), 3)[2]).toBe(
      "build now 0 s",
    );
  });
});
