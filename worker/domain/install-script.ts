import * as z from "zod";

/** The description of the bundled files by scripts/lib/bundle.ts. */
export const HostPrograms = z.object({
  agentVersion: z.string().min(1).max(50),
  agentSha256: z.string().regex(/^[0-9a-f]{64}$/),
  responderSha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type HostPrograms = z.infer<typeof HostPrograms>;

/** The install script for this installation. The address is an origin, so it contains no shell metacharacters. */
export const installScript = (template: string, siteUrl: string, programs: HostPrograms): string =>
  template
    .replaceAll("@SITE_URL@", siteUrl)
    .replaceAll("@AGENT_SHA256@", programs.agentSha256)
    .replaceAll("@RESPONDER_SHA256@", programs.responderSha256);

/** The token is passed in the environment so that process lists do not show it. */
export const installCommand = (siteUrl: string, token: string): string =>
  `curl -fsSL ${siteUrl}/install | BERTH_TOKEN=${token} sh`;

/** The description of the bundled command line program by scripts/lib/bundle.ts. */
export const CliProgram = z.object({
  version: z.string().min(1).max(50),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type CliProgram = z.infer<typeof CliProgram>;

/** The script that installs the command line program of this installation. */
export const cliInstallScript = (template: string, siteUrl: string, { sha256 }: CliProgram): string =>
  template.replaceAll("@SITE_URL@", siteUrl).replaceAll("@CLI_SHA256@", sha256);
