/* oxlint-disable no-control-regex -- by their ranges: \p{Cc} needs a flag that patterns of JSON Schema do not have */
import { PackChange } from "./packs.ts";
import * as z from "zod";
import { billingTermsMonths, deploymentStatuses, domainStatuses, siteStatuses } from "../states.ts";
import { text, Timestamp } from "./common.ts";
import { Replicas, Volume, Volumes } from "./volumes.ts";

/** Unique in an account. A site's host name is made from it. */
export const SiteName = z.string().regex(/^[a-z0-9-]{1,63}$/, "1–63 of a–z, 0–9 and -");

/** A DNS label. */
export const LabelName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1–63 of a–z, 0–9 and -, not at the ends");

/**
 * `host/owner/repo`, no scheme, no credentials, optional `.git`. The host is a DNS name with an optional port;
 * path segments never start with `-` or `.`, so nothing can be read as an option or climb a directory.
 */
export const GitAddress = z
  .string()
  .max(300)
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(\/[A-Za-z0-9_~][A-Za-z0-9._~-]*){2,6}$/,
    "host/owner/repo without scheme or credentials",
  );

/** A Git branch name by the rules of git-check-ref-format(1); it is handed over as an argument of its own. */
export const GitBranch = text
  .max(200)
  .regex(
    /^(?!-|\/|\.|@$|HEAD$)(?![\s\S]*(?:\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|[./]$))[^\x00-\x20\x7f~^:?*[\\]+$/,
    "a Git branch name",
  );

/** One line, no control characters: it becomes an argument of a build or start step. */
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

/** An image reference (https://pkg.go.dev/github.com/distribution/reference), lower-case name, optional tag and digest. */
export const ImageReference = z
  .string()
  .max(300)
  .regex(
    /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$/,
    "an image reference",
  );

export const Port = z.number().int().min(1).max(65535);

const HealthCheckPath = z
  .string()
  .max(300)
  .regex(/^\/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*$/, "a path that starts with /");

const runSettings = {
  port: Port.describe("Where the app listens; it is told as the variable PORT."),
  buildCommand: command.describe("Left out: as the repository's files say."),
  startCommand: command.describe("Left out: as the image or the repository's files say."),
  releaseCommand: command.describe(
    "Run once in each new version before it serves, such as a migration: where it fails, the version before serves on. Left out: as the repository's Procfile says, if it has no Dockerfile.",
  ),
  rootDir: RepositoryPath,
  dockerfilePath: RepositoryPath,
  startTimeoutSeconds: z
    .number()
    .int()
    .min(1)
    .max(600)
    .describe("How long a new container may take until it answers. Left out: as the operator says."),
  healthCheckPath: HealthCheckPath.describe(
    "Asked by HTTP under the site's own name until it answers below 400, and every half minute while it serves: that it fails is an event then, no more. Left out: that the port takes connections is enough.",
  ),
  replicas: Replicas.describe("Containers that share the pack's memory and CPU, and the requests."),
  volumes: Volumes,
};

/** Of a private registry. The password is stored encrypted; neither is shown. */
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

const sourceSettings = {
  githubUrl: GitAddress,
  branch: GitBranch,
  gitToken: z
    .string()
    .min(1)
    .max(500)
    .regex(/^[\x21-\x7e]+$/, "visible ASCII"),
  submodules: z.boolean(),
  lfs: z.boolean(),
  dockerfile: text.min(1).max(100_000),
  image: ImageReference,
  ...registryLogin,
};

export const Region = z
  .string()
  .max(50)
  .regex(/^[a-z0-9-]*$/, "a–z, 0–9 and -");
export const regionOfNew = Region.optional().meta({
  description:
    "Where it is to run: the region of a host; left out: anywhere. Another one is refused with a list of those there are.",
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
      githubUrl: sourceSettings.githubUrl,
      branch: sourceSettings.branch.optional(),
      gitToken: sourceSettings.gitToken.optional(),
      submodules: sourceSettings.submodules.optional(),
      lfs: sourceSettings.lfs.optional(),
    }),
    z.strictObject({
      deployType: z.literal("dockerfile"),
      ...createBase,
      dockerfile: sourceSettings.dockerfile,
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

export const siteActions = ["start", "stop", "restart", "deploy"] as const;
export type SiteAction = (typeof siteActions)[number];

export const EnvKey = z
  .string()
  .max(200)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "a letter or _, then letters, digits or _");

export const EnvVariable = z
  .strictObject({
    key: EnvKey,
    value: text.max(32_768).nullable().describe("null removes the variable."),
    encrypted: z
      .boolean()
      .optional()
      .describe("A secret: stored encrypted, never shown again. Left out: as it was; of a new one false."),
    scope: z
      .enum(["build", "runtime", "both"])
      .optional()
      .describe("Left out: as it was; of a new one both."),
  })
  .meta({ id: "EnvVariable" });
export type EnvVariable = z.infer<typeof EnvVariable>;

/** As it is shown: a secret's value is null. */
export const EnvVariableShown = z
  .object({
    key: z.string(),
    value: z.string().nullable(),
    encrypted: z.boolean(),
    scope: z.enum(["build", "runtime", "both"]),
  })
  .meta({ id: "EnvVariableShown" });
export type EnvVariableShown = z.infer<typeof EnvVariableShown>;

/** Any of the create fields but the name, the kind of source and what is paid for; used from the next deployment. */
export const SiteSettings = z
  .strictObject({
    ...z.object({ ...runSettings, ...sourceSettings }).partial().shape,
    buildCommand: command.nullable().optional(),
    startCommand: command.nullable().optional(),
    releaseCommand: command.nullable().optional(),
    startTimeoutSeconds: runSettings.startTimeoutSeconds.nullable().optional(),
    rootDir: RepositoryPath.nullable().optional(),
    dockerfilePath: RepositoryPath.nullable().optional(),
    healthCheckPath: HealthCheckPath.nullable().optional(),
    branch: sourceSettings.branch.nullable().optional(),
    gitToken: sourceSettings.gitToken.nullable().optional(),
    registryUsername: registryLogin.registryUsername.nullable().optional(),
    registryPassword: registryLogin.registryPassword.nullable().optional(),
    region: Region.nullable().optional().meta({
      description:
        "Where the site is to run; null: anywhere. A site that has a host stays on it: this is asked when it is placed the next time, as when its host is drained.",
    }),
  })
  .refine((settings) => Object.keys(settings).length > 0, "name at least one setting")
  .meta({ id: "SiteSettings" });
export type SiteSettings = z.infer<typeof SiteSettings>;

/** A lower-case DNS name of at least two labels; other alphabets in their `xn--` form. */
export const DomainName = z
  .string()
  .trim()
  .toLowerCase()
  .max(253)
  .regex(
    /^(?=.*[a-z])([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    "a domain name such as www.example.com",
  );

export const DomainChange = z.union(
  [DomainName, z.strictObject({ remove: DomainName }), z.strictObject({ verify: DomainName })],
  'a domain name, {"remove": a domain name} or {"verify": a domain name}',
);
export type DomainChange = z.infer<typeof DomainChange>;

export const Domain = z
  .object({
    id: z.string(),
    domain: z.string(),
    status: z.enum(domainStatuses),
    record: z
      .object({ type: z.literal("TXT"), name: z.string(), value: z.string() })
      .describe("Proves ownership: set it, then verify."),
    target: z
      .string()
      .describe(
        "What the name itself must point at: a CNAME record, or ALIAS/A where it is the root of a zone.",
      ),
    verifiedAt: Timestamp.nullable(),
    createdAt: Timestamp,
  })
  .meta({ id: "Domain" });
export type Domain = z.infer<typeof Domain>;

/** The domain that was changed; `removed` when it is gone. */
export const DomainChanged = z.union([Domain, z.object({ domain: z.string(), removed: z.literal(true) })]);
export type DomainChanged = z.infer<typeof DomainChanged>;

export const EnvChanged = z.object({ envVariables: z.array(EnvVariableShown), restartRequired: z.boolean() });
export type EnvChanged = z.infer<typeof EnvChanged>;

/** A secret address: whoever has it can deploy. */
export const WebhookAddress = z.object({ url: z.string() }).meta({ id: "WebhookAddress" });

export const SiteRollback = z.strictObject({
  deploymentId: z
    .string()
    .max(100)
    .optional()
    .describe("A deployment that was live; default: the one before the current, moves between hosts apart."),
});
export type SiteRollback = z.infer<typeof SiteRollback>;

/** Exactly one kind of change. */
export const SitePatch = z
  .union(
    [
      z.strictObject({ action: z.enum(siteActions).exclude(["deploy"]) }),
      z.strictObject({
        action: z.literal("deploy"),
        rebuild: z
          .boolean()
          .optional()
          .describe(
            "Build even where nothing that goes into the build has changed since an image that is kept.",
          ),
      }),
      z.strictObject({ envVariables: z.array(EnvVariable).min(1).max(200) }),
      z.strictObject({
        domain: DomainChange.describe(
          'A name: add it. {"remove": name}: take it away. {"verify": name}: look for its TXT record now.',
        ),
      }),
      z.strictObject({ settings: SiteSettings }),
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
    submodules: z.boolean().describe("Git submodules, and files that Git LFS keeps, are fetched as well."),
    lfs: z.boolean(),
    port: z.number(),
    buildCommand: z.string().nullable(),
    startCommand: z.string().nullable(),
    releaseCommand: z.string().nullable(),
    startTimeoutSeconds: z.number().nullable(),
    rootDir: z.string().nullable(),
    dockerfilePath: z.string().nullable(),
    healthCheckPath: z.string().nullable(),
    replicas: z.number(),
    volumes: z.array(Volume),
    image: z.string().nullable(),
    region: z.string().nullable(),
    packId: z.string(),
    nextPackId: z
      .string()
      .nullable()
      .describe("What it is to have: when the change is paid, or from the next renewal on."),
    billingTerm: z.number(),
    url: z.string(),
    domains: z.array(Domain),
    envVariables: z.array(EnvVariableShown),
    currentDeployment: z
      .object({
        id: z.string(),
        commit: z.string().nullable(),
        finishedAt: Timestamp,
        error: z.string().nullable(),
      })
      .nullable()
      .describe(
        "The version in service, or the last one that was; `error`: why it is so no more, or was not changed as asked.",
      ),
    latestDeployment: z
      .object({ id: z.string(), status: z.enum(deploymentStatuses), error: z.string().nullable() })
      .nullable(),
    paidUntil: Timestamp.nullable(),
    hostId: z.string().nullable(),
    hostOffline: z
      .boolean()
      .describe(
        "The control plane does not hear the site's host: changes wait, and nobody knows whether the site answers.",
      ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "Site" });
export type Site = z.infer<typeof Site>;
