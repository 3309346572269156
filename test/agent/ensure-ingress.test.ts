import { expect, it, vi } from "vitest";
import { ingressContainer, ingressImage } from "../../agent/ingress/container.ts";
import { openIngressContainer } from "../../agent/startup/ensure-ingress.ts";
import { MemoryEngine } from "../support/memory-engine.ts";

const settings = { address: "127.0.0.1", port: 80, responderPort: 5300, statusPort: 5301, tls: null };
const { spec } = ingressContainer("a", settings);
const older = ingressContainer("a", { ...settings, statusPort: 5302 }).spec;

/** A machine on which the image of the ingress arrives when the test says so. */
function machine() {
  const { engine, state } = new MemoryEngine();
  state.networks.push("host");
  let arrive = () => undefined as void;
  const arrival = new Promise<void>((resolve) => (arrive = resolve));
  const pullImage = async () => {
    await arrival;
    state.images[ingressImage] = "newest";
  };
  const serving = () => state.containers.filter(({ running }) => running).map(({ labels }) => labels);
  return {
    engine,
    state,
    serving,
    arrive,
    ingress: openIngressContainer({ engine: { ...engine, pullImage } }, spec, new AbortController().signal),
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
  expect(serving()).toEqual([]);
  arrive();
  await vi.waitFor(() => expect(serving()).toEqual([spec.Labels]));
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
