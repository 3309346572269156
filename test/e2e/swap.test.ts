import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { steadyLoad } from "./load.ts";
import { launch, plainServer, redeploy, remove, Repository, serverSource } from "./service.ts";

it("a second deployment replaces the first with no failed request at 200 requests a second", async () => {
  const repository = new Repository(plainServer("one"));
  const record = await launch({ githubUrl: repository.address });
  expect(record.status).toBe("RUNNING");
  const load = steadyLoad(record.url, 200);
  repository.commit({ "server.js": serverSource("two") }, "Second");
  expect((await redeploy(record.id)).status).toBe("LIVE");
  // Past the drain, so that the removal of the old container is under load as well.
  await delay(5000);
  const { failures, texts } = await load.stop();
  expect(failures).toEqual([]);
  expect([...texts.keys()].sort()).toEqual(["version one", "version two"]);
  expect(texts.get("version two")).toBeGreaterThan(200);
  await remove(record.id);
});
