import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { deploySample } from "../../scripts/lib/deploy-sample.ts";
import { freePorts, openState } from "../../scripts/lib/state.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "berth-start-"))));
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Deploys the sample where the API answers so. */
async function sampleAt(api: (method: string) => [number, object], sampleSiteId?: string) {
  const server = http.createServer(({ method = "" }, response) => {
    const [status, body] = api(method);
    response.writeHead(status).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const siteUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { state, save } = openState(folder, await freePorts());
  if (sampleSiteId !== undefined) save({ sampleSiteId });
  const options = { state, save, siteUrl, baseUrl: `${siteUrl}/api/v1`, apiKey: "key" };
  return deploySample(options).finally(() => server.close());
}

const failed = { id: "site_1", status: "FAILED", latestDeployment: { id: "dep_1", error: "No room." } };

it.each([
  ["its key is revoked", () => [401, { error: "unauthorized" }], /answered 401/],
  [
    "it fails again",
    (method) => (method === "GET" ? [200, { ...failed, data: [] }] : [202, {}]),
    /is FAILED: No room\./,
  ],
] as [string, (method: string) => [number, object], RegExp][])(
  "a sample site of an earlier start keeps nothing from starting: %s",
  async (_, api, reason) => {
    const warned = vi.spyOn(console, "error").mockReturnValue();
    expect(await sampleAt(api, "site_1")).toBeUndefined();
    expect(warned.mock.calls).toEqual([[expect.stringMatching(reason)]]);
    expect(warned.mock.calls[0]?.[0]).toMatch(/--no-sample/);
  },
);

it("the first start fails where the sample site cannot be deployed", async () => {
  await expect(sampleAt(() => [401, { error: "unauthorized" }])).rejects.toThrow(/answered 401/);
});
