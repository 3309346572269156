import {
  placeOf,
  procfileWeb,
  textOf,
  toolVersion,
  type Overrides,
  type Place,
  type Sources,
} from "./sources.ts";

/** What a build leaves: one jar, Quarkus's folder, or the folder of Gradle's application plugin. */
export type JavaOutput = "jar" | "quarkus" | "distribution";
export type JavaPlan = Place & {
  kind: "java";
  tool: "maven" | "gradle";
  /** The repository brings the release of the tool. */
  wrapped: boolean;
  /** Such as 17; null when any will do. */
  version: string | null;
  /** Maven's profile of that name is for what is deployed. */
  hasProductionProfile: boolean;
  output: JavaOutput;
  buildCommand: string | null;
  /** null: what the build leaves is started. */
  startCommand: string | null;
  /** How the frameworks that are there are told the port. */
  options: string[];
};

const gradleFiles = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
/** With long support: others are not maintained. */
const releases = [8, 11, 17, 21, 25];
const defaultJava = 21;

const frameworks: [sign: RegExp, options: string[]][] = [
  [/org\.springframework\.boot|spring-boot/, ["-Dserver.port=$PORT"]],
  [/io\.micronaut/, ["-Dmicronaut.server.port=$PORT"]],
  [/io\.quarkus/, ["-Dquarkus.http.host=0.0.0.0", "-Dquarkus.http.port=$PORT"]],
  [/io\.helidon/, ["-Dserver.host=0.0.0.0", "-Dserver.port=$PORT"]],
];

export function detectJava(sources: Sources, overrides: Overrides): JavaPlan | null {
  const tool = toolOf(sources);
  if (tool === null) return null;
  const root = sources.repository?.root ?? sources;
  const texts = buildTexts(sources) + buildTexts(root);
  const wrapped =
    tool === "maven"
      ? root.files.has("mvnw") && root.files.has(".mvn/wrapper/maven-wrapper.properties")
      : root.files.has("gradlew") && root.files.has("gradle/wrapper/gradle-wrapper.jar");
  return {
    kind: "java",
    ...placeOf(sources),
    tool,
    wrapped,
    version: versionOf(sources, root, texts, wrapped),
    hasProductionProfile: tool === "maven" && /<id>production<\/id>/.test(texts),
    output: outputOf(tool, texts),
    buildCommand: overrides.buildCommand,
    startCommand: overrides.startCommand ?? procfileWeb(sources),
    options: [...new Set(frameworks.flatMap(([sign, options]) => (sign.test(texts) ? options : [])))],
  };
}

function toolOf({ files }: Sources): JavaPlan["tool"] | null {
  if (files.has("pom.xml")) return "maven";
  return gradleFiles.some((file) => files.has(file)) ? "gradle" : null;
}

const isBuildFile = /(?:^|\/)(?:pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|libs\.versions\.toml)$/;
const buildTexts = ({ texts }: Sources): string =>
  [...texts].flatMap(([file, text]) => (isBuildFile.test(file) ? text : [])).join("\n");

function outputOf(tool: JavaPlan["tool"], texts: string): JavaOutput {
  if (/io\.quarkus/.test(texts)) return "quarkus";
  const applies =
    /\bid[ (]{1,3}["'](?:application|io\.ktor\.plugin|io\.micronaut\.application)["']|^[ \t]*`?application`?[ \t]*$|\bapply plugin: ["']application["']|^application[ \t]*\{|io\.ktor\.plugin|io\.micronaut\.application/m;
  return tool === "gradle" && !/org\.springframework\.boot|spring-boot/.test(texts) && applies.test(texts)
    ? "distribution"
    : "jar";
}

const named = /^\D{0,30}?(?:1\.)?(\d{1,2})(?!\d)/;

function versionOf(sources: Sources, root: Sources, texts: string, wrapped: boolean): string | null {
  const written =
    /^java\.runtime\.version\s*=\s*(?:1\.)?(\d{1,2})/m.exec(textOf(sources, "system.properties"))?.[1] ??
    named.exec(textOf(sources, ".java-version") || textOf(root, ".java-version"))?.[1] ??
    /^java\s*=\s*(\d{1,2})/m.exec(textOf(sources, ".sdkmanrc") || textOf(root, ".sdkmanrc"))?.[1] ??
    named.exec(toolVersion(sources, "java"))?.[1] ??
    /<(?:java\.version|maven\.compiler\.(?:release|target|source)|release)>\s*(?:1\.)?(\d{1,2})\s*</.exec(
      texts,
    )?.[1] ??
    /JavaLanguageVersion\.of\(\s*["']?(\d{1,2})|jvmToolchain\(\s*(\d{1,2})/
      .exec(texts)
      ?.slice(1)
      .find((one) => one !== undefined) ??
    /(?:source|target)Compatibility[ =]{0,5}(?:JavaVersion\.VERSION_)?["']?(?:1[._])?(\d{1,2})/.exec(
      texts,
    )?.[1];
  const asked = releases.find((one) => one >= Number(written));
  const most = wrapped ? mostForGradle(root) : null;
  const usual = most !== null && most < defaultJava ? most : null;
  return (asked ?? usual)?.toString() ?? null;
}

/** The newest Java that a wrapper's Gradle runs on; null where it names none. */
function mostForGradle(root: Sources): number | null {
  const release = /gradle-(\d+)\.(\d+)/.exec(textOf(root, "gradle/wrapper/gradle-wrapper.properties"));
  if (release === null) return null;
  const number = Number(release[1]) * 100 + Number(release[2]);
  if (number >= 901) return 25;
  if (number >= 805) return 21;
  if (number >= 703) return 17;
  return number >= 500 ? 11 : 8;
}
