import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { baseImages, databaseImages, debianOf, ensureImages, hasImage } from "./base-images.ts";
import { projectRoot } from "./project-root.ts";
import { run, step, succeeds } from "./command.ts";
import { dockerSocket } from "./docker-engine.ts";

/**
 * Runs a program on the engine of another Debian, in a container, with the program inside, because the agent needs the machine's own
 * network. Its exit code becomes this process's own. BERTH_DOCKERD holds further options of dockerd, BERTH_DOCKER_PROGRAMS a folder with
 * another engine's programs.
 * @param suite   a release of Debian, such as trixie
 * @param images  those of the machine's own engine that it is given, because building each inside would take minutes
 */
export async function runOnMachine(
  suite: string,
  images: readonly string[],
  program: string[],
): Promise<void> {
  if (!/^[a-z]+$/.test(suite)) throw new Error("Name a release of Debian first, such as trixie");
  const engineOptions = (process.env["BERTH_DOCKERD"] ?? "").split(" ").filter(Boolean);
  const programs = process.env["BERTH_DOCKER_PROGRAMS"];
  // Builds access package registries, as they do outside.
  const authorities = process.env["NODE_EXTRA_CA_CERTS"] ?? process.env["SSL_CERT_FILE"];

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
  // Everything that --privileged grants, except a capability that not every machine has.
  const rights = `--cgroupns private --cap-add ALL --cap-drop SYS_RESOURCE ${unconfined}`;
  const path = [
    ...(programs ? ["/outside/programs"] : []),
    join(projectRoot, "node_modules/.bin"),
    "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
  ].join(":");
  const id = (
    await run("docker", [
      ...`run --detach --label berth.test=true ${rights} --tmpfs /run:exec --tmpfs /tmp:exec`.split(" "),
      // Enabled on a machine, but not in a container.
      "--sysctl=net.ipv6.conf.all.disable_ipv6=0",
      "--device-cgroup-rule=a *:* rwm",
      `--volume=${projectRoot}:${projectRoot}`,
      // The state of its own `npm start`.
      `--volume=${projectRoot}/.berth`,
      `--volume=${dockerSocket()}:/outside/engine.socket`,
      ...(programs ? [`--volume=${programs}:/outside/programs:ro`] : []),
      ...(authorities
        ? [`--volume=${authorities}:/outside/ca.crt:ro`, "--env=NODE_EXTRA_CA_CERTS=/outside/ca.crt"]
        : []),
      `--env=PATH=${path}`,
      image,
      "boot",
      ...engineOptions,
    ])
  ).trim();
  try {
    const inside = (line: string) => run("docker", ["exec", id, "sh", "-c", line]);
    for (let attempt = 0; !(await succeeds("docker", ["exec", id, "docker", "version"])); attempt++) {
      if (attempt > 60) throw new Error(`Its engine does not start:\n${await run("docker", ["logs", id])}`);
      await delay(1000);
    }
    const present: string[] = [];
    for (const name of images) if (await hasImage(name)) present.push(name);
    await step("Handing over base images", () =>
      inside(`docker --host unix:///outside/engine.socket save ${present.join(" ")} | docker load`),
    );
    console.log(
      `Docker ${(await inside("docker version --format '{{.Server.Version}}'")).trim()} on Debian ${suite}`,
    );
    const ended = spawn("docker", ["exec", "--workdir", projectRoot, id, ...program], { stdio: "inherit" });
    const [code] = (await once(ended, "close")) as [number | null];
    process.exitCode = code ?? 1;
  } finally {
    await run("docker", ["rm", "--force", "--volumes", id], { toTheEnd: true });
  }
}
