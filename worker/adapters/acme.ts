import * as z from "zod";
import { jsonIn } from "../../protocol/json.ts";

/** A certificate authority by ACME (RFC 8555). Each method is one step that may be repeated. */
export type Acme = {
  /** A private key (P-256) of an account or a certificate: PKCS #8 as PEM. */
  newKey(): Promise<string>;
  /** @returns the account's address; the same for the same key */
  register(accountKey: string, email: string | undefined): Promise<string>;
  /** Orders a certificate for one name, which is proven by a TXT record. */
  order(account: AcmeAccount, name: string): Promise<AcmeOrder>;
  /** Tells the authority that the record is there. */
  answer(account: AcmeAccount, order: AcmeOrder): Promise<void>;
  state(account: AcmeAccount, order: AcmeOrder): Promise<OrderState>;
  /** Requests the certificate for this key. */
  finalize(account: AcmeAccount, order: AcmeOrder, name: string, key: string): Promise<void>;
  download(account: AcmeAccount, order: AcmeOrder): Promise<IssuedCertificate>;
};
export type AcmeAccount = { url: string; key: string };
export type AcmeOrder = { orderUrl: string; challengeUrl: string; challengeValue: string };
type OrderState = {
  status: "pending" | "ready" | "processing" | "valid" | "invalid";
  /** Why the authority did not accept the proof. */
  reason: string | null;
};
/** `chain`: the certificate and its issuers, as PEM. */
type IssuedCertificate = { chain: string; issuer: string; notBefore: Date; notAfter: Date };

/** One sentence for the operator. `refused`: the authority rejects this order, so a new one is needed. */
export class AcmeError extends Error {
  readonly refused: boolean;
  constructor(message: string, refused: boolean, options?: ErrorOptions) {
    super(message, options);
    this.refused = refused;
  }
}

/** The authority has no such account any more, or accepts nothing of it: another one must be registered, with a new key. */
export class AccountGoneError extends AcmeError {
  readonly accountUrl: string;
  constructor(message: string, accountUrl: string) {
    super(message, true);
    this.accountUrl = accountUrl;
  }
}

const Directory = z.object({ newNonce: z.url(), newAccount: z.url(), newOrder: z.url() });
const Problem = z.object({ type: z.string().default(""), detail: z.string().default("") });
const Order = z.object({
  status: z.enum(["pending", "ready", "processing", "valid", "invalid"]),
  authorizations: z.array(z.url()).min(1),
  finalize: z.url(),
  certificate: z.url().optional(),
  error: Problem.optional(),
});
const Authorization = z.object({
  challenges: z.array(
    z.object({ type: z.string(), url: z.url(), token: z.string().optional(), error: Problem.optional() }),
  ),
});

const answerWithinMs = 15_000;
/** A nonce may have expired (RFC 8555, section 6.5). */
const maxAttempts = 3;

/** Both are loaded at the first certificate. */
const jose = () => import("jose");
async function x509() {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

type Answer = { status: number; headers: Headers; text: string };

async function send(url: string, init: RequestInit): Promise<Answer> {
  let answer: Answer;
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(answerWithinMs) });
    // `text()` warns of media types such as that of a certificate.
    const text = new TextDecoder().decode(await response.arrayBuffer());
    answer = { status: response.status, headers: response.headers, text };
  } catch (error) {
    throw new AcmeError(`The certificate authority at ${new URL(url).host} could not be reached.`, false, {
      cause: error,
    });
  }
  if (answer.status === 429 || answer.status >= 500)
    throw new AcmeError(`The certificate authority answered ${answer.status}${detailOf(answer)}.`, false);
  return answer;
}

const problemOf = ({ text }: Answer) => Problem.safeParse(jsonIn(text)).data;

function detailOf(answer: Answer): string {
  const detail = problemOf(answer)?.detail.slice(0, 300).replace(/\.$/, "");
  return detail ? `: ${detail}` : "";
}

/** @throws AcmeError if it is not such an object */
function parsed<T>(schema: z.ZodType<T>, { text }: Answer): T {
  const result = schema.safeParse(jsonIn(text));
  if (!result.success)
    throw new AcmeError("The certificate authority does not answer as ACME requires.", false);
  return result.data;
}

/** @param directoryUrl such as Let's Encrypt's, https://acme-v02.api.letsencrypt.org/directory */
export function acmeAuthority(directoryUrl: string): Acme {
  let directory: Promise<z.infer<typeof Directory>> | undefined;
  const directoryOnce = () =>
    (directory ??= send(directoryUrl, {}).then((answer) => parsed(Directory, answer))).catch((error) => {
      directory = undefined;
      throw error;
    });

  /** A signed request (RFC 8555, section 6.2). `body` undefined: reads the resource. @throws AcmeError */
  async function post(url: string, key: string, accountUrl: string | null, body?: object): Promise<Answer> {
    const { FlattenedSign, importPKCS8, exportJWK } = await jose();
    const signer = await importPKCS8(key, "ES256", { extractable: true });
    const by = accountUrl === null ? { jwk: publicPart(await exportJWK(signer)) } : { kid: accountUrl };
    const payload = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body));
    const { newNonce, newOrder } = await directoryOnce();
    for (let attempt = 1; ; attempt++) {
      const nonce = (await send(newNonce, { method: "HEAD" })).headers.get("Replay-Nonce") ?? "";
      const signed = await new FlattenedSign(payload)
        .setProtectedHeader({ alg: "ES256", nonce, url, ...by })
        .sign(signer);
      const answer = await send(url, {
        method: "POST",
        headers: { "Content-Type": "application/jose+json" },
        body: JSON.stringify(signed),
      });
      if (answer.status < 400) return answer;
      const type = problemOf(answer)?.type.split(":").at(-1);
      if (type === "badNonce" && attempt < maxAttempts) continue;
      const message = `The certificate authority refuses (${answer.status})${detailOf(answer)}.`;
      const isGone = type === "accountDoesNotExist" || (type === "unauthorized" && url === newOrder);
      throw isGone && accountUrl !== null
        ? new AccountGoneError(message, accountUrl)
        : new AcmeError(message, true);
    }
  }

  const read = async ({ key, url }: AcmeAccount, { orderUrl }: AcmeOrder) =>
    parsed(Order, await post(orderUrl, key, url));

  return {
    async newKey() {
      const { generateKeyPair, exportPKCS8 } = await jose();
      return exportPKCS8((await generateKeyPair("ES256", { extractable: true })).privateKey);
    },

    async register(accountKey, email) {
      const { newAccount } = await directoryOnce();
      const answer = await post(newAccount, accountKey, null, {
        termsOfServiceAgreed: true,
        ...(email !== undefined && { contact: [`mailto:${email}`] }),
      });
      return locationOf(answer);
    },

    async order({ key, url }, name) {
      const { newOrder } = await directoryOnce();
      const identifiers = [{ type: "dns", value: name }];
      const answer = await post(newOrder, key, url, { identifiers });
      const [authorizationUrl = ""] = parsed(Order, answer).authorizations;
      const { challenges } = parsed(Authorization, await post(authorizationUrl, key, url));
      const challenge = challenges.find(({ type }) => type === "dns-01");
      if (challenge?.token === undefined)
        throw new AcmeError(`The certificate authority offers no proof by DNS for ${name}.`, true);
      return {
        orderUrl: locationOf(answer),
        challengeUrl: challenge.url,
        challengeValue: await challengeValue(challenge.token, key),
      };
    },

    async answer({ key, url }, { challengeUrl }) {
      await post(challengeUrl, key, url, {});
    },

    async state(account, order) {
      const { status, authorizations, error } = await read(account, order);
      if (status !== "invalid") return { status, reason: null };
      const proofs = await Promise.all(
        authorizations.map(async (one) => parsed(Authorization, await post(one, account.key, account.url))),
      );
      const reasons = proofs.flatMap(({ challenges }) =>
        challenges.flatMap((one) => one.error?.detail || []),
      );
      return { status, reason: reasons.join("; ") || error?.detail || null };
    },

    async finalize(account, order, name, key) {
      const { finalize } = await read(account, order);
      const csr = Buffer.from(await certificateRequest(name, key)).toString("base64url");
      await post(finalize, account.key, account.url, { csr });
    },

    async download(account, order) {
      const { certificate } = await read(account, order);
      if (certificate === undefined)
        throw new AcmeError("The certificate authority names no certificate for a valid order.", true);
      const { text: chain } = await post(certificate, account.key, account.url);
      const { X509Certificate, PemConverter } = await x509();
      const [leaf] = PemConverter.decode(chain);
      if (!leaf) throw new AcmeError("The certificate authority sent no certificate.", false);
      const { issuerName, notBefore, notAfter } = new X509Certificate(leaf);
      return { chain, issuer: issuerName.getField("CN")[0] ?? issuerName.toString(), notBefore, notAfter };
    },
  };
}

function locationOf({ headers }: Answer): string {
  const location = headers.get("Location");
  if (location === null)
    throw new AcmeError("The certificate authority does not answer as ACME requires.", false);
  return location;
}

const publicPart = ({ kty, crv, x, y }: { kty?: string; crv?: string; x?: string; y?: string }) => ({
  kty: kty ?? "",
  crv: crv ?? "",
  x: x ?? "",
  y: y ?? "",
});

/** The contents of the TXT record: the hash of token and key (RFC 8555, section 8.4; RFC 7638). */
async function challengeValue(token: string, accountKey: string): Promise<string> {
  const { calculateJwkThumbprint, exportJWK, importPKCS8 } = await jose();
  const jwk = publicPart(await exportJWK(await importPKCS8(accountKey, "ES256", { extractable: true })));
  const text = `${token}.${await calculateJwkThumbprint(jwk)}`;
  return Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))).toString(
    "base64url",
  );
}

/** A certificate request for one name (PKCS #10, RFC 2986), in DER. */
async function certificateRequest(name: string, key: string): Promise<ArrayBuffer> {
  const { PemConverter, Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } = await x509();
  const { exportJWK, importPKCS8 } = await jose();
  const curve = { name: "ECDSA", namedCurve: "P-256" };
  const [pkcs8 = new ArrayBuffer(0)] = PemConverter.decode(key);
  const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, curve, true, ["sign"]);
  const jwk = publicPart(await exportJWK(await importPKCS8(key, "ES256", { extractable: true })));
  const publicKey = await crypto.subtle.importKey("jwk", jwk, curve, true, ["verify"]);
  const request = await Pkcs10CertificateRequestGenerator.create({
    keys: { privateKey, publicKey },
    signingAlgorithm: { ...curve, hash: "SHA-256" },
    extensions: [new SubjectAlternativeNameExtension([{ type: "dns", value: name }])],
  });
  return request.rawData;
}
