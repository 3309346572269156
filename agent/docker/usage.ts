/** Counters since the container started, and the memory it holds now. */
export type Usage = {
  cpuNanoseconds: number;
  memoryBytes: number;
  receivedBytes: number;
  sentBytes: number;
};

/** What the engine's statistics have of interest; of a container that does not run they are empty. */
export type RawStats = {
  cpu_stats?: { cpu_usage?: { total_usage?: number } };
  memory_stats?: { usage?: number; stats?: { inactive_file?: number; total_inactive_file?: number } };
  networks?: Record<string, { rx_bytes: number; tx_bytes: number }>;
};

export function usageOf({ cpu_stats, memory_stats, networks }: RawStats): Usage | null {
  if (!memory_stats?.usage) return null;
  const { usage, stats } = memory_stats;
  const sum = (key: "rx_bytes" | "tx_bytes") =>
    Object.values(networks ?? {}).reduce((total, network) => total + network[key], 0);
  return {
    cpuNanoseconds: cpu_stats?.cpu_usage?.total_usage ?? 0,
    // Pages that the kernel gives back when asked are not the site's, as `docker stats` counts: cgroup v1, then v2.
    memoryBytes: Math.max(0, usage - (stats?.total_inactive_file ?? stats?.inactive_file ?? 0)),
    receivedBytes: sum("rx_bytes"),
    sentBytes: sum("tx_bytes"),
  };
}
