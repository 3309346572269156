import dgram from "node:dgram";
import net from "node:net";
import { once } from "node:events";
import { expect, it, vi } from "vitest";
import { ingressContainer, ingressImage } from "../../agent/ingress/container.ts";
import { portsTaken } from "../../agent/ingress/ports.ts";
import { openIngressContainer } from "../../agent/startup/ensure-ingress.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { MemoryEngine } from "../support/memory-engine.ts";

const port = await freePort();
const settings = { address: "127.0.0.1", port, responderPort: 5300, statusPort: 5301, tls: null };
const { spec } = ingressContainer("a", settings);
const older = ingressContainer("a", { ...settings, statusPort: 5302 }).spec;

/** A machine on which the image of the ingress arrives when the test says so. */
function machine() {
  const memory = new MemoryEngine();
  const { state } = memory;
  state.networks.push("host");
  let arrive = () => undefined as void;
  const arrival = new Promise<void>((resolve) => (arrive = resolve));
  const pullImage = async () => {
    await arrival;
    state.images[ingressImage] = "newest";
  };
  const engine = { ...memory.engine, pullImage };
  const serving = () => state.containers.filter(({ running }) => running).map(({ labels }) => labels);
  return {
    engine,
    state,
    serving,
    arrive,
    ingress: openIngressContainer({ engine }, spec, settings, new AbortController().signal, async (ports) =>
      Promise.resolve(ports.map(() => serving().length)),
    ),
  };
}

it("an agent does not wait for the image of its ingress: the one in place serves until it is here, and is replaced then", async () => {
  const { engine, state, serving, arrive, ingress } = machine();
  state.images[ingressImage] = "older";
  await engine.createContainer(older);
  delete state.images[ingressImage];
  await ingress.ensure();
  expect(serving()).toEqual([older.Labels]);
  await expect(ingress.renew()).rejects.toThrow(/image .* is missing/);
  expect(serving()).toEqual([older.Labels]);
  arrive();
  await vi.waitFor(() => expect(serving()).toEqual([spec.Labels]));
});

it("without an ingress in place it starts one as soon as the image is here", async () => {
  const { serving, arrive, ingress } = machine();
  await ingress.ensure();
  expect([serving(), ingress.problem()]).toEqual([[], expect.stringContaining("has not been pulled yet")]);
  arrive();
  await vi.waitFor(() => expect(serving()).toEqual([spec.Labels]));
  expect(ingress.problem()).toBe(null);
});

it("an ingress that is being made when it is looked at is not made once more", async () => {
  const { state, serving, ingress } = machine();
  state.images[ingressImage] = "newest";
  const looked = [ingress.renew(), ingress.ensure()] as const;
  await looked[0];
  const [made] = state.containers;
  await looked[1];
  expect(serving()).toEqual([spec.Labels]);
  expect(state.containers.map(({ id }) => id)).toEqual([made?.id]);
});

it("an ingress that has the configuration is left alone, and started again without its image", async () => {
  const { engine, state, serving, ingress } = machine();
  state.images[ingressImage] = "newest";
  const id = await engine.createContainer(spec);
  delete state.images[ingressImage];
  await ingress.ensure();
  expect(serving()).toEqual([spec.Labels]);
  expect(state.containers.map((one) => one.id)).toEqual([id]);
});

it("an ingress whose port another program has is not started again and again: the reason names the port, until it is free", async () => {
  const { engine, state, serving, ingress } = machine();
  state.images[ingressImage] = "newest";
  const another = net.createServer().listen(port, "127.0.0.1");
  await once(another, "listening");
  await engine.startContainer(await engine.createContainer(spec));
  await expect(ingress.renew()).rejects.toThrow(`TCP port ${port} is in use by another program`);
  expect(state.containers).toEqual([]);
  expect(ingress.problem()).toContain(`TCP port ${port} is in use by another program`);
  another.close();
  await once(another, "close");
  await ingress.renew();
  expect(ingress.problem()).toBe(null);
  expect(serving()).toEqual([spec.Labels]);
});

it("an ingress of another configuration serves until the new one listens beside it, and has the time to end what it began", async () => {
  const { engine, state, serving, ingress } = machine();
  state.images[ingressImage] = "newest";
  const id = await engine.createContainer(older);
  await engine.startContainer(id);
  const stopped: unknown[] = [];
  engine.stopContainer = async (...given) => {
    stopped.push([...given, serving()]);
    return Promise.resolve();
  };
  await ingress.ensure();
  await vi.waitFor(() => expect(serving()).toEqual([spec.Labels]));
  expect(stopped).toEqual([[id, 12, [older.Labels, spec.Labels]]]);
  expect(state.containers.map(({ name }) => name)).toEqual([spec.name]);
});

it("an ingress of another configuration that has not begun to listen is replaced at once: its ports would be taken for the new one's", async () => {
  const { engine, state, serving } = machine();
  state.images[ingressImage] = "newest";
  const first = await engine.createContainer(older);
  await engine.startContainer(first);
  // Only the first one ever listens, once a second one has been started.
  const listeners = async (ports: readonly number[]) =>
    Promise.resolve(ports.map(() => (state.containers.length > 1 ? 1 : 0)));
  const ingress = openIngressContainer({ engine }, spec, settings, new AbortController().signal, listeners);
  const atStart: unknown[] = [];
  const startContainer = engine.startContainer.bind(engine);
  engine.startContainer = async (id) => {
    atStart.push(serving());
    return startContainer(id);
  };
  await ingress.ensure();
  expect([atStart, serving()]).toEqual([[[]], [spec.Labels]]);
});

it("an ingress of another configuration goes on under its name where the new one does not start", async () => {
  const { engine, state, serving, ingress } = machine();
  state.images[ingressImage] = "newest";
  const id = await engine.createContainer(older);
  await engine.startContainer(id);
  engine.startContainer = () => Promise.reject(new Error("no memory"));
  await ingress.ensure();
  expect(serving()).toEqual([older.Labels]);
  expect(state.containers.map(({ name }) => name)).toEqual([spec.name]);
  expect(ingress.problem()).toContain("the former one goes on");
});

it.each([
  ["before the new one was made", false],
  ["before the former one was removed", true],
])(
  "an agent that ends while the ingress is replaced, %s, leaves the rest to the next one",
  async (_, isMade) => {
    const { engine, state, serving, ingress } = machine();
    state.images[ingressImage] = "newest";
    await engine.startContainer(await engine.createContainer({ ...older, name: `${spec.name}-former` }));
    if (isMade) await engine.startContainer(await engine.createContainer(spec));
    await ingress.ensure();
    await vi.waitFor(() => expect(serving()).toEqual([spec.Labels]));
    expect(state.containers.map(({ name }) => name)).toEqual([spec.name]);
  },
);

it("the ports of HTTPS are looked at too, that of HTTP/3 by UDP", async () => {
  const tls = { port: await freePort() };
  const ports = { address: "127.0.0.1", port, tls };
  expect(await portsTaken(ports)).toBe(null);
  const another = dgram.createSocket("udp4").bind(tls.port, "127.0.0.1");
  await once(another, "listening");
  expect(await portsTaken(ports)).toContain(`UDP port ${tls.port} is in use`);
  const everywhere = { ...ports, address: "" };
  expect(await portsTaken(everywhere)).toContain(`UDP port ${tls.port} is in use`);
  const tcp = net.createServer().listen(tls.port, "127.0.0.1");
  await once(tcp, "listening");
  for (const settings of [ports, everywhere])
    expect(await portsTaken(settings)).toContain(`TCP port ${tls.port} and UDP port ${tls.port} are in use`);
  expect(await portsTaken({ ...ports, tls: null })).toBe(null);
  tcp.close();
  another.close();
});
