import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { projectRoot } from "../../scripts/lib/project-root.ts";

const start = (...flags: string[]) =>
  spawnSync("npm", ["start", "--", ...flags], { cwd: projectRoot, encoding: "utf8" });

test("npm start hands its flags on, and says which there are", () => {
  expect(start("--help")).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/Usage: npm start -- .*--ingress-port <port>/s) as string,
  });
  expect(start("--state", "a b")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("Unknown option '--state'") as string,
  });
});
