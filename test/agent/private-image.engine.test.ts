import { expect, it, onTestFinished } from "vitest";
import type { Host } from "../../agent/host.ts";
import { hideDigest } from "../../agent/sites/private-image.ts";
import { emptyDisk } from "../support/empty-disk.ts";
import { docker, engine, newId } from "../support/engine.ts";
import { runSpec } from "../support/run-spec.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("an image that is kept under another id starts as before, and nothing else is left of that", async () => {
  const [siteId, deploymentId] = [newId("site"), newId("deployment")];
  const repository = `berth-test/hidden-${siteId.toLowerCase()}`;
  const reference = `${repository}:${deploymentId}`;
  onTestFinished(() => engine.removeImage(reference));
  const base = "node:24-bookworm-slim";
  const startsBy = "{{json .Config.Cmd}} {{json .Config.Entrypoint}} {{json .Config.Env}}";
  const inspect = (image: string) => docker("image", "inspect", "--format", startsBy, image);
  const imageId = (await engine.imageId(base)) ?? "";
  await engine.tagImage(imageId, repository, deploymentId);
  const host = {
    engine,
    agentId: "test",
    buildRoom: emptyDisk(),
    workDirectory: temporaryFolder(),
    imageRepository: () => repository,
  } as unknown as Host;
  const made = await hideDigest(host, { run: runSpec({ siteId }), deploymentId }, imageId);
  expect(made).not.toBe(imageId);
  expect(await engine.imageId(reference)).toBe(made);
  expect(await inspect(reference)).toBe(await inspect(base));
  expect(await engine.inspectContainer(`berth-${deploymentId}-image`)).toBeNull();
});
