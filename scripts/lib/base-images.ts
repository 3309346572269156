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
import { projectRoot } from "./project-root.ts";
import { installPackages } from "./docker-engine.ts";
import { pipe, run, step, succeeds } from "./command.ts";

/** The Debian release of stand-ins, unless only another one has the version. */
const release = "bookworm";
/** The smallest image of a release. */
export const debianOf = (name: string): string => `debian:${name}-slim`;
/** The release that has this version of PostgreSQL. */
const postgresReleases = { 15: "bookworm", 17: "trixie", 18: "sid" } as const;
type PostgresVersion = keyof typeof postgresReleases;
/** Releases with MariaDB; none has 11.4, so its predecessor is used. */
const mariadbReleases = { "10.11": "bookworm", "11.4": "bookworm", "11.8": "trixie" } as const;
/** Releases with Redis; none has 7.2, so its predecessor is used; sid has whichever is current. */
const redisReleases = { "7.0": "bookworm", "7.2": "bookworm", "8": "trixie", sid: "sid" } as const;
/** The images that every host needs at once: the ingress's, and the base of most sites. */
export const baseImages = ["node:24-bookworm-slim", "caddy:2.11", "caddy:2"] as const;

/** Stand-ins under the official images' names, built if no registry is reachable. */
const standIns: Record<string, () => Promise<unknown>> = {
  [debianOf(release)]: () => buildDebian(release),
  [debianOf("trixie")]: () => buildDebian("trixie"),
  [debianOf("sid")]: () => buildDebian("sid"),
  "node:24-bookworm-slim": buildNode,
  "caddy:2.11": () => buildCaddy("caddy:2.11"),
  "caddy:2": () => buildCaddy("caddy:2"),
  "python:3.13-slim-bookworm": buildPython,
  "golang:1-bookworm": buildGo,
  "php:8-apache": buildPhp,
  "composer:2": buildComposer,
  "ruby:3-slim-bookworm": buildRuby,
  "rust:1-bookworm": buildRust,
  "elixir:slim": buildElixir,
  "denoland/deno:debian": buildDeno,
  "eclipse-temurin:21-jdk": () => buildJava("eclipse-temurin:21-jdk", ["openjdk-21-jdk-headless"]),
  "eclipse-temurin:21-jre": () => buildJava("eclipse-temurin:21-jre", ["openjdk-21-jre-headless"]),
  "maven:3-eclipse-temurin-21": buildMaven,
  "gradle:8-jdk21": () => buildJava("gradle:8-jdk21", ["openjdk-21-jdk-headless", "gradle"]),
  "postgres:15": () => buildPostgres(15),
  "postgres:17": () => buildPostgres(17),
  "postgres:18": () => buildPostgres(18),
  "mariadb:10.11": () => buildMariadb("10.11"),
  "mariadb:11.4": () => buildMariadb("11.4"),
  "mariadb:11.8": () => buildMariadb("11.8"),
  "redis:7.0": () => buildRedis("7.0"),
  "redis:7.2": () => buildRedis("7.2"),
  "redis:8": () => buildRedis("8"),
  "redis:sid": () => buildRedis("sid"),
  "valkey/valkey:8": buildValkey,
};

/** The images that sites may be based on if only this machine has them. */
export const standInImages = Object.keys(standIns);

/** The images of databases, as in worker/domain/database-engines.ts. */
export const databaseImages = ["postgres:17", "mariadb:11.4", "redis:7.2"] as const;

export const hasImage = (image: string): Promise<boolean> => succeeds("docker", ["image", "inspect", image]);

/** Fails at once if no registry is reachable. */
const pull = (image: string): Promise<boolean> =>
  step(`Pulling ${image}`, () => succeeds("docker", ["pull", "--quiet", image], 10 * 60_000));

export const ensureBaseImages = (): Promise<void> => ensureImages(baseImages);

/** Pulls the official images, or builds stand-ins of the same names from Debian's packages if none can be pulled. */
export async function ensureImages(names: readonly string[]): Promise<void> {
  const missing: string[] = [];
  for (const image of names)
    if (!(await hasImage(image)) && (missing.length > 0 || !(await pull(image)))) missing.push(image);
  if (missing.length === 0) return;
  console.log("No container registry is reachable: building base images from Debian's packages, once.");
  for (const image of missing) await buildStandIn(image);
}

/** Builds one stand-in, even if the image exists. */
export async function makeStandIn(image: string): Promise<void> {
  if (image in standIns)
    console.log(`Building a stand-in for ${image} from Debian's packages; this happens once.`);
  await buildStandIn(image);
}

async function buildStandIn(image: string): Promise<void> {
  const make = standIns[image];
  if (make === undefined) throw new Error(`${image} cannot be pulled, and there is no stand-in for it.`);
  await make();
}

async function ensureDebian(name: string): Promise<string> {
  if (!(await hasImage(debianOf(name)))) await buildDebian(name);
  return debianOf(name);
}

async function buildDebian(name: string): Promise<void> {
  const image = debianOf(name);
  if (!(await succeeds("debootstrap", ["--version"]))) await installPackages(["debootstrap"]);
  // Not /tmp, which newer Debians keep in memory and without device files.
  const folder = mkdtempSync("/var/tmp/berth-debian-");
  try {
    await step(`Building ${image} (debootstrap, about a minute)`, async () => {
      await run("debootstrap", ["--variant=minbase", "--include=ca-certificates", name, folder, ...mirror()]);
      for (const bulk of [
        "var/cache/apt",
        "var/lib/apt/lists",
        "usr/share/doc",
        "usr/share/man",
        "usr/share/locale",
      ])
        rmSync(join(folder, bulk), { recursive: true, force: true });
      // As the official image has it: nobody needs half an image after a power failure.
      writeFileSync(join(folder, "etc/dpkg/dpkg.cfg.d/docker-apt-speedup"), "force-unsafe-io\n");
      await pipe(
        ["tar", ["-C", folder, "-c", "."]],
        [
          "docker",
          ["import", "--change", "LABEL berth.stand-in=true", "--change", 'CMD ["bash"]', "-", image],
        ],
      );
    });
  } finally {
    // Still mounted if debootstrap was interrupted.
    await succeeds("umount", [join(folder, "proc")]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The mirror that this machine uses, or debootstrap's default. */
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
  // The classic builder: the Docker client has BuildKit only with a plug-in.
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

/** A stand-in that consists of Debian's packages and a few lines more. */
async function buildFromPackages(
  image: string,
  packages: string[],
  lines: string[],
  {
    entrypoint,
    from = release,
    backports = false,
  }: { entrypoint?: string; from?: string; backports?: boolean } = {},
): Promise<void> {
  const debian = await ensureDebian(from);
  await step(`Building ${image} (Debian's packages)`, () =>
    inFolder(async (folder) => {
      // The metadata of unstable is valid for a week; an outdated mirror is acceptable here.
      const update = "apt-get update -o Acquire::Check-Valid-Until=false";
      // Packages of Java's link to their manuals' folders, which a slim image has not.
      const folders = "mkdir -p /usr/share/man/man1";
      // The release's own entry names its mirror.
      const entry = `sed 's/ ${from} / ${from}-backports /' /etc/apt/sources.list >/etc/apt/sources.list.d/backports.list`;
      const target = backports ? `--target-release ${from}-backports ` : "";
      const steps = [
        folders,
        ...(backports ? [entry] : []),
        update,
        `apt-get install --yes --no-install-recommends ${target}${packages.join(" ")}`,
      ];
      const own = entrypoint === undefined ? [] : [`COPY ${entrypoint} /usr/local/bin/docker-entrypoint.sh`];
      if (entrypoint !== undefined)
        cpSync(join(projectRoot, "scripts", "stand-ins", entrypoint), join(folder, entrypoint));
      writeFileSync(
        join(folder, "Dockerfile"),
        [
          `FROM ${debian}`,
          `RUN ${steps.join(" && ")} && rm -rf /var/lib/apt/lists/*`,
          ...own,
          ...lines,
          "",
        ].join("\n"),
      );
      await build(folder, image);
    }),
  );
}

/** Of the release that has this version. */
function buildPython() {
  return buildFromPackages(
    "python:3.13-slim-bookworm",
    ["python3", "python3-venv", "python3-pip"],
    ["RUN ln -s python3 /usr/bin/python", 'CMD ["python3"]'],
    { from: "trixie" },
  );
}

function buildGo() {
  return buildFromPackages(
    "golang:1-bookworm",
    ["golang-go", "git"],
    ["ENV GOPATH=/go PATH=/go/bin:$PATH", "WORKDIR /go", 'CMD ["bash"]'],
  );
}

/** The official image compiles extensions with this command; Debian has them as packages or built in. */
const installExtensions = [
  "#!/bin/sh",
  "set -e",
  "apt-get update",
  'for name in "$@"; do',
  "case $name in",
  "pdo_mysql|mysqli) package=mysql ;;",
  "pdo_pgsql|pgsql) package=pgsql ;;",
  "calendar|exif|ffi|gettext|pcntl|shmop|sockets|sysv*) continue ;;",
  "*) package=$name ;;",
  "esac",
  "apt-get install --yes --no-install-recommends php8.4-$package",
  "done",
  "rm -rf /var/lib/apt/lists/*",
];

function buildPhp() {
  const modules = ["mbstring", "xml", "curl", "sqlite3"].map((name) => `php8.4-${name}`);
  const script = "/usr/local/bin/docker-php-ext-install";
  const configure = "/usr/local/bin/docker-php-ext-configure";
  return buildFromPackages(
    "php:8-apache",
    ["php8.4-cli", "apache2", "libapache2-mod-php8.4", ...modules],
    [
      `RUN printf '%s\\n' ${installExtensions.map((line) => `'${line}'`).join(" ")} > ${script} && chmod +x ${script}`,
      `RUN printf '%s\\n' '#!/bin/sh' 'apt-get update && apt-get install --yes --no-install-recommends php8.4-$2' > /usr/local/bin/pecl && chmod +x /usr/local/bin/pecl`,
      // Debian's PHP has everything enabled.
      `RUN ln -s /bin/true ${configure} && ln -s /bin/true /usr/local/bin/docker-php-ext-enable`,
      "WORKDIR /var/www/html",
      "STOPSIGNAL SIGWINCH",
      'CMD ["apache2ctl", "-D", "FOREGROUND"]',
    ],
    { from: "trixie" },
  );
}

function buildComposer() {
  const packages = ["composer", "git", "unzip", "php8.2-mbstring", "php8.2-curl"];
  return buildFromPackages("composer:2", packages, ["WORKDIR /app", 'CMD ["composer"]']);
}

function buildRuby() {
  return buildFromPackages(
    "ruby:3-slim-bookworm",
    ["ruby", "ruby-dev", "bundler"],
    ["ENV GEM_HOME=/usr/local/bundle PATH=/usr/local/bundle/bin:$PATH", 'CMD ["irb"]'],
  );
}

/** The newest that this release has: its browsers are built with it. */
function buildRust() {
  const libraries = ["gcc", "libc6-dev", "pkg-config", "git", "libssl-dev"];
  return buildFromPackages(
    "rust:1-bookworm",
    ["rustc-web", "cargo-web", ...libraries],
    ["ENV CARGO_HOME=/usr/local/cargo", 'CMD ["bash"]'],
  );
}

function buildElixir() {
  return buildFromPackages("elixir:slim", ["elixir"], ['CMD ["iex"]'], { from: "trixie" });
}

/** What npm has of it. */
async function buildDeno() {
  const debian = await ensureDebian(release);
  await step("Building denoland/deno:debian (npm's package)", () =>
    inFolder(async (folder) => {
      const package_ = `@deno/linux-${process.arch}-glibc`;
      const options = ["--no-audit", "--no-fund", "--ignore-scripts"];
      await run("npm", ["install", ...options, "--prefix", folder, `${package_}@2.9.6`]);
      cpSync(join(folder, "node_modules", package_, "deno"), join(folder, "deno"));
      const lines = [
        `FROM ${debian}`,
        "COPY deno /usr/bin/deno",
        "ENV DENO_DIR=/deno-dir",
        'CMD ["deno"]',
        "",
      ];
      writeFileSync(join(folder, "Dockerfile"), lines.join("\n"));
      await build(folder, "denoland/deno:debian");
    }),
  );
}

function buildJava(image: string, packages: string[], lines: string[] = []) {
  return buildFromPackages(image, packages, [...lines, 'CMD ["jshell"]'], { from: "trixie" });
}

/** Debian keeps Maven's plug-ins in a repository of its own, without checksums; what is not there comes from where it always does. */
const debianRepository =
  "<id>debian</id><url>file:///usr/share/maven-repo</url><releases><checksumPolicy>ignore</checksumPolicy></releases>";
const mavenSettings = [
  "<settings><profiles><profile><id>debian</id>",
  `<repositories><repository>${debianRepository}</repository></repositories>`,
  `<pluginRepositories><pluginRepository>${debianRepository}</pluginRepository></pluginRepositories>`,
  "</profile></profiles><activeProfiles><activeProfile>debian</activeProfile></activeProfiles></settings>",
];

function buildMaven() {
  const plugins = ["compiler", "resources", "jar"].map((name) => `libmaven-${name}-plugin-java`);
  const packages = ["openjdk-21-jdk-headless", "maven", ...plugins, "libsurefire-java"];
  return buildJava("maven:3-eclipse-temurin-21", packages, [
    `RUN echo '${mavenSettings.join("")}' > /etc/maven/settings.xml`,
  ]);
}

async function buildNode() {
  const debian = await ensureDebian(release);
  await step("Building node:24-bookworm-slim (the Node of this project, npm and corepack)", () =>
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
      const node = realpathSync(process.execPath);
      cpSync(node, join(local, "bin", "node"));
      cpSync(await headersOf(node), join(local, "include", "node"), { recursive: true });
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
}

/** Node's headers: beside the Node binary, or in the npm package that contains Node. */
async function headersOf(node: string): Promise<string> {
  const prefix = join(node, "..", "..");
  const own = join("node_modules", `node-${process.platform}-${process.arch}`);
  const find = () => ["", own].map((folder) => join(prefix, folder, "include", "node")).find(existsSync);
  // npm removes that package, which it does not know, at each further installation.
  if (find() === undefined) await run("npm", ["rebuild", "node"], { cwd: projectRoot });
  const found = find();
  if (found === undefined) throw new Error(`${node} has no headers beside it.`);
  return found;
}

/** One image under two names: the engine builds it once. */
function buildCaddy(image: string) {
  return buildFromPackages(
    image,
    ["caddy"],
    [
      "RUN mkdir -p /srv /config /data",
      "ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data",
      "WORKDIR /srv",
      'CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]',
    ],
    { from: "trixie", backports: true },
  );
}

/**
 * The parts of a database server's stand-in that match the official image; `scripts/stand-ins` documents the
 * contract.
 */
const asServer = (port: number, data: string, command: string) => [
  `RUN chmod 755 /usr/local/bin/docker-entrypoint.sh && mkdir -p /docker-entrypoint-initdb.d ${data}`,
  `VOLUME ${data}`,
  `EXPOSE ${port}`,
  'ENTRYPOINT ["docker-entrypoint.sh"]',
  `CMD ["${command}"]`,
];

function buildPostgres(version: PostgresVersion) {
  const bin = `/usr/lib/postgresql/${version}/bin`;
  const data = "/var/lib/postgresql/data";
  return buildFromPackages(
    `postgres:${version}`,
    [`postgresql-${version}`],
    [
      // Remove the cluster that the package creates.
      `RUN rm -rf /var/lib/postgresql/${version} /etc/postgresql`,
      `ENV PATH=${bin}:$PATH PGDATA=${data} LANG=C.UTF-8`,
      "STOPSIGNAL SIGINT",
      ...asServer(5432, data, "postgres"),
    ],
    { entrypoint: "postgres.sh", from: postgresReleases[version] },
  );
}

function buildMariadb(version: keyof typeof mariadbReleases) {
  const data = "/var/lib/mysql";
  return buildFromPackages(
    `mariadb:${version}`,
    ["mariadb-server"],
    [
      // Remove the database that the package creates.
      `RUN rm -rf ${data} && printf '[mariadbd]\\nbind-address=0.0.0.0\\n' > /etc/mysql/mariadb.conf.d/99-stand-in.cnf`,
      "ENV LANG=C.UTF-8",
      ...asServer(3306, data, "mariadbd"),
    ],
    { entrypoint: "mariadb.sh", from: mariadbReleases[version] },
  );
}

function buildRedis(version: keyof typeof redisReleases) {
  const data = "/data";
  return buildFromPackages(
    `redis:${version}`,
    ["redis-server"],
    [
      `RUN mkdir -p ${data} && chown redis:redis ${data}`,
      `WORKDIR ${data}`,
      ...asServer(6379, data, "redis-server"),
    ],
    { entrypoint: "redis.sh", from: redisReleases[version] },
  );
}

/** Like Redis's, with Valkey's names. */
function buildValkey() {
  const data = "/data";
  return buildFromPackages(
    "valkey/valkey:8",
    ["valkey-server"],
    [
      "RUN sed -i 's/redis/valkey/g' /usr/local/bin/docker-entrypoint.sh",
      `RUN mkdir -p ${data} && chown valkey:valkey ${data}`,
      `WORKDIR ${data}`,
      ...asServer(6379, data, "valkey-server"),
    ],
    { entrypoint: "redis.sh", from: "trixie" },
  );
}
