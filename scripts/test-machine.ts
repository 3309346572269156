import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { baseImages, databaseImages, debianOf, ensureImages, hasImage } from "./lib/base-images.ts";
import { projectRoot } from "./lib/bundle.ts";
import { run, step, succeeds } from "./lib/command.ts";
import { dockerSocket } from "./lib/docker-engine.ts";

/**
 * The engine's tier on the engine of another Debian, in a container of this one, with the tests inside, as the agent needs the
 * machine's own network. Usage: npm run test:machine -- <trixie|sid> [arguments of vitest]
 */
const [suite = "", ...args] = process.argv.slice(2);
if (!/^[a-z]+$/.test(suite)) throw new Error("Name a release of Debian: npm run test:machine -- trixie");

const image = `engine-machine:${suite}`;
await ensureImages([debianOf(suite), ...baseImages, ...databaseImages]);
const folder = join(projectRoot, "test/support/engine-machine");
const build = `build --quiet --label berth.stand-in=true --tag ${image} --build-arg DEBIAN=${debianOf(suite)}`;
await step(`Building ${image}`, () =>
  run("docker", [...build.split(" "), folder], { env: { DOCKER_BUILDKIT: "0" } }),
);
const unconfined = ["seccomp", "apparmor", "systempaths"]
  .map((what) => `--security-opt ${what}=unconfined`)
  .join(" ");
// All that --privileged gives, but for a capability that not every machine has to give.
const rights = `--cgroupns private --cap-add ALL --cap-drop SYS_RESOURCE ${unconfined}`;
const id = (
  await run("docker", [
    ...`run --detach --label berth.test=true ${rights} --tmpfs /run:exec --tmpfs /tmp:exec`.split(" "),
    // As a machine has it, and a container has not.
    "--sysctl=net.ipv6.conf.all.disable_ipv6=0",
    "--device-cgroup-rule=a *:* rwm",
    `--volume=${projectRoot}:${projectRoot}`,
    `--volume=${dockerSocket()}:/outside/engine.socket`,
    image,
  ])
).trim();
try {
  const inside = (line: string) => run("docker", ["exec", id, "sh", "-c", line]);
  for (let attempt = 0; !(await succeeds("docker", ["exec", id, "docker", "version"])); attempt++) {
    if (attempt > 60) throw new Error(`Its engine does not start:\n${await run("docker", ["logs", id])}`);
    await delay(1000);
  }
  const given: string[] = [...baseImages, ...databaseImages];
  if (await hasImage(debianOf("bookworm"))) given.push(debianOf("bookworm"));
  await step("Handing over base images", () =>
    inside(`docker --host unix:///outside/engine.socket save ${given.join(" ")} | docker load`),
  );
  console.log(
    `Docker ${(await inside("docker version --format '{{.Server.Version}}'")).trim()} on Debian ${suite}`,
  );
  const path = `${join(projectRoot, "node_modules/.bin")}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`;
  const tests = spawn(
    "docker",
    [
      "exec",
      "--workdir",
      projectRoot,
      "--env",
      `PATH=${path}`,
      id,
      "vitest",
      "run",
      "--project",
      "engine",
      ...args,
    ],
    { stdio: "inherit" },
  );
  const [code] = (await once(tests, "close")) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  await run("docker", ["rm", "--force", "--volumes", id], { toTheEnd: true });
}
