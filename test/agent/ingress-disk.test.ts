import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { Ingress } from "../../agent/ingress/ingress.ts";
import { TestResponder } from "../support/ingress.ts";

const target = (address: string) => ({ containerId: `c-${address}`, address, port: 3000 });
const names = ["shop.localhost"];

let responder: TestResponder;
let routes: Ingress;

beforeAll(async () => {
  responder = await TestResponder.start();
  routes = responder.openRoutes();
});
beforeEach(async () => {
  await routes.route("site_1", names, [target("10.0.0.1")]);
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});
afterAll(() => responder.stop());

/** The disk takes nothing of these. */
function breakDisk(isBroken: (is: fs.Stats) => boolean): void {
  const { fsyncSync } = fs;
  vi.spyOn(fs, "fsyncSync").mockImplementation((descriptor) => {
    if (isBroken(fs.fstatSync(descriptor))) throw new Error("EIO: i/o error, fsync");
    fsyncSync(descriptor);
  });
  syncBuiltinESMExports();
}

it("what cannot be written leads where it led, and is written once the disk takes it again", async () => {
  breakDisk((is) => is.isFile());
  await expect(routes.route("site_1", names, [target("10.0.0.2")])).rejects.toThrow("EIO");
  expect(routes.current("site_1")).toEqual([target("10.0.0.1")]);
  expect(await responder.leadsTo("shop.localhost")).toBe("10.0.0.1:3000");
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await routes.route("site_1", names, [target("10.0.0.2")]);
  expect(await responder.leadsTo("shop.localhost")).toBe("10.0.0.2:3000");
});

it("what is in place is what is led to, though the disk did not say that it will last", async () => {
  breakDisk((is) => is.isDirectory());
  await routes.route("site_1", names, [target("10.0.0.3")]);
  expect(routes.current("site_1")).toEqual([target("10.0.0.3")]);
  expect(await responder.leadsTo("shop.localhost")).toBe("10.0.0.3:3000");
});
