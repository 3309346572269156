import { once } from "node:events";
import http from "node:http";
import { afterEach, expect, it, vi } from "vitest";
import { unfitGit } from "../../agent/image-build/git-version.ts";
import { checkMachine } from "../../agent/startup/engine-ready.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { ownPrograms } from "../support/own-programs.ts";

const programs = ownPrograms();
afterEach(() => void vi.restoreAllMocks());
const install = (version: string) => programs.add("git", `echo "git version ${version}"`);

it.each(["2.37.0", "2.39.5", "2.50.1 (Apple Git-155)", "3.0.0"])("Git %s does", async (version) => {
  install(version);
  expect(await unfitGit()).toBeNull();
});

it.each(["2.34.1", "2.36.6", "1.9.1"])(
  "Git %s does not keep to an address, which is said",
  async (version) => {
    install(version);
    expect(await unfitGit()).toMatch(`Git ${version} on this host is old`);
  },
);

it("a check of a machine tells of its Git and of an old engine, and fails by its engine, and by a port that another program has", async () => {
  const said = vi.spyOn(console, "error").mockReturnValue();
  const info = { DockerRootDir: "/", SecurityOptions: [], ServerVersion: "28.5.2" };
  const server = http.createServer(({ url = "" }, response) =>
    url.includes("/containers/") ? response.writeHead(404).end("{}") : response.end(JSON.stringify(info)),
  );
  const dockerSocket = programs.pathOf("engine.sock");
  await new Promise<void>((resolve) => server.listen(dockerSocket, resolve));
  const [port, responderPort, statusPort] = [await freePort(), 5300, 5301];
  const ingress = { address: "127.0.0.1", port, responderPort, statusPort, trustedProxies: [], tls: null };
  const check = () => checkMachine({ dockerSocket, agentId: "a", ingress });
  expect(await check()).toBe(0);
  install("2.34.1");
  expect(await check()).toBe(0);
  install("2.37.0");
  expect(await check()).toBe(0);
  info.ServerVersion = "20.10.24+dfsg1";
  expect(await check()).toBe(0);
  info.ServerVersion = "28.5.2";
  const another = http.createServer().listen(port, "127.0.0.1");
  await once(another, "listening");
  expect(await check()).toBe(1);
  another.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect(await check()).toBe(1);
  expect(said.mock.calls.map(([line]) => String(line))).toEqual([
    expect.stringMatching(/^Git does not run .*install it/),
    expect.stringMatching(/^Git 2\.34\.1 .*Install Git 2\.37 or newer/),
    expect.stringMatching(/^Docker 20\.10\.24\+dfsg1 .*Install Docker 25\.0\.2 or newer/),
    expect.stringMatching(`TCP port ${port} is in use by another program`),
    expect.stringMatching(/^Docker does not answer/),
  ]);
});
