import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "./docker-engine.ts";
import { pipe, run, step, succeeds } from "./command.ts";

const debian = "debian:bookworm-slim";
/** The images that generated Dockerfiles and the ingress are made of. */
export const baseImages = ["node:24-bookworm-slim", "caddy:2"] as const;

const present = (image: string): Promise<boolean> => succeeds("docker", ["image", "inspect", image]);

/** Fails at once where no registry is in reach. */
const pull = (image: string): Promise<boolean> =>
  step(`Pulling ${image}`, () => succeeds("docker", ["pull", "--quiet", image], 10 * 60_000));

/** Pulls the official images, or builds stand-ins of the same names from Debian's packages where none can be pulled. */
export async function ensureBaseImages(): Promise<void> {
  const missing: string[] = [];
  for (const image of baseImages)
    if (!(await present(image)) && (missing.length > 0 || !(await pull(image)))) missing.push(image);
  if (missing.length === 0) return;
  console.log("No container registry is in reach: building base images from Debian's packages, once.");
  if (!(await present(debian))) await buildDebian();
  if (missing.includes("node:24-bookworm-slim")) await buildNode();
  if (missing.includes("caddy:2")) await buildCaddy();
}

async function buildDebian(): Promise<void> {
  if (!(await succeeds("debootstrap", ["--version"]))) await installPackages(["debootstrap"]);
  const folder = mkdtempSync(join(tmpdir(), "berth-debian-"));
  try {
    await step(`Building ${debian} (debootstrap, about a minute)`, async () => {
      await run("debootstrap", [
        "--variant=minbase",
        "--include=ca-certificates",
        "bookworm",
        folder,
        ...mirror(),
      ]);
      for (const bulk of [
        "var/cache/apt",
        "var/lib/apt/lists",
        "usr/share/doc",
        "usr/share/man",
        "usr/share/locale",
      ])
        rmSync(join(folder, bulk), { recursive: true, force: true });
      await pipe(
        ["tar", ["-C", folder, "-c", "."]],
        [
          "docker",
          ["import", "--change", "LABEL berth.stand-in=true", "--change", 'CMD ["bash"]', "-", debian],
        ],
      );
    });
  } finally {
    // Left mounted when debootstrap was ended half-way.
    await succeeds("umount", [join(folder, "proc")]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The mirror this machine itself uses, or debootstrap's own choice. */
function mirror(): string[] {
  for (const file of ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"]) {
    const found =
      existsSync(file) &&
      /^(?:deb|URIs:)\s+(?:\[[^\]]*\]\s+)?(https?:\/\/\S+\/debian)\/?(?:\s|$)/m.exec(
        readFileSync(file, "utf8"),
      );
    if (found && found[1]) return [found[1]];
  }
  return [];
}

const build = (folder: string, tag: string) =>
  // The classic builder: the Docker client has no BuildKit of its own without a plug-in.
  run("docker", ["build", "--quiet", "--label", "berth.stand-in=true", "--tag", tag, folder], {
    env: { DOCKER_BUILDKIT: "0" },
  });

async function inFolder(work: (folder: string) => Promise<unknown>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "berth-image-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const buildNode = () =>
  step("Building node:24-bookworm-slim (the Node of this project, npm and corepack)", () =>
    inFolder(async (folder) => {
      const local = join(folder, "local");
      mkdirSync(join(local, "bin"), { recursive: true });
      await run("npm", [
        "install",
        "--global",
        "--no-audit",
        "--no-fund",
        "--prefix",
        local,
        "npm@11.19.1",
        "corepack@0.36.0",
      ]);
      cpSync(realpathSync(process.execPath), join(local, "bin", "node"));
      writeFileSync(
        join(folder, "Dockerfile"),
        [
          `FROM ${debian}`,
          "RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --shell /bin/bash --create-home node",
          "COPY local/ /usr/local/",
          'CMD ["node"]',
          "",
        ].join("\n"),
      );
      await build(folder, "node:24-bookworm-slim");
    }),
  );

const buildCaddy = () =>
  step("Building caddy:2 (Debian's package)", () =>
    inFolder(async (folder) => {
      writeFileSync(
        join(folder, "Dockerfile"),
        [
          `FROM ${debian}`,
          "RUN apt-get update && apt-get install --yes --no-install-recommends caddy && rm -rf /var/lib/apt/lists/* && mkdir -p /srv /config /data",
          "ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data",
          "WORKDIR /srv",
          'CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]',
          "",
        ].join("\n"),
      );
      await build(folder, "caddy:2");
    }),
  );
