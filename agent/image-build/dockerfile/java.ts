import type { BackendPlan } from "../detect/plan.ts";
import type { JavaOutput, JavaPlan } from "../detect/java.ts";
import {
  appFolder,
  appUser,
  buildStep,
  cache,
  copySource,
  handedOver,
  runs,
  starts,
  type BaseImages,
  type BuildVariables,
} from "./instructions.ts";

const output = `${handedOver}/output`;
const gradleHome = "/root/gradle";

/** Of a module, the whole is built from its root: it says how. */
function buildOf({ tool, wrapped, within, hasProductionProfile, output }: JavaPlan): string {
  if (tool === "maven") {
    const module = within === null ? "" : ` --projects ${within} --also-make`;
    const profile = hasProductionProfile ? " --activate-profiles production" : "";
    return `${wrapped ? "sh mvnw" : "mvn"} --batch-mode -DskipTests${profile}${module} package`;
  }
  const tasks = output === "distribution" ? "assemble installDist" : "assemble";
  const project = within === null ? "" : ` --project-dir ${within}`;
  return `${wrapped ? "sh gradlew" : "gradle"} --no-daemon${project} ${tasks}`;
}

const severalApps =
  'echo "The build left more than one app ($*): set rootDir to the folder of one, or set startCommand." >&2; exit 1';

/** Jars of a folder that can be started, largest first: one beside it that brings no dependencies is smaller. */
const findJar = [
  `mkdir -p ${output} /tmp/jar`,
  "found=''",
  "for folder in $(find . -path '*/node_modules' -prune -o -type d \\( -path '*/target' -o -path '*/build/libs' \\) -print | sort); do " +
    "for jar in $(find $folder -maxdepth 1 \\( -name '*.jar' -o -name '*.war' \\) ! -name '*-sources.jar' ! -name '*-javadoc.jar' ! -name '*-plain.jar' ! -name 'original-*' -printf '%s %p\\n' | sort -rn | cut -d ' ' -f 2-); do " +
    "rm -rf /tmp/jar/*; path=$(realpath $jar); (cd /tmp/jar && jar xf $path META-INF/MANIFEST.MF && grep -q '^Main-Class:' META-INF/MANIFEST.MF) || continue; " +
    'found="$found $jar"; break; done; done',
  "set -- $found",
  `if [ $# = 1 ]; then cp $1 ${output}/app.jar; for name in lib libs dependency; do if [ -d \${1%/*}/$name ]; then cp -R \${1%/*}/$name ${output}/; fi; done; exit 0; fi`,
  "if [ $# = 0 ]; then echo 'The build left no jar that can be started: let its manifest name a Main-Class, as the Spring Boot, Shade and Shadow plugins do, or set startCommand.' >&2; exit 1; fi",
  severalApps,
].join("; ");

/** The folder that holds the only ones of these paths. */
const findFolder = (path: string, take: string, problem: string): string =>
  `set -- $(find . -path '${path}' ! -name '*.bat' -printf '%h\\n' | sort -u); if [ $# = 0 ]; then echo '${problem}' >&2; exit 1; fi; if [ $# != 1 ]; then ${severalApps}; fi; ${take}`;

const collect: Record<JavaOutput, string> = {
  jar: findJar,
  quarkus: findFolder(
    "*/quarkus-app/quarkus-run.jar",
    `cp -R $1 ${output}`,
    "The build left no quarkus-app: leave quarkus.package.jar.type as it is, or set startCommand.",
  ),
  distribution: findFolder(
    "*/build/install/*/bin/*",
    `script=$(find $1 -type f ! -name '*.bat' | sort | head -n 1); cp -R \${1%/bin} ${output} && mv ${output}/bin/\${script##*/} ${output}/bin/app`,
    "The build left nothing in build/install: set startCommand.",
  ),
};

/** The rest of the memory is for code, threads and what libraries allocate. */
const heap = "-XX:MaxRAMPercentage=60";

function startOf({ output, options }: JavaPlan): string {
  const all = [heap, ...options].join(" ");
  if (output === "distribution") return `JAVA_OPTS="${all} $JAVA_OPTS" bin/app`;
  return `java ${all} $JAVA_OPTS -jar ${output === "quarkus" ? "quarkus-run.jar" : "app.jar"}`;
}

export function javaDockerfile(
  plan: JavaPlan & BackendPlan,
  variables: BuildVariables,
  images: BaseImages,
): string[] {
  const { plain, secret, memoryMb } = variables;
  const isMaven = plan.tool === "maven";
  const mount = isMaven ? cache(variables, "maven", "/root/.m2") : cache(variables, "gradle", gradleHome);
  const limit =
    !isMaven || memoryMb === undefined || [...plain, ...secret].includes("MAVEN_OPTS")
      ? []
      : [`ENV MAVEN_OPTS=-Xmx${Math.floor((memoryMb * 5) / 8)}m`];
  const own = plan.startCommand !== null;
  return [
    `FROM ${plan.wrapped ? images.jdk : images[plan.tool]} AS build`,
    "WORKDIR /app",
    ...(isMaven ? limit : [`ENV GRADLE_USER_HOME=${gradleHome}`]),
    copySource(plan),
    ...buildStep(plan.installCommand ?? null, variables, [mount]),
    ...buildStep(plan.buildCommand ?? buildOf(plan), variables, [mount]),
    ...(own || plan.within === null ? [] : [`WORKDIR ${appFolder(plan)}`]),
    ...(own ? [] : [runs(collect[plan.output])]),
    `FROM ${images.jre}`,
    "ENV PORT=3000 HOME=/app",
    `COPY --from=build --chown=${appUser} ${own ? "/app" : output} /app`,
    `WORKDIR ${own ? appFolder(plan) : "/app"}`,
    `USER ${appUser}`,
    starts(plan.startCommand ?? startOf(plan)),
  ];
}
