type Load = { messages: number; characters: number };

const mebibyte = 1024 * 1024;
/** Above the maximum of a well-behaved agent, even one that resends all its buffered logs after a reconnect. */
const windowMs = 10_000;
const mostInWindow: Load = { messages: 20_000, characters: 256 * mebibyte };
const mostWaiting: Load = { messages: 2000, characters: 96 * mebibyte };

const isWithin = (load: Load, most: Load): boolean =>
  load.messages <= most.messages && load.characters <= most.characters;

/**
 * Processes one socket's messages sequentially, so that a host's token occupies D1 with one message at a time, and
 * reports when a socket sends more than an agent ever does.
 */
export class HostInbox {
  private last: Promise<void> = Promise.resolve();
  private readonly waiting: Load = { messages: 0, characters: 0 };
  private inWindow: Load = { messages: 0, characters: 0 };
  private windowEndsMs = 0;

  /** Whether the socket may stay open after a message of this length. */
  admits(characters: number, nowMs: number): boolean {
    // A clock that was set back begins another window, too.
    if (nowMs >= this.windowEndsMs || nowMs < this.windowEndsMs - windowMs) {
      this.windowEndsMs = nowMs + windowMs;
      this.inWindow = { messages: 0, characters: 0 };
    }
    add(this.inWindow, 1, characters);
    return isWithin(this.inWindow, mostInWindow) && isWithin(this.waiting, mostWaiting);
  }

  /** Resolves when all earlier messages are processed, even if they failed. */
  async inTurn(characters: number, work: () => Promise<void>): Promise<void> {
    add(this.waiting, 1, characters);
    this.last = this.last.catch(() => undefined).then(work);
    try {
      await this.last;
    } finally {
      add(this.waiting, -1, -characters);
    }
  }
}

function add(load: Load, messages: number, characters: number): void {
  load.messages += messages;
  load.characters += characters;
}
