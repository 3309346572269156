/**
 * Caddy's access log, from which the agent takes each site's requests. A file in a volume: it is written whether an agent runs or
 * not, and what a restarted agent has not read yet is still there. Bounded: the agent removes what it has read, and Caddy the
 * oldest when there is more than this.
 */
export const accessLogFolder = "/var/log/berth";
export const accessLogVolume = (agentId: string): string => `berth-ingress-log-${agentId}`;
const rolledAtMb = 32;
const keptFiles = 8;

/** Only what the agent reads is written: no header but those below, so neither cookies nor credentials. */
const left = [
  "request>tls",
  "request>remote_ip",
  "request>remote_port",
  "request>proto",
  "request>headers",
  "resp_headers",
  "user_id",
];

export function accessLogging(): object {
  return {
    logs: {
      // Whatever may be logged of a request is put together for each one, also if nothing is written, and has its whole query.
      default: { level: "WARN", exclude: ["http"] },
      requests: {
        level: "INFO",
        include: ["http.log.access"],
        writer: {
          output: "file",
          filename: `${accessLogFolder}/requests.log`,
          roll_size_mb: rolledAtMb,
          roll_keep: keptFiles,
          roll_gzip: false,
        },
        encoder: {
          format: "filter",
          wrap: {
            format: "json",
            time_format: "unix_milli_float",
            duration_format: "nano",
            message_key: "",
            level_key: "",
            name_key: "",
          },
          fields: Object.fromEntries(left.map((field) => [field, { filter: "delete" }])),
        },
      },
    },
  };
}

/**
 * What is said of each request beside what Caddy says by itself: also the id, once it is asked for. That is the app's to see, so that
 * its own log can name it.
 */
export const noted = [
  { handler: "headers", request: { set: { "X-Request-Id": ["{http.request.uuid}"] } } },
  ...Object.entries({
    agent: "{http.request.header.User-Agent}",
    referrer: "{http.request.header.Referer}",
    upstream: "{http.reverse_proxy.upstream.hostport}",
  }).map(([key, value]) => ({ handler: "log_append", key, value })),
];
