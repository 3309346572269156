import { describe, expect, it } from "vitest";
import { buildFailure } from "../../agent/build/build-failure.ts";
import { BuildFailed } from "../../agent/docker/buildkit.ts";

const told = (message: string, ...lines: string[]) => buildFailure(new BuildFailed(message, lines), 2048);

describe("a build that failed", () => {
  it.each([
    ["executor failed running [sh -c npm run build]: exit code: 2", "npm run build"],
    ["executor failed running [/bin/sh -c make [all]]: exit code: 2", "make [all]"],
    ['process "/bin/sh -c npm run build" did not complete successfully: exit code: 2', "npm run build"],
    [
      'executor failed running [sh -c export A="$(cat /run/secrets/env_A)"; export B="$(cat /run/secrets/env_B)"; npm run build]: exit code: 2',
      "npm run build",
    ],
    [
      String.raw`process "sh -c export A=\"$(cat /run/secrets/env_A)\"; npm run build" did not complete successfully: exit code: 2`,
      "npm run build",
    ],
  ])(
    "is told by its step as the owner wrote it, its exit code and its last lines: %s",
    (message, command) => {
      expect(told(message, "src/a.ts(3,5):", "  error TS2322")).toBe(
        `The build failed: "${command}" exited with code 2. Its last lines: src/a.ts(3,5): | error TS2322`,
      );
    },
  );

  const exited = "executor failed running [sh -c make]: exit code: 1";

  it("shows as many whole lines as fit, and none of which only a part would", () => {
    const long = "x".repeat(1400);
    expect(told(exited, "y".repeat(200), long, "last")).toMatch(/Its last lines: x{1400} \| last$/);
    expect(told(exited, "z".repeat(2000))).toMatch(/exited with code 1\. See the deployment's log\.$/);
    expect(told(exited)).toMatch(/It printed nothing\.$/);
  });

  it("is told in the engine's words where no step exited", () => {
    expect(told("pull access denied for nothing:9", "some other step")).toBe(
      "The build failed: pull access denied for nothing:9. See the deployment's log.",
    );
  });
});
