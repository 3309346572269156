import net from "node:net";

export type Place = { address: string; port: number };
type Known = { atMs: number; isUp: boolean; looking: Promise<void> | undefined };

/** While requests come, so often each replica is looked at; and so long it has to take a connection on its own host. */
const checkMs = 500;
const connectMs = 300;

/**
 * Which of a site's replicas take connections. Looked at while somebody asks, so that a dead one is left out also when the
 * agent, which hears of its end from the engine, is away: a request to an address that is gone waits for seconds.
 */
export class Reachable {
  private readonly known = new Map<string, Known>();

  /**
   * Those that took the last connection; all of them where none did, or there is but one. So one that has just started is
   * sent nobody before it listens, while others serve.
   */
  among<P extends Place>(places: readonly P[]): readonly P[] {
    if (places.length < 2) return places;
    const up = places.filter((place) => this.isUp(place));
    return up.length > 0 ? up : places;
  }

  /** Whether any of them takes a connection now. */
  async takesAny(places: readonly Place[]): Promise<boolean> {
    await Promise.all(places.map((place) => this.look(place)));
    return places.some((place) => this.known.get(nameOf(place))?.isUp === true);
  }

  /** There are no other places than these now. */
  keepOnly(places: readonly Place[]): void {
    const names = new Set(places.map(nameOf));
    for (const name of this.known.keys()) if (!names.has(name)) this.known.delete(name);
  }

  private isUp(place: Place): boolean {
    const known = this.known.get(nameOf(place));
    if (performance.now() - (known?.atMs ?? -Infinity) > checkMs) void this.look(place);
    return known?.isUp ?? false;
  }

  /** One look at a time: whoever asks meanwhile is told by it. */
  private look(place: Place): Promise<void> {
    const name = nameOf(place);
    const known: Known = this.known.get(name) ?? { atMs: -Infinity, isUp: false, looking: undefined };
    this.known.set(name, known);
    return (known.looking ??= takesConnection(place).then(
      (isUp) => void Object.assign(known, { atMs: performance.now(), isUp, looking: undefined }),
    ));
  }
}

const takesConnection = (place: Place): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect({ host: place.address, port: place.port });
    // Where this process itself was held up, the answer may have come, and is looked at before.
    socket.setTimeout(connectMs, () => setImmediate(() => socket.destroy(new Error("no answer"))));
    const end = (isUp: boolean) => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once("connect", () => end(true)).once("error", () => end(false));
  });

const nameOf = ({ address, port }: Place): string => `${address}:${port}`;
