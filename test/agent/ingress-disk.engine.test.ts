import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TestResponder } from "../support/ingress.ts";

let responder: TestResponder;
let folder: string;

beforeAll(async () => {
  responder = await TestResponder.start();
  folder = dirname(responder.file);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]);
});
afterAll(async () => {
  execFileSync("umount", ["--lazy", folder]);
  await responder.stop();
});

it("a site whose container has another address after a restart is led to there, also on a full disk", async () => {
  const routes = responder.openRoutes();
  const target = (address: string) => ({ containerId: "c", address, port: 3000 });
  await routes.route("site_1", ["shop.localhost"], [target("10.0.0.1")]);
  const fill = () => {
    for (;;) appendFileSync(join(folder, "filled"), Buffer.alloc(4096));
  };
  for (const address of ["10.0.0.2", "10.0.0.3", "10.0.0.4"]) {
    expect(fill).toThrow("ENOSPC");
    await routes.readdress([target(address)]);
    expect(await responder.leadsTo("shop.localhost")).toBe(`${address}:3000`);
  }
});
