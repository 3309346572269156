import {
  Client,
  StreamableHTTPClientTransport,
  type OAuthClientProvider,
} from "@modelcontextprotocol/client";
import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import type { Key } from "../../protocol/api/keys.ts";
import { bindings, call, operatorCookie, operator, siteUrl } from "./service.ts";

const local = "http://127.0.0.1:5123/callback";

async function open(path: string, decision?: "approve" | "deny", cookie?: string) {
  const response = await call(path, {
    redirect: "manual",
    headers: { Cookie: cookie ?? (await operatorCookie()), Origin: siteUrl, Accept: "text/html" },
    ...(decision && { method: "POST", body: new URLSearchParams({ decision }) }),
  });
  const refresh = response.headers.get("Refresh")?.replace(/^0; url=/, "");
  return { status: response.status, text: await response.text(), back: refresh ? new URL(refresh) : null };
}

const register = async (body: object) => {
  const response = await call("/oauth/register", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json<Record<string, string>>() };
};

const verifier = randomBytes(32).toString("base64url");
const challenge = createHash("sha256").update(verifier).digest("base64url");

async function asked(changes: Record<string, string> = {}) {
  const { body } = await register({ redirect_uris: [local], client_name: "Editor" });
  return {
    response_type: "code",
    client_id: body["client_id"] ?? "",
    redirect_uri: local,
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "a state",
    resource: `${siteUrl}/mcp`,
    ...changes,
  };
}
const pathOf = (query: Record<string, string>) => `/oauth/authorize?${new URLSearchParams(query).toString()}`;

async function approved(changes: Record<string, string> = {}) {
  const query = await asked(changes);
  const { back } = await open(pathOf(query), "approve");
  return { query, code: back?.searchParams.get("code") ?? "" };
}
async function exchange(query: Record<string, string>, code: string, changes: Record<string, string> = {}) {
  const response = await call("/oauth/token", {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: query["redirect_uri"] ?? "",
      client_id: query["client_id"] ?? "",
      code_verifier: verifier,
      resource: `${siteUrl}/mcp`,
      ...changes,
    }),
  });
  return { status: response.status, body: await response.json<Record<string, string>>() };
}
const withKey = (key: string, path: string, init: RequestInit = {}) =>
  call(path, { ...init, headers: { Authorization: `Bearer ${key}` } });

describe("a client of MCP without a key", () => {
  it("is told where to ask, registers, has the person allow it, and calls a tool: the official client", async () => {
    await operator();
    let registered: Parameters<NonNullable<OAuthClientProvider["saveClientInformation"]>>[0] | undefined;
    let tokens: Parameters<OAuthClientProvider["saveTokens"]>[0] | undefined;
    let codeVerifier = "";
    let authorization: URL | undefined;
    const authProvider: OAuthClientProvider = {
      redirectUrl: local,
      clientMetadata: { redirect_uris: [local], client_name: "Official client" },
      state: () => "some state",
      clientInformation: () => registered,
      saveClientInformation: (one) => void (registered = one),
      tokens: () => tokens,
      saveTokens: (one) => void (tokens = one),
      redirectToAuthorization: (url) => void (authorization = url),
      saveCodeVerifier: (text) => void (codeVerifier = text),
      codeVerifier: () => codeVerifier,
    };
    const paths: string[] = [];
    const transport = () =>
      new StreamableHTTPClientTransport(new URL(`${siteUrl}/mcp`), {
        authProvider,
        fetch: async (input, init) => {
          const { pathname, search } = new URL(String(input instanceof Request ? input.url : input));
          paths.push(pathname);
          return call(pathname + search, init);
        },
      });
    const client = () =>
      new Client({ name: "test", version: "1" }, { capabilities: {}, versionNegotiation: { mode: "auto" } });
    const first = transport();
    await expect(client().connect(first)).rejects.toThrow(/nauthorized/);
    expect(paths).toEqual(
      expect.arrayContaining([
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/oauth/register",
      ]),
    );
    const path = `${authorization?.pathname}${authorization?.search}`;
    const page = await open(path);
    expect([page.status, page.text]).toEqual([200, expect.stringContaining("Official client")]);
    const { back } = await open(path, "approve");
    expect(back?.origin).toBe("http://127.0.0.1:5123");
    await first.finishAuth(back?.searchParams ?? new URLSearchParams());
    const connected = client();
    await connected.connect(transport());
    const result = await connected.callTool({ name: "list_sites", arguments: {} });
    expect(result.isError ?? false).toBe(false);
    expect(tokens).toMatchObject({ token_type: "Bearer", scope: "mcp" });
  });
});

describe("the key of an allowed program", () => {
  it("is good for /mcp alone, is among the account's keys, and ends when it is revoked there", async () => {
    const { query, code } = await approved();
    const { status, body } = await exchange(query, code);
    expect(status).toBe(200);
    const key = body["access_token"] ?? "";
    expect((await withKey(key, "/api/v1/sites")).status).toBe(401);
    expect((await withKey(key, "/api/v1/packs")).status).toBe(401);
    expect((await withKey(key, "/mcp", { method: "POST" })).status).not.toBe(401);
    const listed = await call("/api/v1/keys", { headers: { Cookie: await operatorCookie() } });
    const keys = await listed.json<{ data: Key[] }>();
    const mine = keys.data.find(({ start }) => key.startsWith(start));
    expect(mine).toMatchObject({ name: "Editor", origin: "mcp" });
    const revoked = await call(`/api/v1/keys/${mine?.id}`, {
      method: "DELETE",
      headers: { Cookie: await operatorCookie(), Origin: siteUrl },
    });
    expect(revoked.status).toBe(200);
    expect((await withKey(key, "/mcp", { method: "POST" })).status).toBe(401);
  });

  it("is given once: a code that comes again is refused, and ends the key that it gave", async () => {
    const { query, code } = await approved();
    const key = (await exchange(query, code)).body["access_token"] ?? "";
    const again = await exchange(query, code);
    expect([again.status, again.body["error"]]).toEqual([400, "invalid_grant"]);
    expect((await withKey(key, "/mcp", { method: "POST" })).status).toBe(401);
    const { query: other, code: raced } = await approved();
    const both = await Promise.all([exchange(other, raced), exchange(other, raced)]);
    expect(both.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it("is not given for a forged, foreign, late or denied code", async () => {
    const { query, code } = await approved();
    const { query: stranger } = await approved({ state: "other" });
    const refused = [
      await exchange(query, `${code.slice(0, -4)}AAAA`),
      await exchange(query, query.client_id),
      await exchange(query, code, { code_verifier: randomBytes(32).toString("base64url") }),
      await exchange(query, code, { redirect_uri: "http://127.0.0.1:1/callback" }),
      await exchange(
        {
          ...stranger,
          client_id: (await register({ redirect_uris: ["https://evil.example/"] })).body["client_id"] ?? "",
        },
        code,
      ),
    ];
    for (const { status, body } of refused) expect([status, body["error"]]).toEqual([400, "invalid_grant"]);
    expect((await exchange(query, code, { resource: "https://other.example/mcp" })).body["error"]).toBe(
      "invalid_target",
    );
    expect((await exchange(query, code, { grant_type: "password" })).body["error"]).toBe(
      "unsupported_grant_type",
    );
    // None of these has used it up.
    expect((await exchange(query, code)).status).toBe(200);
    const late = await approved();
    vi.useFakeTimers({ now: Date.now() + 61_000, toFake: ["Date"] });
    try {
      expect((await exchange(late.query, late.code)).body["error"]).toBe("invalid_grant");
    } finally {
      vi.useRealTimers();
    }
    const denied = await open(pathOf(await asked()), "deny");
    expect(Object.fromEntries(denied.back?.searchParams ?? [])).toEqual({
      error: "access_denied",
      state: "a state",
      iss: siteUrl,
    });
  });

  it("is not given once the session that allowed it has ended", async () => {
    const query = await asked();
    const cookie = await operatorCookie();
    const { back } = await open(pathOf(query), "approve", cookie);
    await bindings.DB.prepare("UPDATE sessions SET expires_at = 1").run();
    const { body } = await exchange(query, back?.searchParams.get("code") ?? "");
    expect(body["error"]).toBe("invalid_grant");
  });
});

describe("a program's request to be allowed", () => {
  it("is shown to a signed-in person only, who signs in and comes back to it", async () => {
    const path = pathOf(await asked());
    const response = await call(path, { redirect: "manual", headers: { Accept: "text/html" } });
    expect(response.headers.get("Location")).toBe(`/sign-in?next=${encodeURIComponent(path)}`);
    const foreign = await call(path, {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: await operatorCookie(), Origin: "https://evil.example" },
      body: new URLSearchParams({ decision: "approve" }),
    });
    expect([foreign.status, foreign.headers.get("Refresh")]).toEqual([403, null]);
  });

  it.each([
    ["an unknown client", { client_id: "someone" }],
    ["an address that it did not register", { redirect_uri: "https://evil.example/" }],
    ["another path of its own computer", { redirect_uri: "http://127.0.0.1:5123/other" }],
    ["no challenge", { code_challenge: "" }],
    ["a plain challenge", { code_challenge_method: "plain" }],
    ["a token instead of a code", { response_type: "token" }],
    ["another resource", { resource: "https://other.example/" }],
  ])("with %s leads nowhere", async (_, changes) => {
    const path = pathOf(await asked(changes));
    for (const answer of [await open(path), await open(path, "approve")])
      expect([answer.status, answer.back]).toEqual([400, null]);
  });

  it("may come from any port of the person's own computer", async () => {
    const { query, code } = await approved({ redirect_uri: "http://127.0.0.1:60999/callback" });
    expect((await exchange(query, code)).status).toBe(200);
  });

  it.each([
    ["javascript:alert(1)"],
    ["data:text/html,hello"],
    ["http://example.com/callback"],
    ["https://user:password@example.com/"],
    ["https://example.com/#part"],
    ["no address"],
  ])("is not made by a client that registers %s", async (uri) => {
    const { status, body } = await register({ redirect_uris: [uri] });
    expect([status, body["error"]]).toEqual([400, "invalid_redirect_uri"]);
  });

  it("shows the name of the program as text, whatever it is", async () => {
    const name = "<script>alert(1)</script>";
    const { body } = await register({ redirect_uris: ["cursor://app/callback"], client_name: name });
    const { text } = await open(
      pathOf(await asked({ client_id: body["client_id"] ?? "", redirect_uri: "cursor://app/callback" })),
    );
    expect(text).not.toContain(name);
    expect(text).toContain("&lt;script&gt;");
  });
});

describe("a client of MCP without a browser", () => {
  const post = async (path: string, fields: Record<string, string>) => {
    const response = await call(path, { method: "POST", body: new URLSearchParams(fields) });
    return { status: response.status, body: await response.json<Record<string, string>>() };
  };
  const started = async (name = "Headless") => {
    const { body: client } = await register({ redirect_uris: [local], client_name: name });
    const clientId = client["client_id"] ?? "";
    const { status, body } = await post("/oauth/device", { client_id: clientId, scope: "mcp" });
    expect([status, body]).toMatchObject([200, { verification_uri: `${siteUrl}/device`, interval: 2 }]);
    return { clientId, deviceCode: body["device_code"] ?? "", userCode: body["user_code"] ?? "" };
  };
  const collect = (clientId: string, deviceCode: string) =>
    post("/oauth/token", {
      grant_type: "urn:ietf:params:oauth:grant-type:device_code",
      client_id: clientId,
      device_code: deviceCode,
    });
  const decide = async (userCode: string, decision: string) =>
    call("/device", {
      method: "POST",
      headers: { Cookie: await operatorCookie(), Origin: siteUrl },
      body: new URLSearchParams({ code: userCode, decision }),
    });

  it("finds where to ask, shows a code, and gets a key for /mcp alone once a person has approved it (RFC 8628)", async () => {
    await operator();
    const metadata = await call("/.well-known/oauth-authorization-server");
    expect(await metadata.json()).toMatchObject({
      device_authorization_endpoint: `${siteUrl}/oauth/device`,
      grant_types_supported: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
    });
    const { clientId, deviceCode, userCode } = await started();
    const waiting = await collect(clientId, deviceCode);
    expect([waiting.status, waiting.body["error"]]).toEqual([400, "authorization_pending"]);
    const page = await open(`/device?code=${userCode}`);
    expect(page.text).toContain("Headless");
    expect(page.text).toContain("use the assistant&#39;s tools");
    expect((await decide(userCode, "approve")).status).toBe(200);
    const { status, body } = await collect(clientId, deviceCode);
    expect([status, body]).toMatchObject([200, { token_type: "Bearer", scope: "mcp" }]);
    const key = body["access_token"] ?? "";
    expect((await withKey(key, "/api/v1/sites")).status).toBe(401);
    expect((await withKey(key, "/mcp", { method: "POST" })).status).not.toBe(401);
    expect((await collect(clientId, deviceCode)).body["error"]).toBe("invalid_grant");
  });

  it("gets nothing when it was denied, is unknown, or the code is another's or of the command line", async () => {
    const { clientId, deviceCode, userCode } = await started();
    const other = await started("Another");
    expect((await collect(other.clientId, deviceCode)).body["error"]).toBe("invalid_grant");
    expect((await call(`/api/v1/auth/device-poll?code=${deviceCode}`)).status).toBe(404);
    await decide(userCode, "deny");
    expect((await collect(clientId, deviceCode)).body["error"]).toBe("invalid_grant");
    expect((await collect(clientId, "dev_nonsense")).body["error"]).toBe("invalid_grant");
    const commandLine = await call("/api/v1/auth/device", { method: "POST" });
    const { device_code: foreign } = await commandLine.json<{ device_code: string }>();
    expect((await collect(clientId, foreign)).body["error"]).toBe("invalid_grant");
    expect((await post("/oauth/device", { client_id: "someone" })).body["error"]).toBe("invalid_client");
    expect(
      (await post("/oauth/device", { client_id: clientId, resource: "https://other.example/mcp" })).body[
        "error"
      ],
    ).toBe("invalid_target");
  });

  it("is told to slow down where it polls more than sixty times a minute", async () => {
    const { clientId, deviceCode } = await started();
    const polls = await Promise.all(Array.from({ length: 70 }, () => collect(clientId, deviceCode)));
    expect(polls.filter(({ body }) => body["error"] === "authorization_pending")).toHaveLength(60);
    expect(polls.filter(({ body }) => body["error"] === "slow_down")).toHaveLength(10);
  });
});
