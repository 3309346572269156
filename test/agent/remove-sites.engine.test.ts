import { randomBytes } from "node:crypto";
import { afterAll, expect, it } from "vitest";
import { agentIdOf, imageRepository, removeSites } from "../../scripts/lib/engine-objects.ts";
import { docker, engine, newId } from "../support/engine.ts";

const hostToken = randomBytes(8).toString("hex");
const tags: string[] = [];
const tag = async (repository: string): Promise<string> => {
  await engine.tagImage("node:24-bookworm-slim", repository, "dep_1");
  tags.push(`${repository}:dep_1`);
  return `${repository}:dep_1`;
};
afterAll(async () => {
  await removeSites(hostToken);
  for (const name of tags) await engine.removeImage(name);
});

it("the end of a service removes the images that its sites pulled, which have no label of it, and no other's", async () => {
  const site = newId("site");
  const pulled = await tag(imageRepository(hostToken, site));
  const others = await tag(imageRepository("another's", site));
  const agent = `berth.agent=${agentIdOf(hostToken)}`;
  await docker("create", "--label", agent, "--label", `berth.site=${site}`, pulled);
  await removeSites(hostToken);
  expect(await engine.imageId(pulled)).toBeNull();
  expect(await engine.imageId(others)).not.toBeNull();
});
