import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isPublicAddress, publicAddressOf } from "../../agent/image-build/address.ts";
import { detect } from "../../agent/image-build/detect/index.ts";
import type { Overrides } from "../../agent/image-build/detect/sources.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { buildStep } from "../../agent/image-build/dockerfile/instructions.ts";
import { parseInstructions } from "../../protocol/dockerfile.ts";
import { startLine } from "../../agent/docker/start-line.ts";
import { trustCa } from "../../agent/image-build/trust-ca.ts";
import { countServed, parseListeners, socketTables } from "../../agent/docker/listening.ts";
import { label } from "../../agent/docker/labels.ts";
import { commandContainer, drainSecondsOf, siteContainer, stopGraceOf } from "../../agent/docker/specs.ts";
import { JobError } from "../../agent/job.ts";
import type { RunSpec } from "../../protocol/agent/jobs.ts";
import { sourcesOf } from "../support/sources.ts";
import { exactValues } from "../support/exact-values.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const none = { buildCommand: null, startCommand: null };
const node = (files: string[], manifest: object, overrides: Overrides = none) =>
  detect(
    sourcesOf({
      ...Object.fromEntries(files.map((name) => [name, ""])),
      "package.json": JSON.stringify(manifest),
    }),
    overrides,
  );

it("a step of ours has secrets in their very bytes, newlines at their end too", () => {
  const values = exactValues;
  const folder = temporaryFolder();
  for (const [name, value] of Object.entries(values)) writeFileSync(join(folder, `env_${name}`), value);
  const print = `"${process.execPath}" -e "console.log(JSON.stringify(process.env))"`;
  const [step = ""] = buildStep(print, { plain: [], secret: Object.keys(values), cacheId: "x" });
  const [program = "", ...args] = JSON.parse(step.slice(step.indexOf("["))) as string[];
  const printed = execFileSync(
    program,
    args.map((arg) => arg.replaceAll("/run/secrets", folder)),
    { encoding: "utf8" },
  );
  expect(JSON.parse(printed)).toMatchObject(values);
});

describe("detection", () => {
  it("tells the package manager by its lock file, then by packageManager, then npm", () => {
    const manifest = { scripts: { start: "tsx ." }, packageManager: "yarn@4.0.0" };
    expect(node(["pnpm-lock.yaml"], manifest)).toMatchObject({
      packageManager: "pnpm",
      locked: true,
      startCommand: "pnpm start",
    });
    expect(node(["package-lock.json"], manifest)).toMatchObject({ packageManager: "npm" });
    expect(node([], manifest)).toMatchObject({
      packageManager: "berry",
      locked: false,
      startCommand: "yarn start",
    });
    expect(node(["app.js"], { main: "app.js" })).toMatchObject({
      packageManager: "npm",
      startCommand: "node app.js",
    });
  });

  it("lets the owner's commands win", () => {
    const overrides = { buildCommand: "make", startCommand: "./serve" };
    expect(node([], { scripts: { start: "a", build: "b" } }, overrides)).toMatchObject({
      buildCommand: "make",
      startCommand: "./serve",
    });
  });

  it("takes a folder with an index.html as a static site", () => {
    expect(detect(sourcesOf({ "index.html": "" }), none)).toEqual({
      kind: "static",
    });
  });

  it("says what to do when nothing can be told", () => {
    expect(() => detect(sourcesOf({ "a.txt": "" }), none)).toThrow(/Dockerfile.*package\.json.*index\.html/);
    expect(() => detect(sourcesOf({ "package.json": "{oops" }), none)).toThrow(
      "package.json is not valid JSON",
    );
    expect(() => node([], {})).toThrow(/start/);
  });
});

describe("a generated Dockerfile", () => {
  const variables = { plain: ["API_URL"], secret: ["TOKEN"], cacheId: "site_x-packages" };
  const text = generateDockerfile(
    node(["package-lock.json"], {
      scripts: { start: "node .", build: "tsc" },
      dependencies: { a: "1" },
      devDependencies: { b: "1" },
    }),
    variables,
  );

  it("installs before it copies the source, so that a changed line keeps the install cached", () => {
    expect(text.indexOf("npm ci")).toBeLessThan(text.indexOf("COPY source/ ./"));
    expect(text.indexOf("ARG API_URL")).toBeGreaterThan(text.indexOf("COPY source/package.json"));
  });

  it("ends in a stage that is not run as root and holds no build secret", () => {
    const last = text.slice(text.lastIndexOf("FROM "));
    expect(last).toContain("USER node");
    expect(last).not.toContain("TOKEN");
    expect(text).toContain("--mount=type=secret,id=env_TOKEN");
    expect(text).not.toMatch(/ARG TOKEN|ENV TOKEN/);
  });

  it("carries any command as the data of one instruction", () => {
    const command = `echo "a 'b' $HOME \\ && # x" ; cat /etc/hosts`;
    const plan = node([], {}, { buildCommand: command, startCommand: command });
    const { instructions } = parseInstructions(
      generateDockerfile(plan, { plain: [], secret: [], cacheId: "c" }),
    );
    const run = instructions.find(({ keyword, text }) => keyword === "RUN" && text.includes("echo"));
    expect(JSON.parse(run?.text.replace(/^RUN /, "") ?? "")).toEqual(["sh", "-c", command]);
    const last = instructions.at(-1);
    expect(JSON.parse(last?.text.replace(/^CMD /, "") ?? "")).toEqual(["sh", "-c", command]);
  });

  it("lets a simple start command take the shell's place, and runs all of a compound one", () => {
    expect(startLine("node server.js --port $PORT")).toBe("exec node server.js --port $PORT");
    expect(startLine("MODE=prod A=b serve")).toBe("exec env MODE=prod A=b serve");
    expect(startLine("migrate && serve --all")).toBe("migrate && exec serve --all");
    expect(startLine("cd app; A=b serve")).toBe("cd app; exec env A=b serve");
    for (const command of [
      "a | b",
      "a || b",
      "a && b &",
      "a && (b)",
      'node -e "a && b"',
      "echo 'a; b",
      "for a in 1 2; do b; done",
      "if a; then b; fi",
      "{ a; b; }",
      "a; exec b",
      "A=b exec c",
      "a && cd b",
      "a;",
      "a; # b",
    ])
      expect(startLine(command)).toBe(command);
  });

  it("uses nothing that an engine of 2020 does not know", () => {
    expect(text).not.toMatch(/# ?syntax|<</);
  });
});

describe("trust in the operator's certificates", () => {
  it("reaches every RUN of any Dockerfile, and leaves the rest as it was", () => {
    const dockerfile = [
      "# escape=\\",
      "ARG BASE=node",
      "FROM $BASE AS build",
      "# a comment",
      "run npm ci && \\",
      "  # inside",
      "  npm test",
      "ONBUILD RUN true",
      'RUN ["sh","-c","true"]',
      "FROM scratch",
      "COPY --from=build /app /app",
    ].join("\n");
    const trusted = trustCa(dockerfile);
    expect(trusted.match(/--mount=type=secret,id=berth_ca/g)).toHaveLength(2);
    expect(trusted).toContain("run --mount=type=secret,id=berth_ca npm ci && \\\n  npm test");
    expect(trusted).toContain("ONBUILD RUN true");
    expect(trusted.match(/ARG NODE_EXTRA_CA_CERTS=/g)).toHaveLength(2);
    expect(trusted.indexOf("ARG BASE")).toBeLessThan(trusted.indexOf("ARG NODE_EXTRA_CA_CERTS"));
    expect(trusted.startsWith("# escape=\\")).toBe(true);
  });

  it("leaves here-documents as they are", () => {
    const script = [
      "#!/bin/sh",
      "",
      "# no comment of the Dockerfile's",
      "run it",
      "from os import path \\",
      "}",
    ];
    const page = ["<<EOF", "\tEOF2"];
    const dockerfile = [
      "FROM a",
      'RUN <<"EOF" cat > /x && sh',
      ...script,
      "EOF",
      "COPY <<-END --chmod=1 <<EOF2 /pages/",
      ...page,
      "\tEND",
      ...page,
      "EOF2",
      "RUN echo $((1<<2)) <<< word",
      "USER app",
    ].join("\n");
    const trusted = trustCa(dockerfile);
    expect(trusted).toContain([...script, "EOF"].join("\n"));
    expect(trusted).toContain([...page, "\tEND", ...page, "EOF2"].join("\n"));
    expect(trusted).toContain("--mount=type=secret,id=berth_ca echo $((1<<2)) <<< word\nUSER app");
    expect(trusted.match(/--mount=/g)).toHaveLength(2);
    expect(trusted.match(/ARG NODE_EXTRA_CA_CERTS=/g)).toHaveLength(1);
  });
});

describe("the address of a Git host", () => {
  it.each([
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "168.63.129.16",
    "100.64.0.1",
    "0.0.0.0",
    "::1",
    "::ffff:127.0.0.1",
    "fe80::1",
    "fd00::1",
    "fec0::1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "2002:a00:1::1",
    "224.0.0.1",
    "255.255.255.255",
  ])("may not be %s", async (address) => {
    expect(isPublicAddress(address)).toBe(false);
    await expect(publicAddressOf(address)).rejects.toThrow(JobError);
  });
  it.each(["140.82.112.3", "2606:50c0:8000::153"])("may be %s", (address) =>
    expect(isPublicAddress(address)).toBe(true),
  );
});

describe("a site's container", () => {
  const run = {
    siteId: "site_1",
    accountId: "acc_1",
    hostnames: ["a"],
    port: 3000,
    startCommand: null,
    healthCheckPath: null,
    startTimeoutSeconds: 1,
    env: [
      { key: "A", value: "1", scope: "both", secret: false },
      { key: "B", value: "2", scope: "build", secret: true },
    ],
    limits: { memoryMb: 256, cpuMilli: 500, pids: 64 },
    replicas: 1,
    volumes: [],
  } as unknown as Parameters<typeof siteContainer>[1];
  const spec = siteContainer("agent", run, "dep_1", "image", "");

  it("has no way to the host and no more rights than it needs", () => {
    expect(spec.HostConfig).toMatchObject({
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      PidsLimit: 64,
      CpuShares: 512,
      MemorySwap: 256 * 1024 * 1024,
      IpcMode: "private",
      CgroupnsMode: "private",
      OomScoreAdj: 500,
      Memory: 256 * 1024 * 1024,
    });
    for (const forbidden of [
      "Binds",
      "Mounts",
      "Privileged",
      "PortBindings",
      "Devices",
      "PidMode",
      "UTSMode",
      "UsernsMode",
      "Sysctls",
    ])
      expect(spec.HostConfig).not.toHaveProperty(forbidden);
    expect(spec.HostConfig?.CapAdd).not.toContain("SYS_ADMIN");
    expect(spec.HostConfig?.NetworkMode).toBe("berth-acc_1");
  });

  it("is started again, drains and stops as its lifecycle says, and otherwise as the host does", () => {
    expect(spec.HostConfig?.RestartPolicy).toEqual({ Name: "unless-stopped" });
    expect([drainSecondsOf(spec.Labels), stopGraceOf(spec.Labels)]).toEqual([null, 10]);
    const lifecycle = { restartPolicy: "never" as const, drainSeconds: 90, stopTimeoutSeconds: 45 };
    const own = siteContainer("agent", { ...run, lifecycle }, "dep_1", "image", "");
    expect(own.HostConfig?.RestartPolicy).toEqual({ Name: "no" });
    expect([drainSecondsOf(own.Labels), stopGraceOf(own.Labels)]).toEqual([90, 45]);
  });

  it("has no check of its image's run by the engine, which would be beyond its pack", () => {
    const args = { run, deploymentId: "dep_1", commandId: "cmd_1", command: "true", timeoutSeconds: 1 };
    const command = commandContainer("agent", args as never, { jobId: "job_1", attempt: 1 }, "image");
    for (const one of [spec, command]) expect(one.Healthcheck).toEqual({ Test: ["NONE"] });
  });

  it("gets its runtime variables, what it may want to know of itself and its port, and no build variable", () => {
    expect(spec.Env).toEqual(["BERTH_SITE_ID=site_1", "BERTH_DEPLOYMENT_ID=dep_1", "A=1", "PORT=3000"]);
  });

  it("is told its address and its commit where there are such, unless its owner says otherwise, and always the settings' port", () => {
    const own = {
      key: "BERTH_SITE_URL",
      value: "https://a.example",
      scope: "runtime",
      secret: false,
    } as const;
    const of = { ...run, siteUrl: "https://a.sites.example", commit: "c".repeat(40) };
    const envOf = (env: RunSpec["env"]) => siteContainer("agent", { ...of, env }, "dep_1", "image", "").Env;
    expect(envOf([])).toContain("BERTH_SITE_URL=https://a.sites.example");
    expect(envOf([])).toContain(`BERTH_COMMIT=${of.commit}`);
    expect(envOf([own])?.filter((entry) => entry.startsWith("BERTH_SITE_URL="))).toEqual([
      "BERTH_SITE_URL=https://a.example",
    ]);
    const ports = envOf([{ ...own, key: "PORT", value: "8080" }])?.filter((entry) =>
      entry.startsWith("PORT="),
    );
    expect(ports).toEqual(["PORT=3000"]);
  });

  it("shows none of its image's own labels that the agent goes by, nor does a command's", () => {
    const folder = join(import.meta.dirname, "../../agent");
    const isSpelled = (name: string) =>
      /["'`]berth\.[a-z-]+["'`]/.test(readFileSync(join(folder, name), "utf8"));
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(files.filter((name) => name.endsWith(".ts") && isSpelled(name))).toEqual(["docker/labels.ts"]);
    const all = Object.values(label);
    const args = { run, deploymentId: "dep_1", commandId: "cmd_1", command: "true", timeoutSeconds: 1 };
    const command = commandContainer("agent", args as never, { jobId: "job_1", attempt: 1 }, "image");
    for (const { Labels } of [spec, command])
      expect(Object.keys(Labels)).toEqual(expect.arrayContaining(all));
    for (const name of ["berth.copy", "berth.command", "berth.commands-of", "berth.database", "berth.job"])
      expect(spec.Labels[name]).toBe("");
    expect(command.Labels["berth.site"]).toBe("");
    expect(command.Labels["berth.copy"]).toBe("");
  });

  it("of the same settings is the same, of others another", () => {
    expect(siteContainer("agent", run, "dep_1", "image", "").Labels).toEqual(spec.Labels);
    expect(
      siteContainer("agent", { ...run, port: 4000 }, "dep_1", "image", "").Labels["berth.config"],
    ).not.toBe(spec.Labels["berth.config"]);
  });
});

it("listening ports are read from the kernel's table, loopback told from open, without Docker's own resolver", () => {
  const tcp =
    "  sl  local_address rem_address   st\n   0: 0100007F:0BB8 00000000:0000 0A\n   1: 00000000:1F90 00000000:0000 0A\n   2: 0100007F:1234 0100007F:9999 01\n   3: 0B00007F:8F3A 00000000:0000 0A\n";
  const tcp6 = "  sl  local_address\n   0: 00000000000000000000000001000000:0050 0:0 0A\n";
  expect(parseListeners(tcp, tcp6)).toEqual([
    { port: 3000, loopbackOnly: true },
    { port: 8080, loopbackOnly: false },
    { port: 80, loopbackOnly: true },
  ]);
});

it("of a container's sockets no more are read than tell enough, however many it holds open", async () => {
  const proc = temporaryFolder();
  mkdirSync(join(proc, "1", "net"), { recursive: true });
  const listening = "  sl\n   0: 00000000:0BB8 00000000:0000 0A\n";
  const open = "   1: 0100007F:0BB8 0100007F:9999 01\n".repeat(300_000);
  writeFileSync(join(proc, "1", "net", "tcp"), listening + open);
  const tables = await socketTables(1, proc);
  expect(tables.map((table) => table.length)).toEqual([1024 * 1024, 0]);
  expect(parseListeners(...tables)).toEqual([{ port: 3000, loopbackOnly: false }]);
  expect(countServed(...tables)).toBeGreaterThan(1000);
});
