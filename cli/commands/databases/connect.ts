import { once } from "node:events";
import type { Answer } from "../../../client/index.ts";
import { command } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { exitCodes, Failure } from "../../failure.ts";
import { report } from "../../report.ts";
import { databaseId } from "../../site.ts";
import { output, say } from "../../terminal.ts";

type Place = { port: number; username: string; password: string; databaseName: string | null };
type Program = { program: string; args: string[]; env: Record<string, string> };

/** The engines' own clients, the better ones first. Passwords are in the environment, which others cannot read. */
const clientsOf = (
  type: Answer<"getDatabase">["type"],
  { port, username, password, databaseName }: Place,
): Program[] => {
  const at = ["--host=127.0.0.1", `--port=${port}`, `--user=${username}`];
  const named = databaseName === null ? [] : [databaseName];
  switch (type) {
    case "postgresql":
      return [
        {
          program: "psql",
          // As the other clients do by themselves with what nobody types.
          args: [
            "--host=127.0.0.1",
            `--port=${port}`,
            `--username=${username}`,
            ...(process.stdin.isTTY ? [] : ["--set=ON_ERROR_STOP=1"]),
            ...named,
          ],
          env: { PGPASSWORD: password },
        },
      ];
    case "mysql":
      return [
        // The tunnel is encrypted, and the server's certificate is for another address.
        {
          program: "mariadb",
          args: [...at, "--protocol=tcp", "--skip-ssl", ...named],
          env: { MYSQL_PWD: password },
        },
        { program: "mysql", args: [...at, "--protocol=tcp", ...named], env: { MYSQL_PWD: password } },
      ];
    case "redis":
      return [
        {
          program: "redis-cli",
          args: ["-h", "127.0.0.1", "-p", String(port), "--user", username, "--no-auth-warning"],
          env: { REDISCLI_AUTH: password },
        },
      ];
    default:
      throw new Error(`No client is known for ${type satisfies never as string}.`);
  }
};

export const connectDatabase = command(
  "connect",
  "Open psql, mariadb or redis-cli on the database, or a prompt if it is not installed; exits as that program does",
  null,
)
  .argument("<database>", "name or id")
  .argument("[arguments...]", "for that program, after --: berth databases connect shop -- -c 'SELECT 1'")
  .action(async (named, more) => {
    const client = await connect();
    const id = await databaseId(client, named);
    const [database, credentials] = await Promise.all([
      client.call("getDatabase", { id }, { signal }),
      client.call("getDatabaseCredentials", { id }, { signal }),
    ]);
    const { openTunnel } = await import("../../tunnel.ts");
    const { port, close } = await openTunnel(id, 0, (error) => void report(error));
    const { databaseName } = database;
    const programs = clientsOf(database.type, { ...credentials, databaseName, port });
    try {
      for (const one of programs) {
        const exitCode = await run({ ...one, args: [...one.args, ...more] });
        if (exitCode === null) continue;
        process.exitCode = exitCode;
        return;
      }
    } finally {
      close();
    }
    const missing = `${programs.map(({ program }) => program).join(" or ")} is not installed`;
    if (output.isInteractive && more.length === 0) {
      const { promptFor } = await import("./prompt.ts");
      say(`${missing}; this prompt is Berth's own.`);
      return promptFor(client, { id, name: database.name });
    }
    throw new Failure(`${missing}.`, {
      exitCode: exitCodes.failure,
      hint: `Install it, connect another client with \`${nextCommand(`databases tunnel ${named}`, null)}\`, or use \`${nextCommand(`databases query ${named}`, null)}\`.`,
    });
  });

/** null: it is not installed. Ctrl-C is the program's meanwhile: it ends a statement. */
async function run({ program, args, env }: Program): Promise<number | null> {
  const { spawn } = await import("node:child_process");
  const listeners = process.listeners("SIGINT");
  process.removeAllListeners("SIGINT").on("SIGINT", () => undefined);
  try {
    const child = spawn(program, args, { stdio: "inherit", env: { ...process.env, ...env } });
    const [code, killedBy] = (await once(child, "exit")) as [number | null, string | null];
    return killedBy === null ? (code ?? exitCodes.failure) : exitCodes.failure;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  } finally {
    process.removeAllListeners("SIGINT");
    for (const listener of listeners) process.on("SIGINT", listener);
  }
}
