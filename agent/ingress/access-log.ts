/**
 * Caddy's access log, from which the agent takes each site's requests. A file in a volume: it is written whether an agent runs or
 * not, and what a restarted agent has not read yet is still there. Bounded: the agent removes what it has read, and Caddy the
 * oldest when there is more than this.
 */
export const accessLogFolder = "/var/log/berth";
export const accessLogVolume = (agentId: string): string => `berth-ingress-log-${agentId}`;
const rolledAtMb = 32;
const keptFiles = 8;

/** Only what the agent reads is written, of the request what is in `seen`: so neither cookies nor credentials. */
const left = ["request", "resp_headers", "user_id"];

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
            time_format: "unix_nano",
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

/** One text, as Caddy takes its time for each field. A line has one line of each, which none of them can have an end of. */
export const seenFields = ["method", "host", "uri", "address", "agent", "referrer", "beganAtMs"] as const;
const placeholders: Record<(typeof seenFields)[number], string> = {
  method: "{http.request.method}",
  host: "{http.request.hostport}",
  uri: "{http.request.orig_uri}",
  address: "{http.vars.client_ip}",
  agent: "{http.request.header.User-Agent}",
  referrer: "{http.request.header.Referer}",
  beganAtMs: "{time.now.unix_ms}",
};

/**
 * What is said of each request beside what Caddy says by itself. Early, as an answer that is broken off ends the handlers: Caddy
 * says nothing of it afterwards, and 0 for its duration.
 */
export const logged = [
  {
    handler: "vars",
    seen: seenFields.map((field) => placeholders[field]).join("\n"),
    // The log that there is: Caddy would look for another one by each label of the host's name.
    access_logger_names: [""],
  },
  { handler: "log_append", key: "seen", value: "seen", early: true },
];

/** And of one that is passed on, also the id, once it is asked for. That is the app's to see, so that its own log can name it. */
export const noted = [
  {
    handler: "headers",
    request: { set: { "X-Request-Id": ["{http.request.uuid}"], "X-Real-Ip": ["{http.vars.client_ip}"] } },
  },
  ...logged,
  { handler: "log_append", key: "upstream", value: "{http.reverse_proxy.upstream.hostport}" },
];
