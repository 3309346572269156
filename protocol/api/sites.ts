/* oxlint-disable no-control-regex -- by their ranges: \p{Cc} needs a flag that patterns of JSON Schema do not have */
import { Ingress, IngressChange } from "./ingress.ts";
import { BillingDay, NextBillingTerm, PackChange } from "./packs.ts";
import * as z from "zod";
import { problemOfDockerfile } from "../dockerfile.ts";
import { billingTermsMonths, builders, deploymentStatuses, siteStatuses } from "../states.ts";
import { Domain, DomainChange } from "./domains.ts";
import { listQuery, text, Timestamp } from "./common.ts";
import { Replicas, Volume, Volumes } from "./volumes.ts";

/** Unique per account. The site's host name is derived from it. */
export const SiteName = z.string().regex(/^[a-z0-9-]{1,63}$/, "1–63 of a–z, 0–9 and -");

/** A DNS label. */
export const LabelName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9 and -, not at the ends");

const label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const port = ":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

/**
 * `host/owner/repo`, no scheme, no credentials, optional `.git`. The host is a DNS name with an optional port; no path
 * segment starts with `-` or is `.` or `..`, so none can be read as an option or traverse directories.
 */
export const GitAddress = z
  .string()
  .max(300)
  .regex(
    new RegExp(
      `^(?![^/:]{254})${label}(\\.${label})*(${port})?(\\/(?!\\.{1,2}(\\/|$))[A-Za-z0-9_~.][A-Za-z0-9._~-]*){2,6}$`,
    ),
    "host/owner/repo without scheme or credentials",
  );

/** A Git branch name by the rules of git-check-ref-format(1); it is always passed as a separate argument. */
export const GitBranch = text
  .max(200)
  .regex(
    /^(?!-|\/|\.|@$|HEAD$)(?![\s\S]*(?:\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|[./]$))[^\x00-\x20\x7f~^:?*[\\]+$/,
    "a Git branch name",
  );

/** One line without control characters, since it becomes an argument of a build or start step. */
export const command = text
  .min(1)
  .max(2000)
  .regex(/^[^\x00-\x1f\x7f-\x9f]+$/, "one line without control characters");

/** A relative path inside the repository, without `.` or `..` segments. */
export const RepositoryPath = z
  .string()
  .max(300)
  .regex(
    /^(?!.*(^|\/)\.{1,2}(\/|$))[A-Za-z0-9_.@+-][A-Za-z0-9_.@+/-]*$/,
    "a relative path inside the repository",
  );

const imageName = "[a-z0-9]+((\\.|__?|-+)[a-z0-9]+)*";

/**
 * An image reference (https://pkg.go.dev/github.com/distribution/reference): optional host, lower-case name, optional tag and
 * digest. A first part with a dot or a port is a host; 64 hexadecimal digits alone are an id to the engine.
 */
export const ImageReference = z
  .string()
  .max(300)
  .regex(
    new RegExp(
      `^(?![0-9a-f]{64}$)((${label}(\\.${label})+(${port})?|${label}${port}|localhost)\\/|(?![^/]*\\.[^/]*\\/))${imageName}(\\/${imageName})*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$`,
    ),
    "an image reference",
  );

export const Port = z.number().int().min(1).max(65535);

export const HealthCheckPath = z
  .string()
  .max(300)
  .regex(/^\/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*$/, "a path that starts with /");

export const Builder = z.enum(builders);
export const LanguageVersion = z
  .string()
  .regex(/^[0-9]{1,3}(\.[0-9]{1,3}){0,2}$/, "a version such as 24, 3.12 or 1.18.3");

/**
 * What a repository's owner may decide about its build. A setting that is added here travels to the host by itself: it is
 * stored, shown, changed and sent with the others.
 */
const buildOptions = {
  builder: Builder.describe(
    "detect: detected from the repository's files, even if it contains a Dockerfile; dockerfile: its Dockerfile. Default: its Dockerfile if it has one.",
  ),
  installCommand: command.describe(
    "Installs the dependencies, with the whole source present. Default: the package manager's install command.",
  ),
  outputDir: RepositoryPath.describe(
    "The folder that is served as a static site after the build, instead of starting a program. startCommand takes precedence. Default: detected.",
  ),
  singlePage: z
    .boolean()
    .describe("For static sites: index.html is served for paths that match no file. Default: detected."),
  languageVersion: LanguageVersion.describe(
    "The version of the app's language, such as 24 for Node or 3.12 for Python. Default: detected from the repository's files.",
  ),
};

export const BuildOptions = z.object(buildOptions).partial();
export type BuildOptions = z.infer<typeof BuildOptions>;
export const buildOptionNames = Object.keys(buildOptions) as (keyof BuildOptions)[];

type Shape = typeof buildOptions;
const mapShape = <To>(map: (field: z.ZodType) => z.ZodType) =>
  Object.fromEntries(Object.entries(buildOptions).map(([name, field]) => [name, map(field)])) as To;
/** null unsets. */
const changeableOptions = mapShape<{ [Name in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Name]>> }>(
  (field) => field.nullable().optional(),
);
/** null: unset. */
const shownOptions = mapShape<{ [Name in keyof Shape]: z.ZodNullable<Shape[Name]> }>((field) =>
  field.nullable(),
);

export const restartPolicies = ["always", "on-failure", "never"] as const;
/** Signals by which servers are asked to end: each has programs that close their requests at this one alone. */
export const stopSignals = [
  "SIGTERM",
  "SIGINT",
  "SIGQUIT",
  "SIGHUP",
  "SIGUSR1",
  "SIGUSR2",
  "SIGWINCH",
] as const;
/** What happens to a site's containers when they exit, are replaced, or are stopped. */
export const Lifecycle = z
  .strictObject({
    restartPolicy: z
      .enum(restartPolicies)
      .optional()
      .describe(
        "Whether a container that exits is restarted; on-failure: after non-zero exit codes. Default: always.",
      ),
    drainSeconds: z
      .number()
      .int()
      .min(1)
      .max(3600)
      .optional()
      .describe(
        "How long a replaced container may complete its requests. Default and minimum: the operator's.",
      ),
    stopTimeoutSeconds: z
      .number()
      .int()
      .min(1)
      .max(120)
      .optional()
      .describe("Between the stop signal and SIGKILL. Default: 10."),
    stopSignal: z
      .enum(stopSignals)
      .optional()
      .describe("Asks a container to exit. Default: its image's, usually SIGTERM."),
  })
  .meta({ id: "Lifecycle" });
export type Lifecycle = z.infer<typeof Lifecycle>;

/** The minimum is how often hosts look. */
export const HealthCheck = z
  .strictObject({
    kind: z
      .enum(["http", "tcp"])
      .optional()
      .describe(
        "http: healthCheckPath answers below 400, or without a path with any status. tcp: the port accepts connections. Default: http.",
      ),
    intervalSeconds: z
      .number()
      .int()
      .min(10)
      .max(3600)
      .optional()
      .describe("Between checks of the version in service. Default: 30."),
    timeoutSeconds: z.number().int().min(1).max(30).optional().describe("Per check. Default: 5."),
    failures: z
      .number()
      .int()
      .min(1)
      .max(20)
      .optional()
      .describe("Failures in a row before an event is recorded. Default: 3."),
  })
  .meta({ id: "HealthCheck" });
export type HealthCheck = z.infer<typeof HealthCheck>;

/** The number of successful deployments, including the one in service, whose images are kept for rollbacks. */
const KeptImages = z.number().int().min(1).max(10);

const runSettings = {
  port: Port.describe("The port the app listens on, passed to it as the variable PORT."),
  startCommand: command.describe(
    "Replaces an image's command and entrypoint. Default: the image's, or detected from the repository's files.",
  ),
  releaseCommand: command.describe(
    "Runs once in each new version before it serves, such as a migration. If it fails, the previous version stays in service. Default: the release process of the repository's Procfile, unless there is a Dockerfile.",
  ),
  startTimeoutSeconds: z
    .number()
    .int()
    .min(1)
    .max(600)
    .describe("How long a new container may take to respond. Default: set by the operator."),
  healthCheckPath: HealthCheckPath.describe(
    "Requested over HTTP with the site's host name until it answers below 400, then every 30 seconds. Later failures are reported as events only. Default: the app answers GET / with any status.",
  ),
  healthCheck: HealthCheck.describe(
    "The health check; replaces it as a whole, omitted fields get their defaults. startTimeoutSeconds limits a new version's start.",
  ),
  keptImages: KeptImages.describe(
    "Successful deployments that stay available for rollbacks, including the one in service. Default: 5. A smaller number drops older ones at once.",
  ),
  replicas: Replicas.describe("Containers that share the pack's memory and CPU and balance the requests."),
  volumes: Volumes,
  lifecycle: Lifecycle.describe("Replaces the whole policy; omitted fields get their defaults."),
};

/** How a repository is built: other sources have none of these, and would ignore them. */
const buildSettings = {
  buildCommand: command.describe("Default: detected from the repository's files."),
  rootDir: RepositoryPath.describe("The folder of the app. Default: the root of the repository."),
  dockerfilePath: RepositoryPath.describe(
    "Relative to rootDir, which is also the build context. Default: Dockerfile, otherwise dockerfile, if there is one.",
  ),
  ...buildOptions,
};
export const buildSettingNames = Object.keys(buildSettings) as (keyof typeof buildSettings)[];

/** Settings that a restart can apply as well, since they do not depend on the image. */
export const settingsOfRestart = ["healthCheckPath", "healthCheck", "replicas", "lifecycle"] as const;

/** Credentials of a private registry. The password is stored encrypted; neither is ever returned. */
const registryLogin = {
  registryUsername: text
    .min(1)
    .max(256)
    .regex(/^[^\x00-\x1f\x7f-\x9f:]+$/, "no colon and no control characters"),
  registryPassword: text
    .min(1)
    .max(16_384)
    .regex(/^[^\x00-\x1f\x7f-\x9f]+$/, "no control characters"),
};

export const GitToken = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[\x21-\x7e]+$/, "visible ASCII");

const DockerfileText = text.min(1).max(100_000);
/** Its site may have a start command already. */
const Dockerfile = DockerfileText.superRefine((dockerfile, ctx) => {
  const message = problemOfDockerfile(dockerfile, true);
  if (message !== null) ctx.addIssue(message);
});

const sourceSettings = {
  githubUrl: GitAddress,
  branch: GitBranch,
  gitToken: GitToken,
  submodules: z.boolean(),
  lfs: z.boolean(),
  dockerfile: Dockerfile,
  image: ImageReference,
  ...registryLogin,
};

export const Region = z
  .string()
  .max(50)
  .regex(/^[a-z0-9-]*$/, "a–z, 0–9 and -");
export const regionOfNew = Region.optional().meta({
  description:
    "The region to run in; any region if omitted. An unknown region is refused with a list of the known ones.",
});

const createBase = {
  name: SiteName,
  ...z.object(runSettings).partial().shape,
  port: runSettings.port.default(3000),
  packId: text.max(100).optional(),
  billingTerm: z.literal([...billingTermsMonths]).default(1),
  region: regionOfNew,
};

export const SiteCreate = z
  .discriminatedUnion("deployType", [
    z.strictObject({
      deployType: z.literal("github"),
      ...createBase,
      ...z.object(buildSettings).partial().shape,
      githubUrl: sourceSettings.githubUrl,
      branch: sourceSettings.branch.optional(),
      gitToken: sourceSettings.gitToken.optional(),
      submodules: sourceSettings.submodules.optional(),
      lfs: sourceSettings.lfs.optional(),
    }),
    z
      .strictObject({ deployType: z.literal("dockerfile"), ...createBase, dockerfile: DockerfileText })
      .superRefine(({ dockerfile, startCommand }, ctx) => {
        const message = problemOfDockerfile(dockerfile, startCommand !== undefined);
        if (message !== null) ctx.addIssue({ code: "custom", path: ["dockerfile"], message });
      }),
    z
      .strictObject({
        deployType: z.literal("image"),
        ...createBase,
        image: sourceSettings.image,
        ...z.object(registryLogin).partial().shape,
      })
      .refine(
        ({ registryUsername: name, registryPassword: word }) => (name === undefined) === (word === undefined),
        "registryUsername and registryPassword go together",
      ),
  ])
  .meta({ id: "SiteCreate" });
export type SiteCreate = z.infer<typeof SiteCreate>;

export const SiteCreated = z
  .object({ invoiceToken: z.string(), invoiceId: z.string(), siteId: z.string() })
  .meta({ id: "SiteCreated" });
export type SiteCreated = z.infer<typeof SiteCreated>;

export const SiteClone = z.strictObject({
  name: SiteName,
  packId: text.max(100).optional().describe("Default: the pack of the site that is copied."),
  billingTerm: z.literal([...billingTermsMonths]).default(1),
});
export type SiteClone = z.infer<typeof SiteClone>;

export const SiteCloned = SiteCreated.extend({
  secretsToSet: z.array(z.string()).describe("Secret variables of the other site, which were not copied."),
  credentialsToSet: z.array(z.string()).describe("Settings with credentials, which were not copied."),
});
export type SiteCloned = z.infer<typeof SiteCloned>;

export const SiteListQuery = listQuery("site").extend({
  status: z.enum(siteStatuses).optional().describe("Only sites with this status."),
});
export type SiteListQuery = z.infer<typeof SiteListQuery>;

/** Volumes are deleted with their site. */
export const SiteRemoveQuery = z.strictObject({
  deleteVolumes: z
    .enum(["0", "1"])
    .optional()
    .describe("0: refuse to delete a site that has volumes, since their data would be lost. Default: 1."),
});
export type SiteRemoveQuery = z.infer<typeof SiteRemoveQuery>;

const siteActions = ["start", "stop", "restart", "deploy"] as const;
/** Both forms of an action name all. */
const noAction = `must be one of ${siteActions.map((action) => `"${action}"`).join(", ")}`;

export const EnvKey = z
  .string()
  .max(200)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "a letter or _, then letters, digits or _");

export const EnvVariable = z
  .strictObject({
    key: EnvKey,
    value: text
      .max(32_768)
      .nullable()
      .optional()
      .describe("null removes the variable. Default: unchanged; a new variable needs one."),
    encrypted: z
      .boolean()
      .optional()
      .describe("Stored encrypted and never returned. Default: unchanged, or false for a new variable."),
    scope: z
      .enum(["build", "runtime", "both"])
      .optional()
      .describe("Default: unchanged, or both for a new variable."),
  })
  .meta({ id: "EnvVariable" });
export type EnvVariable = z.infer<typeof EnvVariable>;

/** As returned: a secret's value is null. */
export const EnvVariableShown = z
  .object({
    key: z.string(),
    value: z.string().nullable(),
    encrypted: z.boolean(),
    scope: z.enum(["build", "runtime", "both"]),
  })
  .meta({ id: "EnvVariableShown" });
export type EnvVariableShown = z.infer<typeof EnvVariableShown>;

const changeableSettings = z.strictObject({
  ...z.object({ ...runSettings, ...buildSettings, ...sourceSettings }).partial().shape,
  buildCommand: command.nullable().optional(),
  startCommand: command.nullable().optional(),
  releaseCommand: command.nullable().optional(),
  startTimeoutSeconds: runSettings.startTimeoutSeconds.nullable().optional(),
  rootDir: RepositoryPath.nullable().optional(),
  dockerfilePath: RepositoryPath.nullable().optional(),
  ...changeableOptions,
  ingress: IngressChange.optional().describe(
    "The site's ingress rules. They take effect at once, without a deployment.",
  ),
  healthCheckPath: HealthCheckPath.nullable().optional(),
  branch: sourceSettings.branch.nullable().optional(),
  gitToken: sourceSettings.gitToken.nullable().optional(),
  registryUsername: registryLogin.registryUsername.nullable().optional(),
  registryPassword: registryLogin.registryPassword.nullable().optional(),
  region: Region.nullable().optional().meta({
    description:
      "The region to run in; null: any. Applies at the next placement, such as when the current host is drained; it does not move a placed site.",
  }),
});
const named = [(settings: object) => Object.keys(settings).length > 0, "name at least one setting"] as const;

/** All fields of creation except the name, the kind of source and the billing. All but `ingress` apply from the next deployment. */
export const SiteSettings = changeableSettings.refine(...named).meta({ id: "SiteSettings" });
export type SiteSettings = z.infer<typeof SiteSettings>;
/** Without what the ingress does, which takes effect at once. */
export const DeployedSettings = changeableSettings.omit({ ingress: true }).refine(...named);

export const EnvChanged = z.object({ envVariables: z.array(EnvVariableShown), restartRequired: z.boolean() });
export type EnvChanged = z.infer<typeof EnvChanged>;

/** The URL is a credential: anyone who knows it can deploy. */
export const WebhookAddress = z.object({ url: z.string() }).meta({ id: "WebhookAddress" });

export const SiteRollback = z.strictObject({
  deploymentId: z
    .string()
    .max(100)
    .optional()
    .describe(
      "A deployment that was live. Default: the previous live deployment, not counting moves between hosts.",
    ),
  withEnv: z
    .boolean()
    .optional()
    .describe(
      "false: the image and settings of that deployment, with the newest environment. Default: true.",
    ),
});
export type SiteRollback = z.infer<typeof SiteRollback>;

export const SiteDeploy = z.strictObject({
  action: z.literal("deploy", noAction),
  rebuild: z
    .boolean()
    .optional()
    .describe("Build even if the build inputs are unchanged and an image exists."),
  ref: GitBranch.optional().describe(
    "A branch, a tag or a whole commit id (40 or 64 digits) to deploy this once, instead of the newest commit of the site's branch. A later request without it deploys that branch again. While this one waits, a request for another source replaces it: it ends CANCELLED.",
  ),
});

/** Exactly one kind of change. */
export const SitePatch = z
  .union(
    [
      z.strictObject({ action: z.enum(siteActions).exclude(["deploy"], noAction) }),
      SiteDeploy,
      z.strictObject({ envVariables: z.array(EnvVariable).min(1).max(200) }),
      z.strictObject({
        domain: DomainChange.describe(
          'A name: add it. {"remove": name}: take it away. {"verify": name}: look for its TXT record now.',
        ),
      }),
      z.strictObject({
        settings: SiteSettings,
        apply: z
          .literal("now")
          .optional()
          .describe(
            `now: restart the version in service with them, without downtime. Only for ${settingsOfRestart.join(", ")}. Default: from the next deployment.`,
          ),
      }),
      PackChange,
    ],
    "exactly one of action, envVariables, domain, settings and packId",
  )
  .meta({ id: "SitePatch" });
export type SitePatch = z.infer<typeof SitePatch>;

export const SiteActionAccepted = z
  .object({
    id: z.string(),
    status: z.enum(siteStatuses),
    deploymentId: z.string().optional(),
  })
  .meta({ id: "SiteActionAccepted" });
export type SiteActionAccepted = z.infer<typeof SiteActionAccepted>;

export const Site = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(siteStatuses),
    deployType: z.enum(["github", "dockerfile", "image"]),
    githubUrl: z.string().nullable(),
    branch: z.string().nullable(),
    submodules: z.boolean().describe("Fetch Git submodules and Git LFS files as well."),
    lfs: z.boolean(),
    port: z.number(),
    buildCommand: z.string().nullable(),
    startCommand: z.string().nullable(),
    releaseCommand: z.string().nullable(),
    startTimeoutSeconds: z.number().nullable(),
    rootDir: z.string().nullable(),
    dockerfilePath: z.string().nullable(),
    ...shownOptions,
    healthCheckPath: z.string().nullable(),
    healthCheck: HealthCheck,
    keptImages: z.number(),
    replicas: z.number(),
    lifecycle: Lifecycle,
    volumes: z.array(Volume),
    ingress: Ingress,
    image: z.string().nullable(),
    region: z.string().nullable(),
    packId: z.string(),
    nextPackId: z
      .string()
      .nullable()
      .describe("The pack it changes to, once the change is paid or at the next renewal."),
    billingTerm: z.number(),
    nextBillingTerm: NextBillingTerm,
    billingDay: BillingDay,
    url: z.string(),
    domains: z.array(Domain),
    envVariables: z.array(EnvVariableShown),
    currentDeployment: z
      .object({
        id: z.string(),
        number: z.number().int(),
        commit: z.string().nullable(),
        commitMessage: z.string().nullable(),
        finishedAt: Timestamp,
        error: z.string().nullable(),
      })
      .nullable()
      .describe(
        "The deployment in service, or the last one; `error`: why it is no longer in service, or why the last action failed.",
      ),
    latestDeployment: z
      .object({
        id: z.string(),
        number: z.number().int(),
        status: z.enum(deploymentStatuses),
        error: z.string().nullable(),
      })
      .nullable(),
    paidUntil: Timestamp.nullable(),
    hostId: z.string().nullable(),
    hostOffline: z
      .boolean()
      .describe("The site's host is unreachable: changes wait, and the site's actual state is unknown."),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "Site" });
export type Site = z.infer<typeof Site>;

/** What lists leave out is long. */
export const SiteInFull = Site.extend({
  dockerfile: z.string().nullable().describe("The pasted text, if a Dockerfile is its source."),
}).meta({ id: "SiteInFull" });
export type SiteInFull = z.infer<typeof SiteInFull>;
