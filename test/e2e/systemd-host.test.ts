import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Site } from "../../protocol/api/sites.ts";
import { ensureBaseImages } from "../../scripts/lib/base-images.ts";
import { steadyLoad } from "./load.ts";
import { hostRecord } from "./second-host.ts";
import { api, gitHost, launch, local, remove, Repository, request, site, until } from "./service.ts";
import { startSystemdMachine, type SystemdMachine } from "./systemd-machine.ts";

let machine: SystemdMachine;
let host: { id: string; installCommand: string };
let made: Site;
/** Of the site, at the machine's own ingress. */
let url: string;
let container: string;

beforeAll(async () => {
  await ensureBaseImages();
  const controlPlanePort = Number(new URL(local.siteUrl).port);
  machine = await startSystemdMachine([controlPlanePort, Number(gitHost.split(":")[1])]);
  host = (await api<typeof host>("POST", "/hosts", { name: `systemd-${Date.now().toString(36)}` })).body;
}, 15 * 60_000);

afterAll(async () => {
  await machine.remove();
  await until(
    () => api("DELETE", `/hosts/${host.id}?force=1&loseVolumes=1`),
    ({ status }) => status === 200,
  );
  await remove(made.id);
});

/** Waits until the agent that runs has connected, and not at `earlier`. */
const connected = (earlier?: string | null) =>
  until(
    async () => {
      const started = await machine.run(
        "systemctl show --property ExecMainStartTimestamp --value --timestamp unix berth-agent",
      );
      return { record: await hostRecord(host.id), startedAtMs: Number(started.slice(1)) * 1000 };
    },
    ({ record, startedAtMs }) =>
      record?.connected === true &&
      record.connectedAt !== earlier &&
      Date.parse(record.connectedAt ?? "") > startedAtMs,
    60_000,
  );
const connectedAt = async () => (await hostRecord(host.id))?.connectedAt;
const untilItAnswers = () =>
  until(
    () => request(url).catch(String),
    (answer) => typeof answer !== "string" && answer.text === "version one",
    20_000,
  );
const containers = () => machine.run(`docker ps --quiet --no-trunc --filter label=berth.site=${made.id}`);

/** Asks the site 50 times a second while `work` is done. */
async function whileAsked(work: () => Promise<void>): Promise<void> {
  const load = steadyLoad(url, 50);
  const done = work().then(() => delay(1000));
  const { failures } = await done.catch(() => undefined).then(() => load.stop());
  await done;
  expect(failures).toEqual([]);
  expect(await containers()).toBe(container);
}

/** Answers its version, and what came of trying to reach its host from its first moment on. */
const curious = {
  "package.json": JSON.stringify({ name: "curious", scripts: { start: "node server.js" } }),
  "server.js": `
const { readFileSync } = require("node:fs");
const { connect } = require("node:net");
const route = readFileSync("/proc/net/route", "utf8").split("\\n").map((line) => line.split("\\t")).find((fields) => fields[1] === "00000000");
const host = route[2].match(/../g).map((byte) => parseInt(byte, 16)).reverse().join(".");
const met = {};
const count = (what) => (met[what] = (met[what] || 0) + 1);
const ask = (port) =>
  connect({ port, host })
    .on("connect", function () { count("reached"); this.destroy(); })
    .on("error", ({ code }) => count(code));
const timer = setInterval(() => ask(80), 20);
setTimeout(() => clearInterval(timer), 15000);
require("node:http")
  .createServer((q, s) => s.end(q.url === "/met" ? JSON.stringify(met) : "version one"))
  .listen(process.env.PORT);
`,
};
const refused = { EHOSTUNREACH: expect.any(Number) };
const met = async () => JSON.parse((await request(`${url}met`)).text) as unknown;

it("the printed command makes a bare Debian machine a host, on which a site runs", async () => {
  // What an operator's machine needs that is not every machine.
  const settings = [
    "BERTH_TLS_PORT=",
    `BERTH_INSECURE_GIT_HOSTS=${gitHost}`,
    "BERTH_IMAGE_PROVIDER=/usr/local/bin/get-image",
  ];
  await machine.run(`mkdir /etc/berth && printf '%s\\n' ${settings.join(" ")} > /etc/berth/agent.env`);
  // Debian 12's: nobody but this test builds here.
  expect(await machine.run(`${host.installCommand} -s -- --old-docker`)).toContain("Installed");
  await connected();

  made = await launch({
    githubUrl: new Repository(curious).address,
    // Without npm, which takes longer than an agent.
    startCommand: "node server.js",
    volumes: [{ name: "data", mountPath: "/data" }],
  });
  expect(made).toMatchObject({ status: "RUNNING", hostId: host.id });
  const own = new URL(made.url);
  own.port = String(machine.ingressPort);
  url = own.href;
  expect((await request(url)).text).toBe("version one");
  expect(await met()).toEqual(refused);
  container = await containers();
});

it("an agent that is killed is started again, and no request is lost", async () => {
  await whileAsked(async () => {
    const before = await connectedAt();
    await machine.run("systemctl kill --signal=KILL berth-agent");
    await connected(before);
  });
});

it("an agent of another version replaces itself and is started again, and no request is lost", async () => {
  const file = "/usr/local/lib/berth/agent.mjs";
  const served = await request(`${local.siteUrl}/install/agent.mjs`);
  const sha256 = createHash("sha256").update(served.text).digest("hex");
  await whileAsked(async () => {
    await machine.run(`echo '// An earlier version.' >> ${file} && systemctl restart berth-agent`);
    await until(
      () => machine.run(`sha256sum ${file}; systemctl show --property NRestarts berth-agent`),
      (now) => now.startsWith(sha256) && now.endsWith("NRestarts=1"),
    );
    await connected();
  });
});

it("a responder of another version is replaced by the agent and goes on in its process, and no request is lost", async () => {
  const file = "/usr/local/lib/berth/responder.mjs";
  const page = "There is no site here";
  // The bundler breaks lines wherever they are too long, also within a text.
  const otherwise = `sed -z -i 's/\\\\\\n//g; s/${page}/An earlier version/' ${file}`;
  await machine.run(`${otherwise} && systemctl restart berth-responder`);
  const unknown = () =>
    machine.run("curl -sS -H 'Host: nobody.localhost' http://127.0.0.1:5301/").catch(String);
  await until(unknown, (text) => text.includes("An earlier version"));
  await untilItAnswers();
  const pid = () => machine.run("systemctl show --property MainPID,NRestarts berth-responder");
  const before = await pid();
  await whileAsked(async () => {
    await machine.run("systemctl restart berth-agent");
    await until(unknown, (text) => text.includes(page));
    await connected();
  });
  expect(await pid()).toBe(before);
});

it("the command run again brings back what is missing, and no request is lost", async () => {
  await machine.run("dpkg --force-depends --remove git && systemctl disable berth-agent");
  await whileAsked(async () => {
    const before = await connectedAt();
    await machine.run(host.installCommand);
    await connected(before);
  });
  expect(await machine.run("git --version && systemctl is-enabled berth-agent")).toMatch(/^git .*\nenabled$/);
});

it("a damaged table of the ingress ends no site: it is restarted from what the control plane knows", async () => {
  const table = "/var/lib/berth/ingress/routes.json";
  await machine.run(`printf '{"version":1' > ${table} && systemctl restart berth-agent`);
  await until(
    () => machine.run(`cat ${table}`),
    (text) => text.includes('"lost":[]'),
    30_000,
  );
  await untilItAnswers();
  await until(containers, (ids) => ids !== container && !ids.includes("\n"), 60_000);
  // The restarted version is on probation until then.
  await until(
    () => machine.run(`cat ${table}`),
    (text) => !text.includes('"before"'),
    30_000,
  );
  container = await containers();
  expect((await site(made.id)).status).toBe("RUNNING");
  expect(await machine.run(`cat ${table}.damaged`)).toBe('{"version":1');
});

it("an engine that Berth cannot work with is refused with what to do, and when it is mended the same site answers", async () => {
  await machine.run(
    `echo '{"userns-remap":"default"}' > /etc/docker/daemon.json && systemctl restart docker`,
  );
  const refused = machine.run(`${host.installCommand} 2>&1 || { echo refused; exit 0; }`);
  expect(await refused).toMatch(/Remove "userns-remap" from .*\nberth: .*nothing was started.*\nrefused$/);
  await machine.run("systemctl restart berth-agent");
  await until(
    () => machine.run("journalctl --boot --unit berth-agent --since -1min --output cat"),
    (said) => said.includes("Docker remaps users on this host"),
  );
  await machine.run("rm /etc/docker/daemon.json && systemctl restart docker");
  await connected();
  await untilItAnswers();
  expect(await containers()).toBe(container);
});

it("a responder that ends again and again is started again and again", async () => {
  await machine.run(
    "for time in 1 2 3 4 5 6; do systemctl kill --signal=KILL berth-responder; sleep 1.2; done",
  );
  await untilItAnswers();
});

it.each([
  ["reboot", "reboot"],
  ["power failure", "failPower"],
] as const)(
  "after a %s the same container answers again, and never had a way to its host",
  async (_, happens) => {
    const before = await connectedAt();
    await machine[happens]();
    await connected(before);
    await untilItAnswers();
    expect(await containers()).toBe(container);
    expect((await site(made.id)).status).toBe("RUNNING");
    expect(await met()).toEqual(refused);
  },
);

it("--uninstall --purge leaves nothing of it on the machine", async () => {
  const left = () =>
    machine.run(
      [
        "docker ps --all --quiet",
        "docker volume ls --quiet",
        "docker network ls --quiet --filter type=custom",
        "docker images --quiet --filter label=berth.managed=true",
        "systemctl list-unit-files --no-legend 'berth-*'",
        "ls -d /etc/berth /usr/local/lib/berth /var/lib/berth",
        "for tool in iptables ip6tables; do $tool-save | grep BERTH; done",
        "true",
      ].join("; "),
    );
  const before = (await left()).split("\n");
  expect(before).toContainEqual(expect.stringMatching(/BERTH-[0-9a-f]{4}-FORWARD/));
  expect(await machine.run(`curl -fsSL ${local.siteUrl}/install | sh -s -- --uninstall --purge`)).toContain(
    "Berth was removed from this machine.",
  );
  expect(await left()).toBe("");
});
