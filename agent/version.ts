import packageJson from "../package.json" with { type: "json" };

export const agentVersion: string = packageJson.version;

/** Tells programs of one version apart, as Semantic Versioning's build metadata (§10). */
export const versionOfProgram = (sha256: string): string => `${agentVersion}+${sha256.slice(0, 8)}`;
