import * as z from "zod";

/** What scripts/lib/bundle.ts says of the files beside the Worker. */
export const HostPrograms = z.object({
  agentVersion: z.string().min(1).max(50),
  agentSha256: z.string().regex(/^[0-9a-f]{64}$/),
  responderSha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type HostPrograms = z.infer<typeof HostPrograms>;

/** The script for this installation. The address is an origin, so it has no character that a shell knows. */
export const installScript = (template: string, siteUrl: string, programs: HostPrograms): string =>
  template
    .replaceAll("@SITE_URL@", siteUrl)
    .replaceAll("@AGENT_SHA256@", programs.agentSha256)
    .replaceAll("@RESPONDER_SHA256@", programs.responderSha256);

/** In the environment, so that no list of processes shows the token. */
export const installCommand = (siteUrl: string, token: string): string =>
  `curl -fsSL ${siteUrl}/install | BERTH_TOKEN=${token} sh`;
