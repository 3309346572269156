import { expect, it } from "vitest";
import { app } from "../../worker/app.ts";
import { api, bindings, call, operator, uniqueName } from "./service.ts";

const files: Record<string, string> = {
  "/install/install.sh": "SITE_URL='@SITE_URL@' AGENT='@AGENT_SHA256@' RESPONDER='@RESPONDER_SHA256@'\n",
  "/install/manifest.json": JSON.stringify({
    agentVersion: "1.0.0",
    agentSha256: "a".repeat(64),
    responderSha256: "b".repeat(64),
  }),
  "/install/cli.sh": "curl '@SITE_URL@/install/berth.mjs' # @CLI_SHA256@\n",
  "/install/berth.1": ".TH BERTH 1\n",
  "/install/cli.json": JSON.stringify({ version: "1.0.0", sha256: "c".repeat(64) }),
};
const ASSETS = {
  fetch: async (request: Request) => {
    const text = files[new URL(request.url).pathname];
    return new Response(text ?? null, { status: text === undefined ? 404 : 200 });
  },
} as unknown as Fetcher;

it("GET /install answers the script of this installation to anybody", async () => {
  const response = await app.request("http://127.0.0.1:8787/install", {}, { ...bindings, ASSETS });
  expect(response.headers.get("Content-Type")).toMatch(/^text\/x-shellscript/);
  expect(await response.text()).toBe(
    `SITE_URL='http://127.0.0.1:8787' AGENT='${"a".repeat(64)}' RESPONDER='${"b".repeat(64)}'\n`,
  );
});

it("GET /install/cli answers the script that installs the command line program of this installation", async () => {
  const answer = (path: string) => app.request(`http://127.0.0.1:8787${path}`, {}, { ...bindings, ASSETS });
  expect(await (await answer("/install/cli")).text()).toBe(
    `curl 'http://127.0.0.1:8787/install/berth.mjs' # ${"c".repeat(64)}\n`,
  );
  const manifest = await answer("/install/cli.json");
  expect([manifest.headers.get("Content-Type"), await manifest.json()]).toEqual([
    "application/json",
    { version: "1.0.0", sha256: "c".repeat(64) },
  ]);
  expect(await (await answer("/install/berth.1")).text()).toBe(".TH BERTH 1\n");
  expect((await answer("/install/cli.sh")).status).toBe(404);
  expect((await call("/install/cli")).status).toBe(404);
});

it("GET /install is not found where the Worker was deployed without the agent", async () => {
  expect((await call("/install")).status).toBe(404);
});

it("a new host's answer is all that is needed: one command with its token", async () => {
  const { status, body } = await api<{ token: string; installCommand: string }>(
    await operator(),
    "POST",
    "/hosts",
    { name: uniqueName("joins") },
  );
  expect(status).toBe(201);
  expect(body.installCommand).toBe(`curl -fsSL http://127.0.0.1:8787/install | BERTH_TOKEN=${body.token} sh`);
});
