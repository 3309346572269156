import { nanosecondsBetween, shifted, withNanoseconds } from "../docker/log-parser.ts";

const beginning = "1970-01-01T00:00:00.000000000Z";
/** The short form in which engines show ids. */
const short = (containerId: string): string => containerId.slice(0, 12);

/** So many containers fit into a place of the protocol's; of others that are behind, a reader who resumes may miss lines. */
const maxBehind = 120;
const timeCharacters = 30;
const behindCharacters = ";0123456789ab-1234567890123456789".length;

/**
 * The positions of a reader in the logs of several containers. Each is read at its own pace, so a line may arrive
 * after a later one of another container: resuming from the last line's time alone would lose it.
 */
export class LogPlaces {
  private newest: string;
  private readonly start: string;
  private readonly seen = new Map<string, string>();
  private readonly open = new Set<string>();
  /** Of those that have ended, the last line, which the reader may not have yet. */
  private readonly last = new Map<string, string>();

  /** @param after the position from which the reader resumes, as returned by `passed`; null: the beginning */
  constructor(after: string | null) {
    const [at = beginning, ...behind] = (after ?? beginning).split(";");
    this.start = this.newest = withNanoseconds(at);
    for (const part of behind) {
      const [id = "", nanoseconds = "0"] = part.split("-");
      this.seen.set(id, shifted(this.newest, -BigInt(nanoseconds)));
    }
  }

  /** Lines of this container are new after this time. */
  of(containerId: string): string {
    return this.seen.get(short(containerId)) ?? this.start;
  }

  /** The reader does not want what this container wrote up to then. */
  skipped(containerId: string, at: string): void {
    this.seen.set(short(containerId), at);
  }

  /** The container is read from now on. */
  opened(containerId: string): void {
    this.seen.set(short(containerId), this.of(containerId));
    this.open.add(short(containerId));
    this.last.delete(short(containerId));
  }

  /** Nothing is expected from this container after its last line. */
  closed(containerId: string, lastAt = ""): void {
    this.last.set(short(containerId), lastAt);
    this.closeIfPassed(containerId);
  }

  /** The reader has this container's lines up to this one. @returns the position to resume from */
  passed(containerId: string, at: string): string {
    this.seen.set(short(containerId), at);
    this.closeIfPassed(containerId);
    if (at > this.newest) this.newest = at;
    const behind = [...this.open].flatMap((id) => {
      const seen = this.seen.get(id) ?? this.start;
      return seen < this.newest ? [`${id}-${nanosecondsBetween(seen, this.newest)}`] : [];
    });
    return [this.newest, ...behind.slice(0, maxBehind)].join(";");
  }

  private closeIfPassed(containerId: string): void {
    const last = this.last.get(short(containerId));
    if (last !== undefined && this.of(containerId) >= last) this.open.delete(short(containerId));
  }

  /** The most characters that a position has now. */
  get length(): number {
    return timeCharacters + behindCharacters * Math.min(this.open.size, maxBehind);
  }
}
