import {
  restartPolicies,
  SiteSettings,
  stopSignals,
  type Site,
  type SiteInFull,
} from "../../../protocol/api/sites.ts";
import type { Pack } from "../../../protocol/api/packs.ts";
import { maxReplicas, minReplicaMb } from "../../../protocol/api/volumes.ts";
import { parsed } from "../../domain/parsed.ts";
import { Button, Check, Field, Form, Select, Submit, TextArea, type Told } from "../kit/form.tsx";
import type { Fields } from "../kit/screen.ts";
import { repositoryOf } from "./repository.ts";

/** The value of a setting in a form whose field has its name; undefined: it stays as it is. */
type Read = (fields: Fields, name: string) => unknown;
type Reads = Readonly<Record<string, Read>>;
/** An emptied field goes back to what the repository or the operator says. */
const textOrNull: Read = (fields, name) => fields.text(name).trim() || null;
const numberOrNull: Read = (fields, name) => (fields.text(name) === "" ? null : Number(fields.text(name)));
const number: Read = (fields, name) => Number(fields.text(name));
const isTicked: Read = (fields, name) => fields.text(name) === "true";

const valuesOf = (fields: Fields, reads: Reads): [name: string, value: unknown][] =>
  Object.entries(reads).map(([name, read]) => [name, read(fields, name)]);

/** Settings that are saved as one: those that are empty have their defaults. */
const group =
  (reads: Reads): Read =>
  (fields) =>
    Object.fromEntries(valuesOf(fields, reads).filter(([, value]) => value !== null));

/** What a form of settings changes, by the names of the API. @throws AppError invalid_request */
const settingsFrom = (fields: Fields, reads: Reads): SiteSettings =>
  parsed(
    SiteSettings,
    Object.fromEntries(valuesOf(fields, reads).filter(([, value]) => value !== undefined)),
  );

const text = (value: string | number | null | undefined): string => String(value ?? "");

// Source

export const SourceForm = ({ site }: { site: SiteInFull }) => (
  <Form id="source">
    {site.deployType === "github" && (
      <>
        <Field
          name="githubUrl"
          label="Repository"
          value={text(site.githubUrl)}
          required
          maxlength={300}
          wide
        />
        <div class="columns">
          <Field
            name="branch"
            label="Branch"
            value={text(site.branch)}
            placeholder="the default branch"
            maxlength={200}
          />
          <Field
            name="rootDir"
            label="Folder of the app"
            value={text(site.rootDir)}
            placeholder="the repository's root"
            maxlength={300}
          />
        </div>
        <Field
          name="gitToken"
          type="password"
          label="Access token for a private repository"
          hint="Leave empty to keep it."
          maxlength={500}
          autocomplete="new-password"
        />
        <Check name="noToken" label="The repository is public: forget the token" />
        <Check name="submodules" label="Fetch Git submodules" checked={site.submodules} />
        <Check name="lfs" label="Fetch Git LFS files" checked={site.lfs} />
      </>
    )}
    {site.deployType === "image" && (
      <>
        <Field name="image" label="Image" value={text(site.image)} required maxlength={300} wide />
        <div class="columns">
          <Field
            name="registryUsername"
            label="Username at the registry"
            hint="Leave empty, with the password, to keep both."
            maxlength={256}
          />
          <Field
            name="registryPassword"
            type="password"
            label="Password or token"
            maxlength={16_384}
            autocomplete="new-password"
          />
        </div>
        <Check name="noLogin" label="The image is public: forget the login" />
      </>
    )}
    {site.deployType === "dockerfile" && (
      <TextArea
        name="dockerfile"
        label="Dockerfile"
        value={text(site.dockerfile)}
        rows={10}
        maxlength={100_000}
        required
        wide
      />
    )}
    <Submit label="Save" />
  </Form>
);

/** Empty: it stays. `forget` is the box that removes it. */
const secret =
  (forget: string): Read =>
  (fields, name) =>
    fields.text(forget) === "true" ? null : fields.text(name) || undefined;

export const readSource: Record<Site["deployType"], (fields: Fields) => SiteSettings> = {
  github: (fields) =>
    settingsFrom(fields, {
      githubUrl: (one, name) => repositoryOf(one.text(name)),
      branch: textOrNull,
      rootDir: textOrNull,
      gitToken: secret("noToken"),
      submodules: isTicked,
      lfs: isTicked,
    }),
  image: (fields) =>
    settingsFrom(fields, {
      image: (one, name) => one.text(name).trim(),
      registryUsername: secret("noLogin"),
      registryPassword: secret("noLogin"),
    }),
  dockerfile: (fields) => settingsFrom(fields, { dockerfile: (one, name) => one.text(name) }),
};

// Build

export const BuildForm = ({ site }: { site: Site }) => (
  <Form id="build">
    <div class="columns">
      <Select
        name="builder"
        label="Build with"
        value={text(site.builder)}
        options={[
          ["", "the repository's Dockerfile if it has one"],
          ["detect", "what is detected, even with a Dockerfile"],
          ["dockerfile", "the repository's Dockerfile"],
        ]}
      />
      <Field
        name="dockerfilePath"
        label="Dockerfile path"
        value={text(site.dockerfilePath)}
        placeholder="Dockerfile"
        maxlength={300}
      />
      <Field
        name="languageVersion"
        label="Language version"
        value={text(site.languageVersion)}
        placeholder="detected, such as 24 or 3.12"
        maxlength={20}
      />
    </div>
    <Field
      name="installCommand"
      label="Install command"
      value={text(site.installCommand)}
      placeholder="detected"
      maxlength={2000}
      mono
      wide
    />
    <Field
      name="buildCommand"
      label="Build command"
      value={text(site.buildCommand)}
      placeholder="detected"
      maxlength={2000}
      mono
      wide
    />
    <div class="columns">
      <Field
        name="outputDir"
        label="Folder to serve as a static site"
        value={text(site.outputDir)}
        placeholder="detected"
        maxlength={300}
      />
      <Select
        name="singlePage"
        label="Serve index.html for unknown paths"
        value={text(site.singlePage === null ? null : String(site.singlePage))}
        options={[
          ["", "detected"],
          ["true", "yes, it is a single-page app"],
          ["false", "no"],
        ]}
      />
    </div>
    <Submit label="Save" />
  </Form>
);

export const readBuild = (fields: Fields): SiteSettings =>
  settingsFrom(fields, {
    builder: textOrNull,
    dockerfilePath: textOrNull,
    languageVersion: textOrNull,
    installCommand: textOrNull,
    buildCommand: textOrNull,
    outputDir: textOrNull,
    singlePage: (one, name) => (one.text(name) === "" ? null : isTicked(one, name)),
  });

// Run

export const RunForm = ({ site }: { site: Site }) => (
  <Form id="run">
    <Field
      name="startCommand"
      label="Start command"
      value={text(site.startCommand)}
      placeholder="from the image or the repository"
      maxlength={2000}
      mono
      wide
    />
    <Field
      name="releaseCommand"
      label="Release command"
      hint="Runs once in each new version before it serves, such as a migration. If it fails, the previous version stays."
      value={text(site.releaseCommand)}
      placeholder="from the Procfile"
      maxlength={2000}
      mono
      wide
    />
    <div class="columns">
      <Field
        name="port"
        type="number"
        label="Port the app listens on"
        value={text(site.port)}
        required
        min={1}
        max={65_535}
      />
      <Field
        name="startTimeoutSeconds"
        type="number"
        label="Seconds a new version may take to answer"
        value={text(site.startTimeoutSeconds)}
        placeholder="the operator's default"
        min={1}
        max={600}
      />
      <Field
        name="keptImages"
        type="number"
        label="Versions kept for rolling back"
        hint="Including the one in service. A smaller number discards older ones immediately."
        value={text(site.keptImages)}
        required
        min={1}
        max={10}
      />
      <Field
        name="region"
        label="Region"
        hint="Applies when the site is placed next; it does not move a running site."
        value={text(site.region)}
        placeholder="any"
        maxlength={50}
      />
    </div>
    <Submit label="Save" />
  </Form>
);

export const readRun = (fields: Fields): SiteSettings =>
  settingsFrom(fields, {
    startCommand: textOrNull,
    releaseCommand: textOrNull,
    port: number,
    startTimeoutSeconds: numberOrNull,
    keptImages: number,
    region: textOrNull,
  });

const policies: Record<(typeof restartPolicies)[number], string> = {
  always: "always",
  "on-failure": "only after a failure",
  never: "never",
};

/** How many replicas a plan can hold. */
const mostOf = ({ memoryMb }: Pack): number =>
  Math.max(1, Math.min(maxReplicas, Math.floor(memoryMb / minReplicaMb)));

/** What each replica has of the plan, and how many there can be. */
export const toldReplicas = (pack: Pack | undefined): Told | undefined =>
  pack && {
    name: "replicas",
    of(value) {
      const [count, most] = [Number(value), mostOf(pack)];
      if (!Number.isInteger(count) || count < 1) return `From 1 to ${most} on the plan ${pack.name}.`;
      if (count > most)
        return most < maxReplicas ? (
          <span class="bad">
            {`${pack.name} allows at most ${most}, because each needs ${minReplicaMb} MB of memory. `}
            <a href="#plan">Choose a larger plan</a>
          </span>
        ) : (
          <span class="bad">{`There can be at most ${most}.`}</span>
        );
      const cores = Number((pack.cpuMilli / 1000 / count).toFixed(2));
      return `Each has ${Math.floor(pack.memoryMb / count)} MB of memory and ${cores} ${cores === 1 ? "core" : "cores"}. ${pack.name} allows up to ${most}.`;
    },
  };

/** What a restart can apply too. */
export const ScaleForm = ({ site, pack }: { site: Site; pack: Pack | undefined }) => (
  <Form id="scale">
    <div class="columns">
      <Field
        name="replicas"
        type="number"
        label="Replicas"
        hint="Containers that share the plan's memory and processor and balance the requests."
        value={text(site.replicas)}
        required
        min={1}
        max={pack ? mostOf(pack) : maxReplicas}
        told={toldReplicas(pack)}
      />
      <Field
        name="healthCheckPath"
        label="Health check path"
        hint="Must answer below 400. Empty: any answer to GET / is enough."
        value={text(site.healthCheckPath)}
        placeholder="/up"
        maxlength={300}
      />
      <Select
        name="kind"
        label="Checked by"
        value={text(site.healthCheck.kind)}
        options={[
          ["", "a request to the path (HTTP)"],
          ["tcp", "a connection to the port (TCP)"],
        ]}
      />
      <Field
        name="intervalSeconds"
        type="number"
        label="Seconds between checks"
        value={text(site.healthCheck.intervalSeconds)}
        placeholder="30"
        min={10}
        max={3600}
      />
      <Field
        name="timeoutSeconds"
        type="number"
        label="Seconds that a check may take"
        value={text(site.healthCheck.timeoutSeconds)}
        placeholder="5"
        min={1}
        max={30}
      />
      <Field
        name="failures"
        type="number"
        label="Failures in a row before you are told"
        value={text(site.healthCheck.failures)}
        placeholder="3"
        min={1}
        max={20}
      />
      <Select
        name="restartPolicy"
        label="Start again when it exits"
        value={text(site.lifecycle.restartPolicy)}
        options={[
          ["", "always (the default)"],
          ...restartPolicies.slice(1).map((one) => [one, policies[one]] as const),
        ]}
      />
      <Field
        name="stopTimeoutSeconds"
        type="number"
        label="Seconds to stop after the stop signal"
        value={text(site.lifecycle.stopTimeoutSeconds)}
        placeholder="10"
        min={1}
        max={120}
      />
      <Select
        name="stopSignal"
        label="Stop signal"
        value={text(site.lifecycle.stopSignal)}
        options={[["", "the image's (SIGTERM for most)"], ...stopSignals.map((one) => [one, one] as const)]}
      />
      <Field
        name="drainSeconds"
        type="number"
        label="Seconds for running requests of a replaced version"
        value={text(site.lifecycle.drainSeconds)}
        placeholder="the operator's default"
        min={1}
        max={3600}
      />
    </div>
    <p class="form-end row">
      <Button label="Save" />
      {(site.status === "RUNNING" || site.status === "STOPPED") && (
        <Button label="Save and use it now" name="apply" value="now" />
      )}
      <Button label="Try the health check now" kind="ghost" name="try" value="true" />
    </p>
  </Form>
);

export const readScale = (fields: Fields): SiteSettings =>
  settingsFrom(fields, {
    replicas: number,
    healthCheckPath: textOrNull,
    healthCheck: group({
      kind: textOrNull,
      intervalSeconds: numberOrNull,
      timeoutSeconds: numberOrNull,
      failures: numberOrNull,
    }),
    lifecycle: group({
      restartPolicy: textOrNull,
      stopTimeoutSeconds: numberOrNull,
      stopSignal: textOrNull,
      drainSeconds: numberOrNull,
    }),
  });
