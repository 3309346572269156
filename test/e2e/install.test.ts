import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { api, local, request, until } from "./service.ts";
import { docker } from "./second-host.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let container = "";
beforeAll(() => {
  // The host's network, as tenants' rules keep other containers from the host; the image has npm's Node and no Docker.
  container = docker(
    "run",
    "--detach",
    "--rm",
    "--network",
    "host",
    "node:24-bookworm-slim",
    "sleep",
    "600",
  ).trim();
});
afterAll(() => {
  docker("rm", "--force", container);
});

const inside = (command: string): string => docker("exec", container, "sh", "-c", command).trim();

/** The script as it was served, handed to a shell as `curl … | sh` does. */
function install(script: string, args: string[], env: Record<string, string> = {}) {
  const variables = Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  return spawnSync(
    "docker",
    ["exec", "--interactive", ...variables, container, "sh", "-s", "--", "--no-service", ...args],
    { input: script, encoding: "utf8" },
  );
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

it("one command makes a machine a host: files, modes, hashes; a flipped byte is refused", async () => {
  const { body } = await api<{ token: string; installCommand: string }>("POST", "/hosts", {
    name: `installed-${Date.now().toString(36)}`,
  });
  expect(body.installCommand).toBe(`curl -fsSL ${local.siteUrl}/install | BERTH_TOKEN=${body.token} sh`);
  const { text: script, headers } = await request(`${local.siteUrl}/install`);
  expect(headers["content-type"]).toMatch(/^text\/x-shellscript/);
  const agent = (await request(`${local.siteUrl}/install/agent.mjs`)).text;
  expect(script).toContain(`AGENT_SHA256='${sha256(agent)}'`);

  const withoutToken = install(script, []);
  expect([withoutToken.status, withoutToken.stderr]).toEqual([1, expect.stringContaining("BERTH_TOKEN")]);
  const done = install(script, [], { BERTH_TOKEN: body.token });
  expect([done.status, done.stderr]).toEqual([0, ""]);
  expect(done.stdout).toContain("/usr/local/lib/berth/agent.mjs");
  expect(inside("sha256sum /usr/local/lib/berth/agent.mjs | cut -d ' ' -f 1")).toBe(sha256(agent));
  expect(
    inside("stat -c '%a %U' /etc/berth/agent.env /usr/local/lib/berth/responder.mjs /var/lib/berth"),
  ).toBe("600 root\n644 root\n700 root");
  const settings = `BERTH_URL=${local.siteUrl}\nBERTH_HOST_TOKEN=${body.token}\nBERTH_STATE_DIR=/var/lib/berth`;
  expect(inside("cat /etc/berth/agent.env")).toBe(settings);

  // Again, without the token: it is up to date, and the operator's own settings stay.
  inside("echo BERTH_SLOTS=4 >> /etc/berth/agent.env");
  expect(install(script, []).status).toBe(0);
  expect(inside("cat /etc/berth/agent.env")).toBe(`${settings}\nBERTH_SLOTS=4`);

  // Whoever serves other bytes than the script names is refused, and what runs stays.
  const folder = temporaryFolder();
  const flipped = Buffer.from(agent);
  flipped[1000] = (flipped[1000] ?? 0) ^ 1;
  writeFileSync(join(folder, "agent.mjs"), flipped);
  execFileSync("docker", ["cp", folder, `${container}:/mirror`]);
  const refused = install(script, [], { BERTH_BASE: "file:///mirror" });
  expect([refused.status, refused.stderr]).toEqual([
    1,
    expect.stringContaining("(SHA-256): nothing was replaced"),
  ]);
  expect(inside("sha256sum /usr/local/lib/berth/agent.mjs | cut -d ' ' -f 1; ls /usr/local/lib/berth")).toBe(
    `${sha256(agent)}\nagent.mjs\nresponder.mjs`,
  );

  // It starts, and says what it misses: here, an engine.
  const pid = inside(
    "touch /agent.log; set -a; . /etc/berth/agent.env; node /usr/local/lib/berth/agent.mjs >/agent.log 2>&1 & echo $!",
  );
  await until(
    () => inside("cat /agent.log"),
    (text) => text.includes("The Docker engine does not answer yet"),
  );
  inside(`kill ${pid}`);

  const gone = install(script, ["--uninstall", "--purge"]);
  expect([gone.status, gone.stderr]).toEqual([0, ""]);
  expect(inside("ls -d /etc/berth /usr/local/lib/berth /var/lib/berth 2>/dev/null || true")).toBe("");
});

/** All but the last line are definitions. */
async function definitions(): Promise<string> {
  const { text: script } = await request(`${local.siteUrl}/install`);
  return script.trim().split("\n").slice(0, -1).join("\n");
}

it("a machine without Node is given one, and none that is another than the script names", async () => {
  const folder = temporaryFolder();
  const tools = ["curl", "cut", "gzip", "rm", "sha512sum", "tar", "uname"];
  for (const tool of tools)
    symlinkSync(
      execFileSync("sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).trim(),
      join(folder, tool),
    );
  const ensure = async (before: string) =>
    spawnSync("/bin/sh", ["-s"], {
      input: `${await definitions()}\nLIB='${folder}'\n${before}\nensure_node\n"$NODE" --version\n`,
      encoding: "utf8",
      env: { ...process.env, NODE: "", PATH: folder },
    });
  const wrong = await ensure("NODE_X64_SHA512=0 NODE_ARM64_SHA512=0");
  expect([wrong.status, wrong.stderr]).toEqual([1, expect.stringContaining("(SHA-512)")]);
  expect(readdirSync(folder).toSorted()).toEqual(tools);
  const right = await ensure("");
  expect([right.status, right.stdout]).toEqual([0, expect.stringMatching(/\nv24\.\d+\.\d+\n$/)]);
  expect(readdirSync(folder).toSorted()).toEqual([...tools, "node"].toSorted());
});

it("systemd takes the units it writes without a word", async () => {
  const units = temporaryFolder();
  execFileSync("sh", ["-s"], {
    input: `${await definitions()}\nUNITS='${units}'\nNODE='${process.execPath}'\nwrite_units\n`,
  });
  const names = ["agent", "firewall", "responder"].map((name) => join(units, `berth-${name}.service`));
  const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...names], {
    encoding: "utf8",
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${units}:` },
  });
  expect([status, stdout, stderr]).toEqual([0, "", ""]);
});
