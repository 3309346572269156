import { expect, it } from "vitest";
import { installDocker } from "../../scripts/lib/docker-engine.ts";
import { ownPrograms } from "../support/own-programs.ts";

const programs = ownPrograms();

/** A machine whose packages bring these programs. */
function machine(packages: Record<string, string[]>) {
  const installed: string[] = [];
  return {
    installed,
    install: async (names: string[]) => {
      installed.push(...names);
      for (const program of names.flatMap((name) => packages[name] ?? [])) programs.add(program);
    },
  };
}

it("where docker.io is the engine alone, its client is installed too, also if the engine is there already", async () => {
  const trixie = machine({ "docker.io": ["dockerd"], "docker-cli": ["docker"] });
  await installDocker(trixie.install);
  expect(trixie.installed).toEqual(["docker.io", "iptables", "docker-cli"]);
  programs.remove("docker");
  await installDocker(trixie.install);
  expect(trixie.installed.slice(3)).toEqual(["docker-cli"]);
});

it("where docker.io brings the client, nothing else is installed", async () => {
  const bookworm = machine({ "docker.io": ["dockerd", "docker"] });
  await installDocker(bookworm.install);
  await installDocker(bookworm.install);
  expect(bookworm.installed).toEqual(["docker.io", "iptables"]);
});
