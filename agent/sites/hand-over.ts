/** Sites whose container in service was stopped, as another one is to take over its volume. */
const sites = new Set<string>();

export const isHandingOver = (siteId: string): boolean => sites.has(siteId);

/** Until `work` has ended, nobody else starts what serves. */
export async function handOver<T>(siteId: string, work: () => Promise<T>): Promise<T> {
  sites.add(siteId);
  try {
    return await work();
  } finally {
    sites.delete(siteId);
  }
}
