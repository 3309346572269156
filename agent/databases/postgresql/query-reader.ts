import { randomBytes } from "node:crypto";
import type { Engine } from "../../docker/engine.ts";
import { ensureQueryReader, queryReader } from "./server.ts";
import { run } from "../run-program.ts";
import type { Login } from "../inspect/place.ts";

const makeMs = 8000;

type Readers = {
  /**
   * The read-only login for this container's server. This agent generates its password, which lives as long as the
   * agent.
   */
  of: (databaseId: string, databaseName: string, containerId: string) => Promise<Login>;
  /** Call if the server rejected the login: the next question creates another password. */
  forget: (databaseId: string) => void;
};

export function openReaders(engine: Pick<Engine, "execute">): Readers {
  const known = new Map<string, { containerId: string; login: Promise<Login> }>();

  async function make(databaseName: string, containerId: string): Promise<Login> {
    const password = randomBytes(24).toString("base64url");
    const signal = AbortSignal.timeout(makeMs);
    await ensureQueryReader(databaseName, password, (program) =>
      run({ engine }, containerId, program, signal),
    );
    return { username: queryReader, password };
  }

  return {
    of(databaseId, databaseName, containerId) {
      const found = known.get(databaseId);
      if (found?.containerId === containerId) return found.login;
      const login = make(databaseName, containerId);
      const made = { containerId, login };
      known.set(databaseId, made);
      login.catch(() => {
        if (known.get(databaseId) === made) known.delete(databaseId);
      });
      return login;
    },
    forget: (databaseId) => void known.delete(databaseId),
  };
}
