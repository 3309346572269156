import { hostDeadSeconds, linkDeadSeconds } from "../../protocol/agent/messages.ts";

/** An agent that was refused because its host's own was connected. @property isSecond both were alive at once */
export type OtherAgent = { instance: string; firstAt: number; lastAt: number; isSecond: boolean };
/** Who is connected, and when it was last heard. */
type Connected = { instance: string | null; heardAt: number };

const maxKnown = 10;

/**
 * Whether an agent is refused: it would be asked for the containers of the one that is connected, which it may not have. A process that
 * started anew can meet what is left of its predecessor's connection, but only while nothing comes from that; whoever is refused for
 * longer is a second agent, and stays refused also while the host's own restarts.
 */
export function judgeAgent(
  known: readonly OtherAgent[],
  instance: string,
  connected: Connected | undefined,
  now: number,
): { isRefused: boolean; known: OtherAgent[]; isSecond: boolean } {
  const before = known.find((one) => one.instance === instance);
  const others = known.filter((one) => one !== before);
  const isTaken =
    connected !== undefined &&
    connected.instance !== null &&
    connected.instance !== instance &&
    now - connected.heardAt < hostDeadSeconds * 1000;
  if (!isTaken && !before?.isSecond) return { isRefused: false, known: others, isSecond: false };
  const firstAt = before?.firstAt ?? now;
  const isSecond =
    before?.isSecond || (connected !== undefined && connected.heardAt > firstAt + linkDeadSeconds * 1000);
  const all = [...others, { instance, firstAt, lastAt: now, isSecond }];
  return { isRefused: true, known: all.slice(-maxKnown), isSecond };
}

/** Whether a second agent has tried to connect lately: each tries four times a minute. */
export const isAnySecond = (known: readonly OtherAgent[], now: number): boolean =>
  known.some(({ isSecond, lastAt }) => isSecond && now - lastAt < 60_000);
