import { randomBytes } from "node:crypto";
import { afterAll, expect, it, vi } from "vitest";
import { createEngine } from "../../agent/docker/client.ts";

const engine = createEngine({
  socketPath: process.env["DOCKER_HOST"]?.replace("unix://", "") ?? "/var/run/docker.sock",
});
const name = `berth-test-${randomBytes(8).toString("hex")}`;
afterAll(() => engine.removeContainer(name));

it("the code of a container's first exit is known after the engine has started it again", async () => {
  const code = `const fs = require("fs"); if (!fs.existsSync("/tmp/was")) { fs.writeFileSync("/tmp/was", ""); process.exit(9); } setInterval(() => {}, 1000);`;
  const id = await engine.createContainer({
    name,
    Labels: {},
    Image: "node:24-bookworm-slim",
    Cmd: ["node", "-e", code],
    HostConfig: { RestartPolicy: { Name: "always" } },
  });
  const since = new Date();
  await engine.startContainer(id);
  const state = await vi.waitUntil(
    async () => {
      const now = await engine.inspectContainer(id);
      return now !== null && now.finishedAt !== null && now.pid > 0 && now;
    },
    { timeout: 20_000 },
  );
  expect(state.exitCode).toBe(0);
  expect(await engine.firstExit(id, since, AbortSignal.timeout(10_000))).toBe(9);
});

it("a wait for an exit ends with its signal", async () => {
  const stop = new AbortController();
  const waiting = engine.firstExit(name, new Date(), stop.signal);
  stop.abort();
  await expect(waiting).rejects.toThrow();
});
