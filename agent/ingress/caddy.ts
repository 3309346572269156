import { bodyLimitsMb, maxResponseHeaders } from "../../protocol/api/ingress.ts";
import { accessLogging, logged, noted } from "./access-log.ts";
import { peersAddress } from "./hop.ts";
import { dottedHostPattern, hostPattern, maxHostLength, notHostNameText } from "./host-name.ts";

/**
 * How long Caddy may answer from an earlier look-up. It looks up one name at a time, all other sites' requests waiting, so not
 * often; what a swap replaces serves until then.
 */
export const refreshMs = 50;

/** How certificates are had: of Let's Encrypt, or of another ACME directory (RFC 8555). */
type TlsSettings = {
  port: number;
  directory?: string | undefined;
  email?: string | undefined;
  /** Certificates, as PEM, that the directory's own is checked with. */
  caPem?: string | undefined;
  /** Part of the address at which the responder hands out certificates that the control plane sent. */
  addressKey?: string | undefined;
};
/** `tls` null: plain HTTP only, where something in front of the host ends TLS, or on one's own machine. */
export type IngressSettings = {
  address: string;
  port: number;
  responderPort: number;
  /** The responder's too: for its pages, and what else Caddy asks of it. */
  statusPort: number;
  tls: TlsSettings | null;
  /** Networks of proxies that are believed what they say of a visitor's address and protocol. */
  trustedProxies?: readonly string[] | undefined;
};

/** Of the page that says that there is no such site. */
export const unknownHeader = "Berth-Unknown";

/** Where Caddy asks for decisions about sites with rules, on the port number of the responder's pages. */
export const rulesAddress = "127.0.0.2";

/** Where the container keeps `caPem`. */
export const acmeCaFile = "/tmp/acme-ca.pem";

/** Of a request, and of an answer. In Caddy's memory, thousands of short headers are thirty times as long. */
const maxHeaderBytes = 32 * 1024;
/** Requests that one container is asked at once: each takes Caddy's memory as long as it lasts. */
export const maxRequests = 1000;

const tooLong = { header_regexp: { Host: { pattern: `^[^:]{${maxHostLength + 1},}` } } };

/**
 * No host name (`isHostName`, in the responder): Caddy does not look up most of these, and what it does look up leads to the responder's
 * page. Asked only once a request has met nobody, as a regular expression for each request costs as much as the rest of its way here.
 */
const notHostName = {
  match: [{ not: [{ header_regexp: { Host: { pattern: hostPattern } } }] }, tooLong],
  handle: [{ handler: "static_response", status_code: 400, body: notHostNameText }],
  terminal: true,
};

/** DNS's own way to write a name (RFC 1034, section 3.1). The name without the dot is that of the certificate, of cookies and of the site. */
const dotAtEnd = {
  match: [{ header_regexp: { Host: { name: "dotted", pattern: dottedHostPattern } }, not: [tooLong] }],
  handle: [
    {
      handler: "static_response",
      status_code: 308,
      headers: {
        Location: ["//{http.regexp.dotted.1}{http.regexp.dotted.2}{http.request.orig_uri}"],
      },
    },
  ],
  terminal: true,
};

/**
 * What proxies and CDNs tell an app of its visitor, and frameworks believe (Caddy's wildcards). A visitor could write each of
 * them himself, also with underscores, which CGI and those who name headers like it take for hyphens. In lower case, as Caddy
 * compares them, and few: it goes through all headers of a request for each wildcard, which is a sixth of its work for one.
 */
const proxyHeaders = [
  "*_*",
  "*forward*",
  "x-original-*",
  "x-rewrite-*",
  "x-real-*",
  "*remote-*",
  // Whatever says that it is an address: client-ip, cf-connecting-ip, x-originating-ip and their like.
  "*-ip",
  "x-envoy-*",
  "*cert*",
  "x-ssl-*",
  // Caddy itself says that a body may come: asked for one once more, it takes the connection's end for a failure and loses a refusal.
  "expect",
];

/** Such headers of one maker's own, as Go writes names. They are looked for all at once, as hardly any request has one of them. */
export const namedProxyHeaders = [
  "Clientip X-Clientip Userip X-Userip X-Proxyuserip Coming-From X-Coming-From Front-End-Https",
  "X-Host X-Http-Host-Override X-Scheme X-Url-Scheme",
  // CGI's HTTP_PROXY, by which programs choose where they ask (httpoxy).
  "Proxy Http2-Settings",
  "Cf-Connecting-Ipv6 Cf-Connecting-O2o Cf-Pseudo-Ipv4 Cf-Pseudo-Ipv6 Cf-Visitor Cloudfront-Viewer-Address",
  "Fastly-Ssl Fastly-Ff Fastly-Client Fastly-Orig-Host Fly-Region Fly-Tls-Version Fly-Request-Id",
  "X-Appengine-Country X-Appengine-Region X-Appengine-City X-Appengine-Citylatlong X-Appengine-Https",
  "X-Appengine-Cron X-Appengine-Queuename X-Appengine-Taskname X-Appengine-Inbound-Appid",
  "X-Appengine-User-Email X-Appengine-User-Id X-Appengine-User-Nickname X-Appengine-User-Is-Admin",
  "X-Arr-Ssl X-Arr-Log-Id X-Azure-Clientip X-Azure-Socketip X-Azure-Fdid X-Azure-Ref X-Azure-Requestchain",
  "X-Vercel-Id X-Vercel-Ip-Country X-Vercel-Ip-Country-Region X-Vercel-Ip-City X-Vercel-Ip-Continent",
  "X-Vercel-Ip-Latitude X-Vercel-Ip-Longitude X-Vercel-Ip-Timezone X-Vercel-Ip-As-Number",
].flatMap((line) => line.split(" "));

/** null: it must not be there. */
const hasNamedProxyHeader = [
  { not: [{ header: Object.fromEntries(namedProxyHeaders.map((name) => [name, null])) }] },
];

/**
 * What stays open for hours has a bound of its own: a site with many of them takes requests all the same. Over HTTP/2 and
 * HTTP/3 a WebSocket begins with CONNECT (RFC 8441, RFC 9220).
 */
const webSockets = [
  { header_regexp: { Upgrade: { pattern: "(?i)websocket" } } },
  { method: ["CONNECT"], protocol: "http/2+" },
];

/** gRPC, which is HTTP/2 all the way to the app: no app answers it by HTTP/1.1, as it does gRPC-Web. Its streams stay open for hours too. */
const remoteCalls = [
  {
    protocol: "http/2+",
    header: { "Content-Type": ["application/grpc", "application/grpc+*", "application/grpc;*"] },
  },
];

/** What asks for another protocol over its connection (RFC 9110, section 7.8). */
const upgrading = { header: { Upgrade: ["*"] }, header_regexp: { Connection: { pattern: "(?i)upgrade" } } };
/**
 * Caddy removes what a visitor names in Connection (RFC 9110, section 7.6.1) also where it has said that itself by then, such as
 * whom it met.
 */
const connection = [
  { match: [upgrading], handle: [{ handler: "headers", request: { set: { Connection: ["Upgrade"] } } }] },
  {
    match: [{ not: [upgrading] }],
    handle: [{ handler: "headers", request: { delete: ["Connection"] } }],
  },
];

/**
 * Caddy's whole configuration. Static: which container serves a name is asked for, so nothing is ever reloaded.
 * @param maxWebSockets to one container
 */
export function caddyConfig(settings: IngressSettings, maxWebSockets: number): object {
  const { address, port, tls, trustedProxies = [] } = settings;
  const common = {
    logs: {},
    automatic_https: { disable: true },
    read_header_timeout: "15s",
    max_header_bytes: maxHeaderBytes,
    ...trusting(trustedProxies),
  };
  const onceUnmet = unmet(settings, maxWebSockets, "visitors", trustedProxies);
  const routes = routesFor(settings, maxWebSockets, trustedProxies, "visitors");
  return {
    admin: { disabled: true, config: { persist: false } },
    logging: accessLogging(),
    apps: {
      http: {
        grace_period: "10s",
        servers: {
          sites: {
            ...common,
            ...((!tls || trustedProxies.length > 0) && onceUnmet),
            listen: [addressPort(address, port)],
            protocols: ["h1"],
            routes: tls ? [...servedBehindProxy(trustedProxies, routes), toHttps(tls)] : routes,
          },
          rules: rulesServer(settings, maxWebSockets),
          // What another host has passed on: it says whom it met.
          peers: {
            ...common,
            ...trusting(thisHost),
            listen: [`${peersAddress}:${settings.statusPort}`],
            protocols: ["h1", "h2c"],
            max_header_bytes: maxHeaderBytes + 4096,
            ...unmet(settings, maxWebSockets, "peers", thisHost),
            routes: routesFor(settings, maxWebSockets, thisHost, "peers"),
          },
          ...(tls && {
            secure: {
              ...common,
              ...onceUnmet,
              listen: [addressPort(address, tls.port)],
              // HTTP/3 takes the same port of UDP. Where a firewall closes it, browsers stay with HTTP/2.
              protocols: ["h1", "h2", "h3"],
              // What comes before the handshake has ended may have any sender's address, also one that a site is open to.
              allow_0rtt: false,
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

const thisHost = ["127.0.0.0/8"];

/** Empty: all addresses, IPv6 where the host has it. */
const addressPort = (address: string, port: number): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

/** Where this host itself reaches an ingress of that address. */
export const loopbackOf = (address: string): string =>
  ["", "0.0.0.0", "::"].includes(address) ? "127.0.0.1" : address;

/** Who a server is asked by; `below`: by another server of this Caddy. What peers ask for goes to no other host. */
type From = "visitors" | "peers" | "below";
const suffixFor = (from: From, suffix: string): string => (from === "peers" ? `p${suffix}` : suffix);

function routesFor(
  settings: IngressSettings,
  maxWebSockets: number,
  trustedProxies: readonly string[],
  from: From,
): object[] {
  return [
    ...protocolOfVisitor(trustedProxies),
    {
      match: hasNamedProxyHeader,
      handle: [{ handler: "headers", request: { delete: namedProxyHeaders } }],
    },
    ...compression,
    { handle: [{ handler: "headers", request: { delete: proxyHeaders } }, ...noted] },
    ...connection,
    {
      // HTTP/2 in the clear would be passed on as bytes, with whatever headers the visitor writes.
      match: [{ header_regexp: { Upgrade: { pattern: "(?i)h2c" } } }],
      handle: [{ handler: "headers", request: { delete: ["Upgrade"] } }],
    },
    ...fromOutside(settings, maxWebSockets, from, visitorAsMet(trustedProxies)),
  ];
}

/** Text, as it is common on the web. Not event streams: each event would wait for the next. */
const encode = {
  handler: "encode",
  encodings: { zstd: { level: "fastest" }, gzip: { level: 5 } },
  prefer: ["zstd", "gzip"],
  minimum_length: 512,
  match: {
    headers: {
      "Content-Type": [
        "text/html*",
        "text/css*",
        "text/plain*",
        "text/xml*",
        "text/csv*",
        "text/markdown*",
        "text/javascript*",
        "application/javascript*",
        "application/json*",
        "application/ld+json*",
        "application/manifest+json*",
        "application/problem+json*",
        "application/xml*",
        "application/atom+xml*",
        "application/rss+xml*",
        "application/xhtml+xml*",
        "application/wasm*",
        "image/svg+xml*",
      ],
    },
  },
};

/**
 * Whole answers only, and none for who asks for events, as Caddy would keep an answer's head back until the first of them. The app is
 * asked by the tag that it gave, without what compression adds to it; not in If-Range, as the visitor has a part of what was compressed.
 */
const compression = [
  {
    match: [
      {
        not: [
          { method: ["HEAD"] },
          { header: { Range: ["*"] } },
          { header: { Accept: ["*text/event-stream*"] } },
        ],
      },
    ],
    handle: [encode],
  },
  {
    match: [{ header: { "If-Match": ["*"] } }, { header: { "If-None-Match": ["*"] } }],
    handle: [
      {
        handler: "headers",
        request: {
          replace: Object.fromEntries(
            ["If-Match", "If-None-Match"].map((name) => [
              name,
              [{ search_regexp: String.raw`((?:^|[\s,])"[^"]*[^"-])-(?:gzip|zstd)"`, replace: '$1"' }],
            ]),
          ),
        },
      },
    ],
  },
];

/** From right to left, as each proxy adds at the right whom it was asked by: what stands further left may be invented. */
const trusting = (ranges: readonly string[]) =>
  ranges.length === 0
    ? {}
    : {
        trusted_proxies: { source: "static", ranges },
        trusted_proxies_strict: 1,
        client_ip_headers: ["X-Forwarded-For"],
      };

const saysHttps = (ranges: readonly string[]) => [
  { remote_ip: { ranges }, header: { "X-Forwarded-Proto": ["https"] } },
];

/** Before any header is removed. Without such proxies Caddy itself says it. */
const protocolOfVisitor = (ranges: readonly string[]) =>
  ranges.length === 0
    ? []
    : [
        { handle: [{ handler: "vars", proto: "{http.request.scheme}" }] },
        { match: saysHttps(ranges), handle: [{ handler: "vars", proto: "https" }] },
      ];

/** What a trusted proxy was asked for by https is not sent to https once more. */
const servedBehindProxy = (ranges: readonly string[], routes: object[]) =>
  ranges.length === 0 ? [] : [{ ...subroute(saysHttps(ranges), routes), terminal: true }];

type Headers = Record<string, string[]>;
/**
 * What an app is told of the visitor, as the ingress met him, beside `X-Real-Ip` and what Caddy sets: all of it where no proxy is
 * trusted. Headers of a proxy's own have Caddy copy all others once more for each request.
 */
const visitorAsMet = (trustedProxies: readonly string[]): Headers =>
  trustedProxies.length === 0
    ? {}
    : { "X-Forwarded-For": ["{http.vars.client_ip}"], "X-Forwarded-Proto": ["{http.vars.proto}"] };
/** The same within, where the visitor is the ingress itself. */
const visitorAsTold: Headers = Object.fromEntries(
  ["X-Forwarded-For", "X-Forwarded-Proto"].map((name) => [name, [`{http.request.header.${name}}`]]),
);

/**
 * Its responder's answer about a request of a site with rules may be had in its place: nothing of a body is lost. Node takes no query
 * that is not escaped; Caddy escapes paths.
 */
const withoutBody = [
  {
    method: ["GET", "HEAD"],
    not: [
      { header: { "Content-Length": ["*"] } },
      { header: { "Transfer-Encoding": ["*"] } },
      { vars_regexp: { "{http.request.uri.query}": { pattern: "[^!-~]" } } },
    ],
  },
];
/** Caddy's name for where it was sent: the responder, which decides, or the server below, as of a site with rules. */
const sentToVar = "{http.reverse_proxy.upstream.hostport}";
const sentTo = (label: string) => [
  { vars_regexp: { [sentToVar]: { pattern: `^${label}\\.up\\.internal\\.?:` } } },
];
const [decider, serverBelow] = ["hd[0-9a-f]{16}", "hi[0-9a-f]{16}"];
const copyResponse = {
  handle: [
    // No visitor is told who answered below.
    { handler: "headers", response: { deferred: true, delete: ["Berth-Served"] } },
    { handler: "copy_response" },
  ],
};
/** The responder was to show a page, and by the time it was asked the site answers again: its decision is for nobody. */
const undecided = ({ statusPort }: IngressSettings) => ({
  match: [{ vars_regexp: { [sentToVar]: { pattern: `^h127-0-0-1\\.up\\.internal\\.?:${statusPort}$` } } }],
  handle: [
    {
      handler: "static_response",
      status_code: 502,
      body: "This site does not answer. Try again in a moment.\n",
    },
  ],
  terminal: true,
});

/**
 * Requests as visitors send them. The responder names a container, or what decides on requests of a site with rules: itself, where the
 * request can be sent once more, or else the server below, which asks it.
 */
function fromOutside(
  settings: IngressSettings,
  maxWebSockets: number,
  from: From,
  visitor: Headers,
): object[] {
  const how: How = {
    name: "{http.request.host}",
    suffixes: [suffixFor(from, "up"), suffixFor(from, "ws")],
    freshMs: refreshMs,
    visitor,
  };
  const [sockets, calls, plain] = byKind(settings, maxWebSockets, how);
  const deciding = {
    ...proxy(settings, { ...how, suffix: suffixFor(from, "in"), most: maxRequests }),
    handle_response: [
      {
        match: { headers: { "Berth-Upstream": ["*"] } },
        routes: [
          {
            ...subroute(sentTo(decider), allowed(settings, maxWebSockets, visitor, false)),
            terminal: true,
          },
          undecided(settings),
          copyResponse,
        ],
      },
      servedBelow,
    ],
  };
  return [sockets, calls, { match: withoutBody, handle: [deciding], terminal: true }, plain];
}

/** The container that answered, for the log, which knows nothing of the server below. */
const servedBelow = {
  match: { headers: { "Berth-Served": ["*"] } },
  routes: [
    {
      match: sentTo(serverBelow),
      handle: [{ handler: "log_append", key: "served", value: "{http.reverse_proxy.header.Berth-Served}" }],
    },
    copyResponse,
  ],
};

type How = {
  /** What Caddy looks up, before the suffix. */
  name: string;
  suffixes: [string, string];
  freshMs: number;
  retries?: number;
  visitor: Headers;
  /** Says which container answered. */
  isBelow?: boolean;
};

type Route = { match?: object[]; handle: ReturnType<typeof proxy>[]; terminal?: boolean };

/** Caddy counts by a container's name: for what stays open the responder gives another one. */
const byKind = (
  settings: IngressSettings,
  maxWebSockets: number,
  { suffixes: [plain, open], ...how }: How,
): [sockets: Route, calls: Route, plain: Route] => {
  const stays = { ...how, suffix: open, most: maxWebSockets, isBelow: false };
  return [
    { match: webSockets, handle: [proxy(settings, stays)], terminal: true },
    {
      match: remoteCalls,
      handle: [proxy(settings, { ...stays, versions: ["h2c"] })],
      terminal: true,
    },
    { handle: [proxy(settings, { ...how, suffix: plain, most: maxRequests })] },
  ];
};

/**
 * Where there is no such site, as after it has left this host: an open connection of HTTP/2 would be used for it as long as a visitor goes on
 * asking. Its next one begins with a look at DNS.
 */
const closing = {
  require: { status_code: [404], headers: { [unknownHeader]: ["*"] } },
  set: { Connection: ["close"] },
  delete: [unknownHeader],
};

/** To the containers that the responder names for `<name>.<suffix>.internal`, or to the responder itself. */
function proxy(
  settings: IngressSettings,
  {
    name,
    suffix,
    freshMs,
    most,
    retries,
    visitor,
    isBelow = false,
    versions,
  }: Omit<How, "suffixes"> & { suffix: string; most: number; versions?: string[] },
) {
  const resolver = { addresses: [`udp/127.0.0.1:${settings.responderPort}`] };
  return {
    handler: "reverse_proxy",
    dynamic_upstreams: {
      source: "srv",
      name: `${name}.${suffix}.internal`,
      refresh: `${freshMs}ms`,
      resolver,
    },
    // Idle for less than what common servers keep, so that no request meets a closing connection.
    transport: {
      protocol: "http",
      resolver,
      dial_timeout: "2s",
      // As many as one container is asked at once over: each of a burst's requests would open one otherwise.
      keep_alive: { idle_timeout: "1500ms", max_idle_conns_per_host: 256 },
      max_response_header_size: maxHeaderBytes,
      ...(versions && { versions }),
    },
    // Nothing counts as a failure.
    health_checks: { passive: { unhealthy_request_count: most } },
    // Of a body of known length, whose writes would each cost a system call; others are passed on at once. Not -1: with it, the requests
    // of visitors who have gone would count until the app answers, if it ever does.
    flush_interval: "20ms",
    ...(retries !== undefined && { load_balancing: { retries, try_interval: "50ms" } }),
    handle_response: [
      {
        match: { headers: { "Berth-Upstream": ["*"] } },
        routes: [undecided(settings), isBelow ? { handle: [{ handler: "copy_response" }] } : copyResponse],
      },
      ...(isBelow ? [] : [servedBelow]),
    ],
    headers: {
      ...(Object.keys(visitor).length > 0 && { request: { set: visitor } }),
      response: isBelow ? { set: { "Berth-Served": ["{http.reverse_proxy.upstream.hostport}"] } } : closing,
    },
  };
}

/** How the responder's answer about a request is referred to. */
const decided = (name: string) => `{http.reverse_proxy.header.Berth-${name}}`;
const isNotEmpty = (placeholder: string) => [{ not: [{ vars: { [placeholder]: [""] } }] }];
const isSet = (name: string) => isNotEmpty(`{http.vars.${name}}`);
const upstreamVar = "{http.vars.upstream}";
/** By fours: most sites have a few, and Caddy would look at each of them for each request. */
const headerSlots = Array.from({ length: Math.ceil((maxResponseHeaders + 1) / 4) }, (_, group) =>
  [0, 1, 2, 3].map((slot) => 4 * group + slot).filter((slot) => slot <= maxResponseHeaders),
);
const together = (routes: object[]) => ({ handle: [{ handler: "subroute", routes }] });
const subroute = (match: object[], routes: object[]) => ({ match, ...together(routes) });

/**
 * The way of requests to sites with rules: the first server passes them on to this one, which the responder names to it. It asks
 * the responder what is to become of a request before it passes it on to a container.
 */
function rulesServer(settings: IngressSettings, maxWebSockets: number): object {
  const { statusPort } = settings;
  const told = {
    Method: "{http.request.method}",
    Host: "{http.request.hostport}",
    Uri: "{http.request.orig_uri}",
    Proto: "{http.request.header.X-Forwarded-Proto}",
    Address: "{http.request.header.X-Real-Ip}",
    Authorization: "{http.request.header.Authorization}",
    Cookie: "{http.request.header.Cookie}",
    Length: "{http.request.header.Content-Length}",
  };
  return {
    automatic_https: { disable: true },
    listen: [`${rulesAddress}:${statusPort}`],
    protocols: ["h1", "h2c"],
    read_header_timeout: "15s",
    // What the first server has added.
    max_header_bytes: maxHeaderBytes + 4096,
    // Only this host reaches it.
    trusted_proxies: { source: "static", ranges: thisHost },
    ...unmet(settings, maxWebSockets, "below", thisHost),
    routes: [
      {
        handle: [
          {
            handler: "reverse_proxy",
            upstreams: [{ dial: `127.0.0.1:${statusPort}` }],
            // Without the visitor's query.
            rewrite: { method: "GET", uri: "/.berth/decision?" },
            headers: {
              request: {
                delete: ["*"],
                set: Object.fromEntries(
                  Object.entries(told).map(([name, value]) => [`Berth-${name}`, [value]]),
                ),
              },
            },
            transport: {
              protocol: "http",
              dial_timeout: "1s",
              response_header_timeout: "10s",
              keep_alive: { idle_timeout: "1500ms" },
              max_response_header_size: 4 * maxHeaderBytes,
            },
            // The responder itself may be starting.
            load_balancing: { try_duration: "3s", try_interval: "100ms" },
            handle_response: [
              {
                match: { status_code: [204] },
                routes: allowed(settings, maxWebSockets, visitorAsTold, true),
              },
              // Shown as it is.
            ],
          },
        ],
      },
    ],
  };
}

/** A request that may pass, as the responder wants it. */
const allowed = (
  settings: IngressSettings,
  maxWebSockets: number,
  visitor: Headers,
  isBelow: boolean,
): object[] => [
  {
    handle: [
      {
        handler: "vars",
        upstream: decided("Upstream"),
        path: decided("Path"),
        query: decided("Query"),
        authorized: decided("Authorized"),
        body: decided("Body"),
        cookie: "{http.reverse_proxy.header.Set-Cookie}",
      },
    ],
  },
  ...nested(
    (slot) => isNotEmpty(decided(`Name-${slot}`)),
    (slots) => [
      {
        handle: [
          {
            handler: "vars",
            ...Object.fromEntries(
              slots.flatMap((slot) => [
                [`name${slot}`, decided(`Name-${slot}`)],
                [`value${slot}`, decided(`Value-${slot}`)],
              ]),
            ),
          },
        ],
      },
    ],
  ),
  invoke("asDecided"),
  ...byKind(settings, maxWebSockets, {
    name: upstreamVar,
    suffixes: ["dup", "dws"],
    freshMs: refreshMs,
    visitor,
    isBelow,
  }),
];

/** The routes of each group of slots, within those of the one before it. */
function nested(
  isUsed: (firstSlot: number) => object[],
  routesOf: (slots: number[]) => object[],
  [group, ...more] = headerSlots,
): object[] {
  if (!group) return [];
  return [subroute(isUsed(group[0] ?? 0), [...routesOf(group), ...nested(isUsed, routesOf, more)])];
}

/**
 * Kept in variables, as a request that waited has had another answer of the responder's, and Caddy begins again with what the visitor
 * sent. The site's own headers of answers, and HSTS, are in place of the app's of the same name.
 */
const asDecided = [
  {
    match: isSet("path"),
    // The path apart: in a `uri` an escaped slash would become one that is not.
    handle: [
      {
        handler: "rewrite",
        uri: "{http.vars.query}",
        path_regexp: [{ find: "^.*$", replace: "{http.vars.path}" }],
      },
    ],
  },
  {
    // The password is the ingress's own, and no app's.
    match: isSet("authorized"),
    handle: [{ handler: "headers", request: { delete: ["Authorization"] } }],
  },
  subroute(
    isSet("body"),
    bodyLimitsMb.map((megabytes) => ({
      match: [{ vars: { "{http.vars.body}": [String(megabytes)] } }],
      handle: [{ handler: "request_body", max_size: megabytes * 1024 * 1024 }],
    })),
  ),
  {
    // Deferred, as headers that are set by then are lost with an answer's early hints (103).
    match: isSet("cookie"),
    handle: [
      { handler: "headers", response: { deferred: true, add: { "Set-Cookie": ["{http.vars.cookie}"] } } },
    ],
  },
  ...nested(
    (slot) => isSet(`name${slot}`),
    (slots) =>
      slots.map((slot) => ({
        match: isSet(`name${slot}`),
        handle: [
          {
            handler: "headers",
            response: {
              deferred: true,
              set: { [`{http.vars.name${slot}}`]: [`{http.vars.value${slot}}`] },
            },
          },
        ],
      })),
  ),
];

/** What came to no connection reached no app. */
const metNobody = {
  vars_regexp: { "{http.error.message}": { pattern: "^(dial |no upstreams available)" } },
};
/** Of what reached an app, only what changes nothing may be sent again (RFC 9110, section 9.2.1). */
const mayBeSentAgain: { not?: object[]; [matcher: string]: unknown }[] = [
  metNobody,
  {
    method: ["GET", "HEAD", "OPTIONS"],
    not: [{ vars_regexp: { "{http.error.message}": { pattern: "headers exceeded" } } }],
  },
];

const failed = { handle: [{ handler: "static_response", status_code: "{http.error.status_code}" }] };

/** What stands several times in a server is named, as Caddy makes each of its proxies, with all that they hold, as often as they stand there. */
const invoke = (name: string) => ({ handle: [{ handler: "invoke", name }] });

/**
 * A request that met nobody waits at the responder until its site is there again, and is sent once more: one that was decided on as it
 * was decided. On the way of sites with rules, nothing else passes. It waits twice where whom it was sent to died as well, as a
 * version's replicas do one soon after the other.
 */
function unmet(
  settings: IngressSettings,
  maxWebSockets: number,
  from: From,
  trustedProxies: readonly string[],
): { named_routes: Record<string, object>; errors: { routes: object[] } } {
  const isBelow = from === "below";
  const visitor = isBelow ? visitorAsTold : visitorAsMet(trustedProxies);
  const how = { freshMs: 10, retries: 3 };
  const decidedOn = byKind(settings, maxWebSockets, {
    ...how,
    name: upstreamVar,
    suffixes: ["dre", "dwr"],
    visitor,
    isBelow,
  });
  const asMet = byKind(settings, maxWebSockets, {
    ...how,
    name: "{http.request.host}",
    suffixes: [suffixFor(from, "re"), suffixFor(from, "wr")],
    visitor,
  });
  const matches = mayBeSentAgain.map((one) => ({
    ...one,
    not: [...(one.not ?? []), { vars: { [upstreamVar]: [""] } }],
  }));
  const waiting = (match: object[], routes: object[]) => ({
    match,
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
        handle_response: [{ match: { status_code: [204] }, routes }],
      },
    ],
    terminal: true,
  });
  const twice = (name: string) => ({
    handle: [
      {
        handler: "subroute",
        routes: [invoke(name)],
        errors: { routes: [waiting([metNobody], [invoke(name)]), failed] },
      },
    ],
  });
  return {
    named_routes: {
      asDecided: together(asDecided),
      decidedOn: together(decidedOn),
      ...(!isBelow && { asMet: together(asMet) }),
    },
    errors: {
      routes: [
        ...(isBelow ? [] : [dotAtEnd, notHostName]),
        waiting(matches, [invoke("asDecided"), twice("decidedOn")]),
        ...(isBelow ? [] : [waiting(mayBeSentAgain, [twice("asMet")])]),
        failed,
      ],
    },
  };
}

/** Methods and bodies stay as they are (RFC 9110, 15.4.9). Challenges of ACME are answered before any route. */
const toHttps = ({ port }: TlsSettings) => ({
  handle: [
    ...logged,
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
        // Asked before a certificate is obtained, at each handshake, so that a new one needs no reload.
        ...(tls.addressKey !== undefined && {
          get_certificate: [
            { via: "http", url: `http://127.0.0.1:${statusPort}/.berth/certificates/${tls.addressKey}` },
          ],
        }),
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
