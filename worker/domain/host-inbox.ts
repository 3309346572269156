type Load = { messages: number; characters: number };

const mebibyte = 1024 * 1024;
/** More than any agent says, also one that sends again after a reconnect what it holds of all its logs. */
const windowMs = 10_000;
const mostInWindow: Load = { messages: 20_000, characters: 256 * mebibyte };
const mostWaiting: Load = { messages: 2000, characters: 96 * mebibyte };

const isWithin = (load: Load, most: Load): boolean =>
  load.messages <= most.messages && load.characters <= most.characters;

/**
 * What one socket brings is worked on one after the other, so that a host, whoever has its token, has D1 for one thing at a time;
 * and a socket that brings more than an agent ever does is to be closed.
 */
export class HostInbox {
  private last: Promise<void> = Promise.resolve();
  private readonly waiting: Load = { messages: 0, characters: 0 };
  private inWindow: Load = { messages: 0, characters: 0 };
  private windowEndsMs = 0;

  /** Whether the socket may stay, with a message of this length. */
  admits(characters: number, nowMs: number): boolean {
    if (nowMs >= this.windowEndsMs) {
      this.windowEndsMs = nowMs + windowMs;
      this.inWindow = { messages: 0, characters: 0 };
    }
    add(this.inWindow, 1, characters);
    return isWithin(this.inWindow, mostInWindow) && isWithin(this.waiting, mostWaiting);
  }

  /** When what came before has been worked on, whatever became of it. */
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
