import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

// What somebody without Berth does, with git and the Docker CLI.

/** Of a site that needs nothing but Node, with a layer of dependencies. */
export const siteDockerfile = `FROM node:24-bookworm-slim\nWORKDIR /app\nCOPY package.json .\nRUN node -e "console.log('dependencies')"\nCOPY server.js .\nUSER node\nCMD ["node", "server.js"]\n`;

const run = async (program: string, args: string[], variables: NodeJS.ProcessEnv = {}): Promise<string> => {
  const env = { ...process.env, ...variables };
  return (await promisify(execFile)(program, args, { env, maxBuffer: 1e8 })).stdout.trim();
};
export const docker = (...args: string[]): Promise<string> => run("docker", args);

/** BuildKit, by default since Docker 23, whose CLI needs a plug-in for it; that of Debian's 20.10 does not. */
const hasBuildx = await docker("buildx", "version").then(
  () => true,
  () => false,
);
const builder = hasBuildx ? "docker" : "/usr/bin/docker";

/** `git clone --depth 1 && docker build`. @returns the image's id */
export async function build(repositoryAddress: string, ...options: string[]): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "bench-hand-"));
  await run("git", ["clone", "--quiet", "--depth", "1", `http://${repositoryAddress}`, directory]);
  const image = await run(builder, ["build", "--quiet", ...options, directory], { DOCKER_BUILDKIT: "1" });
  rmSync(directory, { recursive: true });
  return image;
}

/** On Docker's default bridge. */
export const addressOf = (container: string): Promise<string> =>
  docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", container);
