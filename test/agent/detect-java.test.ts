import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import { detect } from "../../agent/image-build/detect/index.ts";
import { repositoryOf } from "../../agent/image-build/detect/repository.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { readSources } from "../../agent/image-build/read-sources.ts";
import { sourcesOf } from "../support/sources.ts";
import { dockerfileWith, none, plan, type Files } from "../support/detected.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const variables = { plain: ["API_URL"], secret: ["TOKEN"], cacheId: "site_x-packages", memoryMb: 2048 };
const dockerfile = dockerfileWith(variables);

const spring =
  "<project><parent><artifactId>spring-boot-starter-parent</artifactId></parent><properties><java.version>17</java.version></properties></project>";
const ktor = 'plugins {\n  kotlin("jvm") version "2.1.0"\n  id("io.ktor.plugin") version "3.0.0"\n}\n';
const mavenWrapper = { mvnw: "", ".mvn/wrapper/maven-wrapper.properties": "" };
const gradleWrapper = (release: string): Files => ({
  gradlew: "",
  "gradle/wrapper/gradle-wrapper.jar": "",
  "gradle/wrapper/gradle-wrapper.properties": `distributionUrl=https\\://services.gradle.org/distributions/gradle-${release}-bin.zip`,
});

describe("a Java app", () => {
  it("of Spring Boot is built by the Maven that it brings, and its jar alone is in the image", () =>
    expect(dockerfile({ "pom.xml": spring, ...mavenWrapper })).toMatchSnapshot());

  it("of Ktor is built by Gradle, and started by what the application plugin installs", () =>
    expect(dockerfile({ "build.gradle.kts": ktor, "settings.gradle.kts": "" })).toMatchSnapshot());

  it("of Ktor whose plugins a catalog names is told by the block in which the application plugin is set up", () => {
    const text =
      'plugins {\n  alias(ktorLibs.plugins.ktor)\n}\n\napplication {\n  mainClass = "io.ktor.server.netty.EngineMain"\n}\n';
    expect(plan({ "build.gradle.kts": text })).toMatchObject({ output: "distribution" });
    // Not the block of Compose's desktop app.
    const desktop = 'compose.desktop {\n  application {\n    mainClass = "MainKt"\n  }\n}\n';
    expect(plan({ "build.gradle.kts": desktop })).toMatchObject({ output: "jar" });
  });

  it("of Quarkus is started by what its build leaves", () => {
    const text = dockerfile({ "pom.xml": "<groupId>io.quarkus.platform</groupId>" });
    expect(text).toContain("quarkus-app/quarkus-run.jar");
    expect(text).toMatch(/-Dquarkus\.http\.port=\$PORT \$JAVA_OPTS -jar quarkus-run\.jar/);
  });

  it.each<[string, Files, string, string]>([
    ["Quarkus", { "pom.xml": "io.quarkus" }, "target/quarkus-app/quarkus-run.jar", "quarkus-run.jar"],
    ["the application plugin", { "build.gradle.kts": ktor }, "build/install/shop/bin/shop", "bin/app"],
  ])("of %s is the only app that its build leaves", (_, files, left, started) => {
    const folder = temporaryFolder();
    const leave = (path: string) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), "");
    };
    const step = dockerfile(files)
      .split("\n")
      .find((line) => line.includes("more than one app"));
    const [, , command] = JSON.parse(step?.slice(step.indexOf("[")) ?? "") as [string, string, string];
    const collect = () =>
      spawnSync("sh", ["-c", command.replaceAll("/srv/output", "output")], { cwd: folder, encoding: "utf8" });
    expect(collect()).toMatchObject({ status: 1, stderr: expect.stringContaining("set startCommand") });
    leave(`a/${left}`);
    leave(`a/${left}.bat`);
    expect(collect()).toMatchObject({ status: 0, stderr: "" });
    expect(existsSync(join(folder, "output", started))).toBe(true);
    rmSync(join(folder, "output"), { recursive: true });
    leave(`b/${left}`);
    expect(collect()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("more than one app (./a/"),
    });
  });

  it.each<[string, Files, string | null]>([
    ["system.properties", { "system.properties": "java.runtime.version=17\n" }, "17"],
    [".java-version", { ".java-version": "temurin-25.0.1\n" }, "25"],
    [".sdkmanrc", { ".sdkmanrc": "java=11.0.25-tem\n" }, "11"],
    ["asdf's file", { ".tool-versions": "java temurin-17.0.9+9\n" }, "17"],
    ["the pom", { "pom.xml": "<maven.compiler.source>1.8</maven.compiler.source>" }, "8"],
    ["a release without long support", { "pom.xml": "<java.version>18</java.version>" }, "21"],
    ["nothing", {}, null],
  ])("is built with the Java that %s names", (_, files, version) =>
    expect(plan({ "pom.xml": "", ...files })).toMatchObject({ kind: "java", tool: "maven", version }),
  );

  it.each([
    ["java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }", "17"],
    ["kotlin {\n  jvmToolchain(25)\n}", "25"],
    ["sourceCompatibility = JavaVersion.VERSION_1_8", "8"],
    ["sourceCompatibility = '11'", "11"],
  ])("is built with the Java that build.gradle names: %s", (text, version) =>
    expect(plan({ "build.gradle": text })).toMatchObject({ tool: "gradle", version }),
  );

  it.each([
    ["8.10", null],
    ["8.4", "17"],
    ["7.2", "11"],
  ])("that names no Java is built with one that its wrapper's Gradle %s runs on", (release, version) =>
    expect(plan({ "build.gradle": "", ...gradleWrapper(release) })).toMatchObject({ wrapped: true, version }),
  );

  it("whose wrapper is not whole is built by the image's tool", () => {
    expect(plan({ "build.gradle": "", gradlew: "" })).toMatchObject({ wrapped: false });
    expect(plan({ "pom.xml": "", mvnw: "" })).toMatchObject({ wrapped: false });
  });

  it("that says how it is started has all that was built in its image", () => {
    const text = dockerfile({ "pom.xml": spring, Procfile: "web: java -jar target/shop.jar\n" });
    expect(text).toContain("COPY --from=build --chown=1000:1000 /app /app");
    expect(text).toContain('CMD ["sh","-c","exec java -jar target/shop.jar"]');
    expect(text).not.toContain("/output");
  });

  it("is built with the images of its version, on a host that gets them", async () => {
    const asked = plan({ "pom.xml": spring, ...mavenWrapper });
    const { images } = await chooseBaseImages(asked, () => Promise.resolve(true));
    expect(images).toMatchObject({ jdk: "eclipse-temurin:17-jdk", jre: "eclipse-temurin:17-jre" });
    const offline = await chooseBaseImages(asked, () => Promise.resolve(false));
    expect(offline.notes).toEqual([
      "This host cannot get eclipse-temurin:17-jre: eclipse-temurin:21-jre is used instead.",
      "This host cannot get eclipse-temurin:17-jdk: eclipse-temurin:21-jdk is used instead.",
    ]);
  });

  it("is built by its build command in place of the tool's", () =>
    expect(dockerfile({ "pom.xml": spring }, { buildCommand: "mvn -Pcloud package" })).toContain(
      "mvn -Pcloud package",
    ));
});

describe("a module of a Java repository", () => {
  it.each<[string, Files, Files, string]>([
    [
      "Maven's",
      { "pom.xml": "<module>api</module>" },
      { "pom.xml": spring },
      "mvn --batch-mode -DskipTests --projects api --also-make package",
    ],
    [
      "Gradle's",
      { "settings.gradle.kts": 'include("core", ":api")' },
      { "build.gradle.kts": "" },
      "gradle --no-daemon --project-dir api assemble",
    ],
  ])("is built with the modules that it needs: %s", (_, root, app, command) => {
    const repository = repositoryOf(sourcesOf(app), sourcesOf(root), "api");
    const text = generateDockerfile(detect({ ...sourcesOf(app), repository }, none), variables);
    expect(text).toContain(command);
    expect(text).toContain("WORKDIR /app/api\nRUN");
  });

  it("that the root does not list is built by itself", () => {
    const app = sourcesOf({ "pom.xml": spring });
    expect(repositoryOf(app, sourcesOf({ "pom.xml": "<module>api-v2</module>" }), "api")).toBeNull();
    expect(repositoryOf(app, sourcesOf({}), "api")).toBeNull();
  });
});

it("what says how a Java app is built is read from a repository", async () => {
  const folder = temporaryFolder();
  const files = [
    "pom.xml",
    "api/pom.xml",
    "services/web/build.gradle.kts",
    "gradle/libs.versions.toml",
    "gradle/wrapper/gradle-wrapper.properties",
    "system.properties",
  ];
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), file);
  }
  const { texts } = await readSources(folder);
  expect([...texts.keys()].sort()).toEqual([...files].sort());
});
