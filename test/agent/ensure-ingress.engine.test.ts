import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { accessLogVolume } from "../../agent/ingress/access-log.ts";
import { ingressContainer, ingressImage } from "../../agent/ingress/container.ts";
import { listenersAt } from "../../agent/ingress/ports.ts";
import { openIngressContainer } from "../../agent/startup/ensure-ingress.ts";
import { ensureImages } from "../../scripts/lib/base-images.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { engine } from "../support/engine.ts";
import { answers, get, TestResponder } from "../support/ingress.ts";

it("an ingress of another configuration takes over: no visitor is refused, and the former one ends what it began", async () => {
  await ensureImages([ingressImage]);
  const agentId = randomBytes(8).toString("hex");
  const responder = await TestResponder.start();
  const { dnsPort: responderPort, statusPort } = responder;
  const port = await freePort();
  const settings = { address: "127.0.0.1", port, responderPort, statusPort, tls: null };
  const [before, after] = [[], ["192.0.2.0/24"]].map(
    (trustedProxies) => ingressContainer(agentId, { ...settings, trustedProxies }).spec,
  );
  const ensure = (spec = after!) =>
    openIngressContainer({ engine }, spec, settings, new AbortController().signal).ensure();
  const waiting: http.ServerResponse[] = [];
  const app = http
    .createServer((request, response) =>
      request.url === "/slow" ? void waiting.push(response) : response.end("quick"),
    )
    .listen(0, "127.0.0.1");
  await once(app, "listening");
  onTestFinished(async () => {
    for (const name of [after!.name, `${after!.name}-former`]) {
      const found = await engine.inspectContainer(name);
      if (found) await engine.removeContainer(found.id);
    }
    await engine.removeVolume(accessLogVolume(agentId));
    await responder.stop();
    app.close();
    app.closeAllConnections();
  });
  await ensure(before);
  await answers(port, "unknown.localhost", 404);
  const target = { containerId: "one", address: "127.0.0.1", port: (app.address() as AddressInfo).port };
  await responder.openRoutes().route("site_1", ["shop.localhost"], [target]);
  const slow = get(port, "shop.localhost", { path: "/slow" });
  await vi.waitUntil(() => waiting.length === 1, 10_000);

  const failures: string[] = [];
  let served = 0;
  const over = new AbortController();
  const visitors = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted)
      await get(port, "shop.localhost", { agent: new http.Agent() }).then(
        ({ status }) => (status === 200 ? served++ : failures.push(String(status))),
        (error: unknown) => failures.push(String(error)),
      );
  });
  await ensure();
  await vi.waitUntil(async () => (await listenersAt([port]))[0] === 1, 10_000);
  const alone = served;
  await vi.waitUntil(() => served > alone + 100, 20_000);
  waiting[0]?.end("done");
  expect((await slow).text).toBe("done");
  await vi.waitUntil(async () => (await engine.inspectContainer(`${after!.name}-former`)) === null, 20_000);
  over.abort();
  await Promise.all(visitors);
  // Of those that were just being opened.
  expect(failures.filter((reason) => !/socket hang up|ECONNRESET/.test(reason))).toEqual([]);
  expect(failures.length).toBeLessThanOrEqual(visitors.length);
  expect((await engine.inspectContainer(after!.name))?.labels).toMatchObject(after!.Labels);
});
