import { randomBytes } from "node:crypto";
import { afterAll, expect, it, vi } from "vitest";
import { engine } from "../support/engine.ts";

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

it("a container that ran out of memory is known to after the engine has started it again", async () => {
  const since = new Date();
  const code = `if (require("fs").existsSync("/tmp/was")) setInterval(() => {}, 1000); else { require("fs").writeFileSync("/tmp/was", ""); const a = []; for (;;) a.push(Buffer.alloc(1e7, 1)); }`;
  const ids = await Promise.all(
    [code, "process.exit(9)"].map(async (text, number) => {
      const id = await engine.createContainer({
        name: `${name}-${number}`,
        Labels: {},
        Image: "node:24-bookworm-slim",
        Cmd: ["node", "-e", text],
        HostConfig: {
          Memory: 128 * 1024 * 1024,
          MemorySwap: 128 * 1024 * 1024,
          RestartPolicy: { Name: "always" },
        },
      });
      await engine.startContainer(id);
      return id;
    }),
  );
  const outOfMemory = async (id: string) => {
    const state = await vi.waitUntil(
      async () => {
        const now = await engine.inspectContainer(id);
        return now !== null && now.restarts > 0 && now.startedAt! > now.finishedAt! && now;
      },
      { timeout: 20_000 },
    );
    return engine.ranOutOfMemory(state, since);
  };
  try {
    expect(await Promise.all(ids.map(outOfMemory))).toEqual([true, false]);
  } finally {
    for (const id of ids) await engine.removeContainer(id);
  }
});

it("a wait for an exit ends with its signal", async () => {
  const stop = new AbortController();
  const waiting = engine.firstExit(name, new Date(), stop.signal);
  stop.abort();
  await expect(waiting).rejects.toThrow();
});

it("a container between two tries of the engine to start it is listed as running, as its own record says", async () => {
  const labels = { "berth-test": `${name}-again` };
  const id = await engine.createContainer({
    name: `${name}-again`,
    Labels: labels,
    Image: "node:24-bookworm-slim",
    Cmd: ["node", "-e", "process.exit(9)"],
    HostConfig: { RestartPolicy: { Name: "always" } },
  });
  try {
    await engine.startContainer(id);
    // The pauses become longer each time.
    const listed = await vi.waitUntil(
      async () => {
        const before = await engine.inspectContainer(id);
        const [one] = await engine.listContainers(labels);
        const after = await engine.inspectContainer(id);
        return before?.pid === 0 && after?.pid === 0 && before.restarts === after.restarts && one;
      },
      { timeout: 60_000 },
    );
    expect(listed.running).toBe(true);
  } finally {
    await engine.removeContainer(id);
  }
});
