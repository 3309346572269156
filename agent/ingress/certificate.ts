import { X509Certificate } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import tls from "node:tls";
import type { Certificate } from "../../protocol/agent/certificates.ts";
import type { Answer } from "../../protocol/agent/running.ts";
import { exampleOf, isWildcard } from "../../protocol/wildcards.ts";
import type { Engine } from "../docker/engine.ts";
import { label } from "../docker/labels.ts";
import { lastEntries } from "../docker/last-entries.ts";
import { loopbackOf, type IngressSettings } from "./caddy.ts";
import type { Ingress } from "./ingress.ts";
import { caddyPlace, readObtained } from "./obtained.ts";
import { askResponder } from "./routes.ts";

type Certificates = {
  engine: Pick<Engine, "inspectContainer" | "listContainers" | "readLog" | "volumes">;
  ingress: Pick<Ingress, "hostnames">;
  agentId: string;
  settings: Pick<IngressSettings, "address" | "statusPort" | "tls">;
};
export type CertificateReport = Omit<Extract<Answer, { kind: "certificate" }>, "kind">;

type Asked = { siteId: string; hostname: string; timeoutMs: number; keptUntil?: string | null | undefined };

/**
 * The certificate that the ingress serves for this name of a site. Asking for it has it obtained, or renewed where it is
 * due, because that happens when a name is met.
 */
export async function certificateOf(
  { engine, ingress, agentId, settings }: Certificates,
  { siteId, hostname, timeoutMs, keptUntil }: Asked,
  signal: AbortSignal,
): Promise<CertificateReport> {
  const isServed = ingress.hostnames(siteId).includes(hostname);
  const none = { isServed, isValid: false, certificate: null };
  if (!settings.tls) return { ...none, tls: false };
  if (!isServed) return { ...none, tls: true };
  const { port, directory } = settings.tls;
  const servername = exampleOf(hostname);
  // What visitors have asked for before is no reason to wait.
  await askResponder(settings.statusPort, `/.berth/certificate/wanted?domain=${servername}`).catch(
    () => null,
  );
  const began = new Date();
  const over = new AbortController();
  const end = AbortSignal.any([signal, over.signal, AbortSignal.timeout(timeoutMs)]);
  // A handshake lasts as long as the ingress tries: what was refused already is not waited for.
  const refused = untilRefused(() => lastRefusal(engine, agentId, hostname, began), end);
  const found = await Promise.race([presented(loopbackOf(settings.address), port, servername, end), refused]);
  over.abort();
  // The certificate may be younger than the question.
  const now = new Date();
  // Only an authority of the operator's own may be unknown here.
  const isTrusted = found !== null && (found.isTrusted || directory !== undefined);
  const x509 = found && new X509Certificate(found.der);
  const isValid =
    x509 !== null &&
    isTrusted &&
    x509.checkHost(servername) !== undefined &&
    x509.validFromDate <= now &&
    x509.validToDate > now;
  const refusal = await lastRefusal(engine, agentId, hostname, x509?.validFromDate ?? null);
  const obtained =
    isValid && keptUntil !== undefined && !isWildcard(hostname)
      ? await newlyObtained(engine, agentId, directory, hostname, keptUntil)
      : null;
  return {
    isServed,
    tls: true,
    isValid,
    ...(obtained && { obtained }),
    certificate: {
      issuer: x509 && issuerOf(x509),
      notBefore: x509?.validFromDate.toISOString() ?? null,
      notAfter: x509?.validToDate.toISOString() ?? null,
      error:
        refusal?.error ??
        (x509 && !isTrusted ? "The issuer of the certificate is not one that browsers trust." : null),
      errorAt: refusal?.at ?? null,
    },
  };
}

/** null: there is none, or none that ends later than the one that is kept elsewhere, or the agent may not read it. */
async function newlyObtained(
  engine: Certificates["engine"],
  agentId: string,
  directory: string | undefined,
  hostname: string,
  keptUntil: string | null,
): Promise<Certificate | null> {
  const place = await caddyPlace(engine, agentId, directory).catch(() => null);
  const found = place && readObtained(place, hostname);
  return found && Date.parse(found.notAfter) > Date.parse(keptUntil ?? "1970-01-01") ? found : null;
}

type Presented = { der: Buffer; isTrusted: boolean };

const logLookMs = 1000;

/** Resolves with null when a refusal is in the log, or with the signal. */
async function untilRefused(look: () => Promise<object | null>, signal: AbortSignal): Promise<null> {
  while (!signal.aborted) {
    await delay(logLookMs, undefined, { signal }).catch(() => undefined);
    if (await look().catch(() => null)) break;
  }
  return null;
}

/** null: the handshake failed, or the signal came first. */
function presented(
  host: string,
  port: number,
  servername: string,
  signal: AbortSignal,
): Promise<Presented | null> {
  return new Promise((resolve) => {
    const socket = tls.connect({ host, port, servername, rejectUnauthorized: false });
    const abort = () => settle(null);
    const settle = (found: Presented | null) => {
      signal.removeEventListener("abort", abort);
      socket.destroy();
      resolve(found);
    };
    signal.addEventListener("abort", abort, { once: true });
    socket.on("error", () => settle(null));
    socket.on("close", () => settle(null));
    socket.on("secureConnect", () =>
      settle({ der: socket.getPeerCertificate().raw, isTrusted: socket.authorized }),
    );
  });
}

/** Such as `Let's Encrypt R11`. */
function issuerOf({ issuer }: X509Certificate): string {
  const field = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(issuer)?.[1];
  const parts = [field("O"), field("CN")].filter((part) => part !== undefined);
  return (parts.length > 0 ? parts.join(" ") : issuer).slice(0, 200);
}

/** How much of the ingress's log is read; it has warnings and errors of all sites. */
const logTail = 1000;

/** Why this name last got no certificate. @param since only after this time */
async function lastRefusal(
  engine: Certificates["engine"],
  agentId: string,
  hostname: string,
  since: Date | null,
): Promise<{ error: string; at: string } | null> {
  const [container] = await engine.listContainers({ [label.ingress]: agentId });
  if (!container) return null;
  const entries = await lastEntries(engine, container.id, { tail: logTail });
  for (const { at, text } of entries.toReversed()) {
    const said = refusalIn(text, hostname);
    if (said === null) continue;
    const when = new Date(at);
    if (since && when < since) return null;
    return { error: said, at: when.toISOString() };
  }
  return null;
}

const maxErrorCharacters = 500;
/** The type of an error that the authority answered with (RFC 8555, section 6.7). */
const acmeError = /urn:ietf:params:acme:error:/;

/** A line of Caddy's log that says why no certificate was issued for the name. */
function refusalIn(line: string, hostname: string): string | null {
  if (!line.includes(hostname) || !line.startsWith("{")) return null;
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
  const { identifier, error, level, logger } = entry;
  if (identifier !== hostname || typeof error !== "string" || level !== "error") return null;
  if (typeof logger !== "string" || !logger.startsWith("tls")) return null;
  const said = `${acmeError.test(error) ? "The certificate authority says" : "The host did not get it from the certificate authority"}: ${error}`;
  return said.slice(0, maxErrorCharacters);
}
