/** How long Caddy may answer from an earlier look-up. Short, so that a swap shows at once; see bench/README.md. */
export const refreshMs = 20;

export type IngressSettings = { address: string; port: number; responderPort: number };

/** Caddy's whole configuration. Static: which container serves a name is asked for, so nothing is ever reloaded. */
export function caddyConfig({ address, port, responderPort }: IngressSettings): object {
  const resolver = { addresses: [`udp/127.0.0.1:${responderPort}`] };
  return {
    admin: { disabled: true },
    logging: { logs: { default: { level: "WARN" } } },
    apps: {
      http: {
        grace_period: "10s",
        servers: {
          sites: {
            listen: [`${address}:${port}`],
            automatic_https: { disable: true },
            routes: [
              {
                handle: [
                  {
                    handler: "reverse_proxy",
                    dynamic_upstreams: {
                      source: "srv",
                      name: "{http.request.host}.up.internal",
                      refresh: `${refreshMs}ms`,
                      resolver,
                    },
                    transport: { protocol: "http", resolver, dial_timeout: "2s" },
                    load_balancing: { try_duration: "3s", try_interval: "50ms" },
                    flush_interval: -1,
                  },
                ],
              },
            ],
          },
        },
      },
    },
  };
}
