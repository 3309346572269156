import { command, whole } from "../../command.ts";
import { connect, nextCommand, signal } from "../../context.ts";
import { report } from "../../report.ts";
import { databaseId } from "../../site.ts";
import { dim, safe, say, showValue } from "../../terminal.ts";

/** The connection string with another place, and without the password unless it is to be shown. */
function localAddress(connectionString: string, port: number, withPassword: boolean): string {
  const url = new URL(connectionString);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  if (!withPassword) url.password = "";
  return url.href;
}

export const tunnel = command(
  "tunnel",
  "A port on this computer that leads to the database, for any client; until Ctrl-C",
  "tunnel",
)
  .argument("<database>", "name or id")
  .option("--port <port>", "the port on this computer; default: any free port", whole, 0)
  .option("--show-password", "print the address with the password in it")
  .action(async (named, options) => {
    const client = await connect();
    const id = await databaseId(client, named);
    const { connectionString } = await client.call("getDatabaseCredentials", { id }, { signal });
    const { openTunnel } = await import("../../tunnel.ts");
    const { port } = await openTunnel(id, options.port, (error) => void report(error));
    const address = localAddress(connectionString, port, options.showPassword ?? false);
    showValue("tunnel", { port, address }, () => safe(address));
    if (!options.showPassword)
      say(
        dim(
          `The client asks for the password: ${nextCommand(`databases credentials ${safe(named)}`, null)} shows it.`,
        ),
      );
    say(dim("Open until Ctrl-C."));
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  });
