import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { installCommand, installScript } from "../../worker/domain/install-script.ts";

const root = join(import.meta.dirname, "../..");

const template = readFileSync(join(root, "scripts/install.sh"), "utf8");
const programs = { agentVersion: "1.2.3", agentSha256: "a".repeat(64), responderSha256: "b".repeat(64) };

it("the script names this installation and the hashes of what it installs, and nothing is left open", () => {
  const script = installScript(template, "https://berth.example", programs);
  expect(script).toContain("SITE_URL='https://berth.example'");
  expect(script).toContain(`AGENT_SHA256='${"a".repeat(64)}'`);
  expect(script).toContain(`RESPONDER_SHA256='${"b".repeat(64)}'`);
  expect(script).not.toMatch(/@[A-Z0-9_]+@/);
});

it("does nothing before its last line, so that a download that was cut does nothing, and curl can write all of it", () => {
  const lines = template.trim().split("\n");
  expect(lines.pop()).toBe(
    'read_options "$@"; if [ "$uninstall" = yes ]; then uninstall_host; else install_host; fi',
  );
  const unindented = lines.filter(
    (line) => /^[a-z]/.test(line) && !/^(set -eu|[a-z_]+\(\)|[a-z_]+=)/.test(line),
  );
  expect(unindented).toEqual([]);
});

it("the command hands the token over in the environment", () => {
  expect(installCommand("https://berth.example", "hst_0abc")).toBe(
    "curl -fsSL https://berth.example/install | BERTH_TOKEN=hst_0abc sh",
  );
});

it("a host that has no Node of its own runs the one that everything was tested with", () => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    devDependencies: Record<string, string>;
  };
  expect(template).toContain(`\nNODE_VERSION=${devDependencies["node"]}\n`);
});

it("takes the releases of Node in which the agent has SQLite without a flag, and older ones never", () => {
  const takes = (version: string) => {
    const fake = `process = { versions: { node: "${version}" }, exit: process.exit }; `;
    const node = `${process.execPath} -e '${fake}'"$2"`;
    return runs("node_is_new_enough berth-node", { "berth-node": node }).status === 0;
  };
  const versions = ["20.19.0", "22.12.0", "22.13.0", "22.21.1", "23.0.0", "23.4.0", "24.0.0"];
  expect(versions.filter(takes)).toEqual(["22.13.0", "22.21.1", "23.4.0", "24.0.0"]);
});

const machines: string[] = [];
afterEach(() => {
  for (const folder of machines.splice(0)) rmSync(folder, { recursive: true });
});

/** Calls one of the script's functions on a machine that has these programs, and answers which of them were run. */
function runs(call: string, programs: Record<string, string>) {
  const bin = mkdtempSync(join(tmpdir(), "berth-machine-"));
  machines.push(bin);
  writeFileSync(join(bin, "calls"), "");
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(bin, name), `#!/bin/sh\nprintf '%s\\n' "${name} $*" >>"$BIN/calls"\n${text}\n`, {
      mode: 0o755,
    });
  const functions = template.trim().split("\n").slice(0, -1).join("\n");
  const has = 'has() { [ -e "$BIN/$1" ]; }';
  const { status, stdout, stderr } = spawnSync("sh", ["-c", `${functions}\n${has}\n${call}`], {
    env: { PATH: `${bin}:${process.env["PATH"]}`, BIN: bin },
    encoding: "utf8",
  });
  const called = readFileSync(join(bin, "calls"), "utf8").split("\n").filter(Boolean);
  return { status, said: stdout + stderr, called };
}

it("a purge removes every image of Berth's, also those that were pulled, which have no label of its own", () => {
  const { called, status } = runs(
    "purge=yes; UNITS=$BIN; LIB=$BIN/lib; ETC=$BIN/etc; STATE=$BIN/state; uninstall_host",
    {
      id: "echo 0",
      systemctl: "",
      iptables: "exit 1",
      ip6tables: "exit 1",
      docker: `case "$*" in
      images*label=berth.managed*) echo built ;;
      images*reference=berth-site/\\**) echo berth-site/a:1; echo berth-site/a:2 ;;
      images*) echo somebody-elses ;;
    esac`,
    },
  );
  expect(status).toBe(0);
  const removed = called.filter((one) => one.startsWith("docker rmi"));
  expect(removed.join(" ")).toMatch(/\bbuilt\b/);
  expect(removed.join(" ")).toContain("berth-site/a:1 berth-site/a:2");
  expect(removed.join(" ")).not.toContain("somebody");
});

it("a purge removes nothing while Docker does not answer, as its sites would start again without a firewall or a token", () => {
  const { called, said, status } = runs(
    `UNITS=$BIN; LIB=$BIN/lib; ETC=$BIN/etc; STATE=$BIN/state; mkdir "$ETC"; : >"$ETC/agent.env"
    purge=yes; (uninstall_host) || echo refused; ls "$ETC"`,
    { id: "echo 0", systemctl: "", docker: "exit 1", iptables: "" },
  );
  expect(status).toBe(0);
  expect(said).toMatch(/^refused\nagent\.env\n/);
  expect(said).toContain("Docker does not answer, so nothing was removed");
  expect(called.filter((one) => !/^(id|docker version)/.test(one))).toEqual([]);
});

it("a purge without --uninstall installs nothing", () => {
  const { status, stderr } = spawnSync("sh", ["-s", "--", "--purge"], { input: template, encoding: "utf8" });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: "berth: --purge goes with --uninstall: nothing was changed.\n",
  });
});

it("what is uninstalled without a purge keeps its token, so that the machine can become the same host again", () => {
  const uninstalled = (purge: string) =>
    runs(
      `UNITS=$BIN; LIB=$BIN/lib; ETC=$BIN/etc; STATE=$BIN/state; purge=${purge}; mkdir "$LIB" "$ETC"; : >"$ETC/agent.env"
      uninstall_host; ls "$BIN"`,
      { id: "echo 0", systemctl: "", docker: "", iptables: "exit 1", ip6tables: "exit 1" },
    ).said;
  expect(uninstalled("no")).toMatch(/etc\/agent\.env is kept: .*\n(.*\n)*etc\n/);
  expect(uninstalled("yes")).not.toMatch(/kept|^etc$/m);
});

/** Installs with this BERTH_TOKEN on a machine with this agent.env, and answers what it then has. */
const installed = (token: string, settings: string) =>
  runs(
    `service=no; SITE_URL=https://berth.example; LIB=$BIN/lib; ETC=$BIN/etc; STATE=$BIN/state; BERTH_TOKEN=${token}
    check_machine() { :; }; ensure_programs() { : >"$BIN/started"; }; ensure_node() { :; }; fetch_bundle() { :; }; run_by_hand() { :; }
    mkdir "$ETC"; ${settings && `printf '${settings}' >"$ETC/agent.env"`}
    (install_host) || echo refused; ls "$BIN"; cat "$ETC/agent.env"`,
    {},
  ).said;

it("a token that a machine has is never replaced by another: without it, what runs there would not be recognized", () => {
  const of = (token: string) => `BERTH_URL=https://old.example\nBERTH_HOST_TOKEN=${token}\nBERTH_SLOTS=4\n`;
  const refused = installed("hst_0new", of("hst_0old"));
  expect(refused).toMatch(/^refused$/m);
  expect(refused).toContain("this machine is a host already, with another token");
  expect(refused).not.toMatch(/^(started|lib|state)$/m);
  expect(refused).toContain(of("hst_0old"));
  expect(installed("hst_0new", of('"hst_0old"'))).toMatch(/^refused$/m);

  const kept = "BERTH_URL=https://berth.example\nBERTH_HOST_TOKEN=hst_0old\n";
  for (const token of ["", "hst_0old"]) expect(installed(token, of("hst_0old"))).toContain(kept);
  expect(installed("", of('"hst_0old"'))).toContain(kept);
  for (const settings of ["", "BERTH_SLOTS=4\n"])
    expect(installed("hst_0new", settings)).toContain("BERTH_HOST_TOKEN=hst_0new\n");
});

it("without a token nothing is installed", () => {
  const refused = installed("", "BERTH_SLOTS=4\n");
  expect(refused).toMatch(/^refused$/m);
  expect(refused).toContain("BERTH_TOKEN is missing");
  expect(refused).not.toMatch(/^(started|lib|state)$/m);
});

const becomes = (name: string) => `{ printf '#!/bin/sh\\n' >"$BIN/${name}"; chmod 755 "$BIN/${name}"; }`;
const installsOf = (called: string[]) => called.filter((one) => one.startsWith("apt-get install"));

const offers = (version: string) => ({
  "apt-cache": `printf 'docker.io:\\n  Installed: (none)\\n  Candidate: ${version}\\n'`,
});

it("a Docker of which builds get out is installed only if the operator says so", () => {
  const installedWith = (version: string, option = "no") =>
    runs(`old_docker=${option}; ensure_programs`, {
      ...offers(version),
      "apt-get": `case "$*" in *docker.io*) ${becomes("docker")} ;; esac`,
      git: "echo git version 2.39.5",
      iptables: "",
      systemctl: "",
    });
  for (const old of ["20.10.24+dfsg1-1+deb12u1+b2", "24.0.7-0ubuntu4", "25.0.1-1"]) {
    const { status, said, called } = installedWith(old);
    expect([status, installsOf(called)]).toEqual([1, []]);
    expect(said).toContain(`apt offers Docker ${old} here`);
    expect(said).toContain("sh -s -- --old-docker");
    expect(installedWith(old, "yes").status).toBe(0);
  }
  for (const fixed of ["25.0.2-1", "26.1.5+dfsg1-9+b11", "28.2.2-0ubuntu1~24.04.1"])
    expect(installedWith(fixed).status).toBe(0);
});

it("Docker's client is installed where docker.io does not bring it, and only there", () => {
  const others = {
    ...offers("26.1.5+dfsg1-9+b11"),
    git: "echo git version 2.39.5",
    iptables: "",
    systemctl: "",
  };
  const trixie = runs("ensure_programs", {
    ...others,
    "apt-get": `case "$*" in *docker-cli*) ${becomes("docker")} ;; esac`,
  });
  expect(trixie.said).not.toContain("berth:");
  expect(trixie.status).toBe(0);
  expect(installsOf(trixie.called)).toEqual([
    "apt-get install -y -qq docker.io",
    "apt-get install -y -qq docker-cli",
  ]);
  const bookworm = runs("ensure_programs", {
    ...others,
    "apt-get": `case "$*" in *docker.io*) ${becomes("docker")} ;; esac`,
  });
  expect(bookworm.status).toBe(0);
  expect(installsOf(bookworm.called)).toEqual(["apt-get install -y -qq docker.io"]);
});

it("whoever installs is told of a Git that ignores the address that was checked, and what to do", () => {
  const withGit = (version: string, service = "yes") =>
    runs(`service=${service}; ensure_programs`, {
      git: `echo "git version ${version}"`,
      docker: "",
      iptables: "",
    });
  for (const version of ["2.37.0", "2.39.5 (Apple Git-154)", "2.43.0", "3.0.1"])
    expect(withGit(version)).toMatchObject({ status: 0, said: "" });
  for (const version of ["2.34.1", "2.36.9", "1.9.0"])
    for (const service of ["yes", "no"]) {
      const { status, said } = withGit(version, service);
      expect(status).toBe(0);
      expect(said).toMatch(`Git ${version} is old`);
      expect(said).toContain("ppa:git-core/ppa");
    }
});

it.each([
  ["", "5300 5301", "443"],
  ["BERTH_TLS_PORT=\nBERTH_RESPONDER_PORT=6300\nBERTH_STATUS_PORT=6301\n", "6300 6301", ""],
  ["BERTH_TLS_PORT=8443\n", "5300 5301", "8443"],
])(
  "the commands that are printed instead of services heed agent.env as those do: %j",
  (settings, ports, tls) => {
    const { status, said, called } = runs(
      `ETC=$BIN; NODE=berth-node; printf '${settings}' >"$ETC/agent.env"
    run_by_hand | sed -n 's/^  //p' | while read -r line; do sh -euc "$line"; done`,
      { "berth-node": 'case "$*" in *agent.mjs) echo "HTTPS at $BERTH_TLS_PORT" ;; esac' },
    );
    expect([status, said]).toEqual([0, `HTTPS at ${tls}\n`]);
    expect(called[0]).toMatch(new RegExp(`/responder\\.mjs .*/routes\\.json ${ports}$`));
    expect(called).toHaveLength(3);
  },
);
