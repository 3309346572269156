import { expect, it } from "vitest";
import type { Host } from "../../agent/host.ts";
import type { Prepared } from "../../agent/image-build/prepare.ts";
import { basesFor } from "../../agent/sites/build-bases.ts";
import { jobRun } from "../support/job-run.ts";

/** A host with these images, which came from a registry that has newer ones or does not answer. */
function hostWith(images: readonly string[], registryAnswers = true) {
  const did: string[] = [];
  const lines: string[] = [];
  const afterwards: (() => Promise<void>)[] = [];
  const host = {
    engine: { imageId: (name: string) => Promise.resolve(images.includes(name) ? "1" : null) },
    newerImages: {
      mayReplace: (name: string) => Promise.resolve(images.includes(name)),
      pull(image: string) {
        did.push(`pull ${image}`);
        return registryAnswers ? Promise.resolve() : Promise.reject(new Error("connection refused"));
      },
      pullDaily: (all: string[]) => Promise.resolve(void did.push(`daily ${all.join(" ")}`)),
    },
    sharedBases: ({ image }: { image: string }) => {
      did.push(`share ${image}`);
      return Promise.resolve("shared:1");
    },
  } as unknown as Host;
  const job = jobRun({
    log: (line) => void lines.push(line),
    afterwards: (work) => void afterwards.push(work),
  });
  const over = async () => {
    for (const work of afterwards) await work();
  };
  return { did, lines, over, of: (rebuild: boolean) => basesFor(host, { rebuild }, job) };
}
const prepared = (...bases: string[]) => ({ generated: null, bases }) as unknown as Prepared;
const php = { kind: "php", image: "php:8-apache" };

it("a deployment waits for no base image that is here; a newer one is asked for once it is over", async () => {
  const { did, over, of } = hostWith(["php:8-apache", "caddy:2"]);
  const bases = of(false);
  expect(await bases.canHave("caddy:2")).toBe(true);
  await bases.shared(php);
  await bases.ready(prepared("php:8-apache", "caddy:2"));
  expect(did).toEqual(["share php:8-apache"]);
  await over();
  expect(did.slice(1)).toEqual(["daily php:8-apache caddy:2"]);
});

it("a rebuild pulls each base image again, once, and before what sites share is made of it", async () => {
  const { did, of } = hostWith(["php:8-apache", "caddy:2"]);
  const bases = of(true);
  await bases.shared(php);
  await bases.ready(prepared("php:8-apache", "caddy:2", "not-here:1"));
  expect(did).toEqual(["pull php:8-apache", "share php:8-apache", "pull caddy:2"]);
});

it("a rebuild goes on with the base image that is here where no registry answers, and says so", async () => {
  const { lines, of } = hostWith(["caddy:2"], false);
  await of(true).ready(prepared("caddy:2"));
  expect(lines.at(-1)).toBe(
    "No registry gave caddy:2, so the one that this host has is used (Error: connection refused).",
  );
});
