import "reflect-metadata";
import {
  BasicConstraintsExtension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

type Account = { key: string; isDeactivated: boolean };
type Order = {
  account: Account;
  status: "pending" | "ready" | "processing" | "valid" | "invalid";
  name: string;
  token: string;
  problem?: string;
  chain?: string;
};

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const newKeys = () => crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
const decoded = (text: string) =>
  JSON.parse(Buffer.from(text, "base64url").toString()) as Record<string, unknown>;

/**
 * A certificate authority on ACME's wire format (RFC 8555) for one name by DNS-01, with a clock and faults of its own.
 * Signatures of requests are not verified: pebble does that in the tests end to end.
 */
export class AcmeAuthority {
  readonly directoryUrl = "https://acme.test/dir";
  readonly orders: Order[] = [];
  /** Requests that changed something, by their path. */
  readonly asked: string[] = [];
  now = new Date();
  lifetimeDays = 90;
  isAway = false;
  /** What a resolver of the authority finds. */
  lookUp: (name: string) => string[] = () => [];
  /** By their addresses. */
  private readonly accounts = new Map<string, Account>();
  private keys: ReturnType<typeof newKeys> | undefined;
  private nonce = 0;

  /** As after a restore of an older database. */
  loseAccounts(): void {
    this.accounts.clear();
  }
  /** As its holder does, or the authority after a misuse; their keys get no other account. */
  deactivateAccounts(): void {
    for (const account of this.accounts.values()) account.isDeactivated = true;
  }

  async fetch(request: Request): Promise<Response> {
    if (this.isAway) throw new TypeError("connection refused");
    const { pathname } = new URL(request.url);
    const at = (path: string) => new URL(path, this.directoryUrl).href;
    if (pathname === "/dir")
      return Response.json({
        newNonce: at("/nonce"),
        newAccount: at("/account"),
        newOrder: at("/order"),
        meta: { termsOfService: at("/terms") },
      });
    if (pathname === "/nonce") return this.answer({});
    const { payload, protected: header } = (await request.json()) as { payload: string; protected: string };
    const body = payload === "" ? null : decoded(payload);
    if (body) this.asked.push(pathname);
    const [, kind, text] = pathname.split("/");
    const index = Number(text);
    const order = this.orders[index];
    const { kid, jwk } = decoded(header) as { kid?: string; jwk?: object };
    if (kind === "account") return this.register(JSON.stringify(jwk), at(`/account/${++this.nonce}`));
    const account = this.accounts.get(kid ?? "");
    if (!account) return this.refuse("accountDoesNotExist", "Account could not be found", 400);
    if (account.isDeactivated) return this.refuse("unauthorized", "Account is not valid", 403);
    if (kind === "order" && body && text === undefined) {
      const [identifier] = body["identifiers"] as { value: string }[];
      const made: Order = {
        account,
        status: "pending",
        name: identifier?.value ?? "",
        token: crypto.randomUUID(),
      };
      const url = at(`/order/${this.orders.push(made) - 1}`);
      return this.answer(this.orderBody(made, url), { Location: url }, 201);
    }
    if (order?.account !== account) return this.refuse("malformed", "No such order", 404);
    if (kind === "order") return this.answer(this.orderBody(order, at(`/order/${index}`)));
    if (kind === "authz") return this.answer(this.authorizationBody(order, at(`/challenge/${index}`)));
    if (kind === "challenge") return this.validate(order, at(`/challenge/${index}`));
    if (kind === "finalize") {
      order.chain = await this.issue(String(body?.["csr"]), order.name);
      order.status = "valid";
      return this.answer(this.orderBody(order, at(`/order/${index}`)));
    }
    return this.answerText(order.chain ?? "");
  }

  /** The same key has the same account (RFC 8555, section 7.3.1). */
  private register(key: string, url: string): Response {
    const [known] = [...this.accounts].filter(([, account]) => account.key === key);
    if (known?.[1].isDeactivated) return this.refuse("unauthorized", "Account is not valid", 403);
    if (!known) this.accounts.set(url, { key, isDeactivated: false });
    return this.answer({ status: "valid" }, { Location: known?.[0] ?? url }, known ? 200 : 201);
  }

  private refuse(type: string, detail: string, status: number): Response {
    return this.answer({ type: `urn:ietf:params:acme:error:${type}`, detail }, {}, status);
  }

  private orderBody(order: Order, url: string) {
    const index = url.split("/").at(-1);
    return {
      status: order.status,
      identifiers: [{ type: "dns", value: order.name }],
      authorizations: [new URL(`/authz/${index}`, url).href],
      finalize: new URL(`/finalize/${index}`, url).href,
      ...(order.chain !== undefined && { certificate: new URL(`/certificate/${index}`, url).href }),
    };
  }

  private authorizationBody({ status, name, token, problem }: Order, url: string) {
    return {
      status: status === "invalid" ? "invalid" : status === "pending" ? "pending" : "valid",
      identifier: { type: "dns", value: name.replace(/^\*\./, "") },
      wildcard: true,
      challenges: [
        {
          type: "dns-01",
          url,
          token,
          status: "pending",
          ...(problem !== undefined && {
            error: { type: "urn:ietf:params:acme:error:dns", detail: problem },
          }),
        },
      ],
    };
  }

  private validate(order: Order, url: string): Response {
    const name = `_acme-challenge.${order.name.replace(/^\*\./, "")}`;
    const isThere = this.lookUp(name).length > 0;
    order.status = isThere ? "ready" : "invalid";
    if (!isThere) order.problem = `No TXT record found at ${name}`;
    return this.answer({ type: "dns-01", url, token: order.token, status: "processing" });
  }

  private async issue(csr: string, name: string): Promise<string> {
    const request = new Pkcs10CertificateRequest(Buffer.from(csr, "base64url"));
    const keys = await (this.keys ??= newKeys());
    if (!("privateKey" in keys)) throw new Error("Not a pair of keys");
    const certificate = await X509CertificateGenerator.create({
      serialNumber: crypto
        .randomUUID()
        .replaceAll("-", "")
        .replace(/^[89a-f]/, "1"),
      subject: "",
      issuer: "CN=Test Authority",
      notBefore: this.now,
      notAfter: new Date(this.now.getTime() + this.lifetimeDays * 86_400_000),
      publicKey: await request.publicKey.export(),
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(false),
        new SubjectAlternativeNameExtension([{ type: "dns", value: name }]),
      ],
    });
    return `${certificate.toString("pem")}\n`;
  }

  private answer(body: object, headers: Record<string, string> = {}, status = 200): Response {
    return Response.json(body, {
      status,
      headers: { "Replay-Nonce": `nonce-${++this.nonce}`, ...headers },
    });
  }

  private answerText(text: string): Response {
    return new Response(text, {
      headers: {
        "Replay-Nonce": `nonce-${++this.nonce}`,
        "Content-Type": "application/pem-certificate-chain",
      },
    });
  }
}
