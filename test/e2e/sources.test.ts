import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SourceInspection } from "../../protocol/api/sources.ts";
import { api, plainServer, Repository, stateDirectory } from "./service.ts";

it("a repository is read by the agent as hosts run it, and nothing of it stays", async () => {
  const repository = new Repository({
    ...plainServer("one"),
    ".env.example": "REDIS_URL=redis://localhost:6379\n",
    "web/package.json": JSON.stringify({
      scripts: { start: "node server.js" },
      dependencies: { express: "5" },
    }),
  });
  const inspect = async (body: object) =>
    (await api<SourceInspection>("POST", "/sources/inspect", { githubUrl: repository.address, ...body }))
      .body;
  expect(await inspect({})).toMatchObject({
    reachable: true,
    branches: ["main"],
    builder: "dockerfile",
    variables: ["REDIS_URL"],
    databases: ["redis"],
    rootDirs: ["web"],
  });
  expect(await inspect({ rootDir: "web" })).toMatchObject({ builder: "detected", framework: "Express" });
  expect(await inspect({ branch: "none" })).toMatchObject({
    reachable: false,
    problem: expect.stringContaining("The branch or tag none does not exist") as string,
  });
  const left = readdirSync(join(stateDirectory, "agent", "work")).filter((name) =>
    name.startsWith("inspect-"),
  );
  expect(left).toEqual([]);
  repository.remove();
});
