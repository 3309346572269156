/** How long Caddy may answer from an earlier look-up. Short, so that a swap shows at once. */
export const refreshMs = 10;

export type IngressSettings = { address: string; port: number; responderPort: number };

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

/** Caddy's whole configuration. Static: which container serves a name is asked for, so nothing is ever reloaded. */
export function caddyConfig({ address, port, responderPort }: IngressSettings): object {
  const resolver = { addresses: [`udp/127.0.0.1:${responderPort}`] };
  return {
    admin: { disabled: true, config: { persist: false } },
    logging: { logs: { default: { level: "WARN" } } },
    apps: {
      http: {
        grace_period: "10s",
        servers: {
          sites: {
            listen: [`${address}:${port}`],
            automatic_https: { disable: true },
            read_header_timeout: "15s",
            max_header_bytes: 64 * 1024,
            routes: [
              {
                // A name that is none would be asked for again and again until `try_duration` ends.
                match: [
                  {
                    header_regexp: { Host: { pattern: `^(?:${label}\\.)*${label}(?::[0-9]+)?$` } },
                    // So that `.up.internal` fits behind it in a DNS name.
                    not: [{ header_regexp: { Host: { pattern: "^[^:]{231,}" } } }],
                  },
                ],
                handle: [
                  {
                    handler: "reverse_proxy",
                    dynamic_upstreams: {
                      source: "srv",
                      name: "{http.request.host}.up.internal",
                      refresh: `${refreshMs}ms`,
                      resolver,
                    },
                    // Idle for less than what common servers keep, so that no request meets a closing connection.
                    transport: {
                      protocol: "http",
                      resolver,
                      dial_timeout: "2s",
                      keep_alive: { idle_timeout: "1500ms" },
                    },
                    load_balancing: { try_duration: "3s", try_interval: "50ms" },
                    flush_interval: -1,
                  },
                ],
              },
              { handle: [{ handler: "static_response", status_code: 400, body: "Not a host name\n" }] },
            ],
          },
        },
      },
    },
  };
}
