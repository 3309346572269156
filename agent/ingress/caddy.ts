/**
 * How long Caddy may answer from an earlier look-up. It looks up one name at a time, all other sites' requests waiting, so not
 * often; what a swap replaces serves until then.
 */
export const refreshMs = 50;

/** How certificates are had: of Let's Encrypt, or of another ACME directory (RFC 8555). */
export type TlsSettings = {
  port: number;
  directory?: string | undefined;
  email?: string | undefined;
  /** Certificates, as PEM, that the directory's own is checked with. */
  caPem?: string | undefined;
};
/** `tls` null: plain HTTP only, where something in front of the host ends TLS, or on one's own machine. */
export type IngressSettings = {
  address: string;
  port: number;
  responderPort: number;
  /** The responder's too: for its pages, and what else Caddy asks of it. */
  statusPort: number;
  tls: TlsSettings | null;
};

/** Where the container keeps `caPem`. */
export const acmeCaFile = "/tmp/acme-ca.pem";

/** Of a request, and of an answer. In Caddy's memory, thousands of short headers are thirty times as long. */
const maxHeaderBytes = 32 * 1024;
/** Requests that one container is asked at once: each takes Caddy's memory as long as it lasts. */
export const maxRequests = 1000;

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

/**
 * What proxies and CDNs tell an app of its visitor, and frameworks believe (Caddy's wildcards). A visitor could write each of
 * them himself, also with underscores, which CGI and those who name headers like it take for hyphens.
 */
export const proxyHeaders = [
  "*_*",
  "Forwarded*",
  "X-Forwarded*",
  "X-Forward-*",
  "X-Original-*",
  "X-Rewrite-*",
  "X-Real-*",
  "X-Remote-*",
  "Remote-*",
  "X-Host",
  "X-Http-Host-Override",
  "X-Scheme",
  "X-Url-Scheme",
  "Front-End-Https",
  "*Client-Ip",
  "*ClientIp",
  "*Connecting-Ip",
  "*Connection-Ip",
  "*User-Ip",
  "*UserIp",
  "*Real-Ip",
  "*Src-Ip",
  "*Originating-Ip",
  "Coming-From",
  "X-Coming-From",
  "Cf-Connecting-*",
  "Cf-Pseudo-*",
  "Cf-Visitor",
  "Cloudfront-Forwarded-*",
  "Cloudfront-Viewer-Address",
  "Fastly-*",
  "Fly-*",
  "X-Appengine-*",
  "X-Arr-*",
  "X-Azure-*",
  "X-Envoy-*",
  "X-Vercel-*",
  "*Client-Cert*",
  "*ClientCert*",
  "X-Ssl-*",
  // CGI's HTTP_PROXY, by which programs choose where they ask (httpoxy).
  "Proxy",
  "Http2-Settings",
];

/**
 * What stays open for hours has a bound of its own: a site with many of them takes requests all the same. Over HTTP/2 and
 * HTTP/3 a WebSocket begins with CONNECT (RFC 8441, RFC 9220).
 */
const webSockets = [
  { header_regexp: { Upgrade: { pattern: "(?i)websocket" } } },
  { method: ["CONNECT"], protocol: "http/2+" },
];

/**
 * Caddy's whole configuration. Static: which container serves a name is asked for, so nothing is ever reloaded.
 * @param maxWebSockets to one container
 */
export function caddyConfig(settings: IngressSettings, maxWebSockets: number): object {
  const { address, port, tls } = settings;
  const common = {
    automatic_https: { disable: true },
    read_header_timeout: "15s",
    max_header_bytes: maxHeaderBytes,
    errors: { routes: unmet(settings, maxWebSockets) },
  };
  const routes = [
    { handle: [{ handler: "headers", request: { delete: proxyHeaders } }] },
    {
      // HTTP/2 in the clear would be passed on as bytes, with whatever headers the visitor writes.
      match: [{ header_regexp: { Upgrade: { pattern: "(?i)h2c" } } }],
      handle: [{ handler: "headers", request: { delete: ["Upgrade"] } }],
    },
    {
      // Other names would be looked up in vain.
      match: [
        {
          header_regexp: { Host: { pattern: `^(?:${label}\\.)*${label}(?::[0-9]+)?$` } },
          // So that `.up.internal` fits behind it in a DNS name.
          not: [{ header_regexp: { Host: { pattern: "^[^:]{231,}" } } }],
        },
      ],
      handle: [
        {
          handler: "subroute",
          routes: byKind(settings, maxWebSockets, { suffixes: ["up", "ws"], freshMs: refreshMs }),
        },
      ],
    },
    { handle: [{ handler: "static_response", status_code: 400, body: "Not a host name\n" }] },
  ];
  return {
    admin: { disabled: true, config: { persist: false } },
    logging: { logs: { default: { level: "WARN" } } },
    apps: {
      http: {
        grace_period: "10s",
        servers: {
          sites: {
            ...common,
            listen: [`${address}:${port}`],
            protocols: ["h1"],
            routes: tls ? [toHttps(tls)] : routes,
          },
          ...(tls && {
            secure: {
              ...common,
              listen: [`${address}:${tls.port}`],
              // HTTP/3 takes the same port of UDP. Where a firewall closes it, browsers stay with HTTP/2.
              protocols: ["h1", "h2", "h3"],
              tls_connection_policies: [{}],
              routes,
            },
          }),
        },
      },
      ...(tls && { tls: certificates(settings, tls) }),
    },
  };
}

/** Caddy counts by a container's name: for WebSockets the responder gives another one. */
const byKind = (
  settings: IngressSettings,
  maxWebSockets: number,
  { suffixes: [plain, upgraded], ...how }: { suffixes: [string, string]; freshMs: number; retries?: number },
) => [
  {
    match: webSockets,
    handle: [proxy(settings, { ...how, suffix: upgraded, most: maxWebSockets })],
    terminal: true,
  },
  { handle: [proxy(settings, { ...how, suffix: plain, most: maxRequests })] },
];

/** To the containers that the responder names for `<host>.<suffix>.internal`, or to the responder itself. */
function proxy(
  { responderPort }: IngressSettings,
  { suffix, freshMs, most, retries }: { suffix: string; freshMs: number; most: number; retries?: number },
) {
  const resolver = { addresses: [`udp/127.0.0.1:${responderPort}`] };
  return {
    handler: "reverse_proxy",
    dynamic_upstreams: {
      source: "srv",
      name: `{http.request.host}.${suffix}.internal`,
      refresh: `${freshMs}ms`,
      resolver,
    },
    // Idle for less than what common servers keep, so that no request meets a closing connection.
    transport: {
      protocol: "http",
      resolver,
      dial_timeout: "2s",
      keep_alive: { idle_timeout: "1500ms" },
      max_response_header_size: maxHeaderBytes,
    },
    // Nothing counts as a failure.
    health_checks: { passive: { unhealthy_request_count: most } },
    // At once. With -1, the requests of visitors who have gone would count until the app answers, if it ever does.
    flush_interval: -2,
    ...(retries !== undefined && { load_balancing: { retries, try_interval: "50ms" } }),
    // Beside X-Forwarded-For, -Host and -Proto, which Caddy sets.
    headers: { request: { set: { "X-Real-Ip": ["{http.request.remote.host}"] } } },
  };
}

/** What came to no connection reached no app; of what reached one, only a GET may be sent again. */
const mayBeSentAgain = [
  { vars_regexp: { "{http.error.message}": { pattern: "^(dial |no upstreams available)" } } },
  { method: ["GET"], not: [{ vars_regexp: { "{http.error.message}": { pattern: "headers exceeded" } } }] },
];

/** A request that met nobody waits at the responder until its site is there again, and is sent once more. */
function unmet(settings: IngressSettings, maxWebSockets: number): object[] {
  const again = byKind(settings, maxWebSockets, { suffixes: ["re", "wr"], freshMs: 10, retries: 3 });
  return [
    {
      match: mayBeSentAgain,
      handle: [
        {
          handler: "reverse_proxy",
          upstreams: [{ dial: `127.0.0.1:${settings.statusPort}` }],
          rewrite: { method: "GET", uri: "/.berth/wait?name={http.request.host}" },
          // All of them: a visitor's may be longer than the responder reads, and want another protocol.
          headers: { request: { delete: ["**"] } },
          transport: { protocol: "http", dial_timeout: "1s", response_header_timeout: "5s" },
          // The responder itself may be starting.
          load_balancing: { try_duration: "3s", try_interval: "100ms" },
          handle_response: [{ match: { status_code: [204] }, routes: again }],
        },
      ],
      terminal: true,
    },
    { handle: [{ handler: "static_response", status_code: "{http.error.status_code}" }] },
  ];
}

/** Methods and bodies stay as they are (RFC 9110, 15.4.9). Challenges of ACME are answered before any route. */
const toHttps = ({ port }: TlsSettings) => ({
  handle: [
    {
      handler: "static_response",
      status_code: 308,
      headers: {
        Location: [`https://{http.request.host}${port === 443 ? "" : `:${port}`}{http.request.uri}`],
      },
    },
  ],
});

/** A certificate is asked for when a name is first met that is served here, and renewed without the agent. */
const certificates = ({ port: httpPort, statusPort }: IngressSettings, tls: TlsSettings) => ({
  automation: {
    policies: [
      {
        on_demand: true,
        issuers: [
          {
            module: "acme",
            challenges: { http: { alternate_port: httpPort }, "tls-alpn": { alternate_port: tls.port } },
            ...(tls.directory !== undefined && { ca: tls.directory }),
            ...(tls.email !== undefined && { email: tls.email }),
            ...(tls.caPem !== undefined && { trusted_roots_pem_files: [acmeCaFile] }),
          },
        ],
      },
    ],
    on_demand: {
      permission: { module: "http", endpoint: `http://127.0.0.1:${statusPort}/.berth/certificate` },
    },
  },
});
