import { command } from "../../command.ts";
import { connect, signal } from "../../context.ts";
import { siteId } from "../../site.ts";
import { bold, dim, safe, show, size, table } from "../../terminal.ts";

export const listVolumes = command("list", "A site's volumes and their sizes", "listVolumes")
  .argument("[site]", "name or id")
  .action(async (site) => {
    const client = await connect();
    show(
      "listVolumes",
      await client.call("listVolumes", { id: await siteId(client, site) }, { signal }),
      ({ data }) =>
        table(
          data,
          {
            name: ({ name }) => bold(safe(name)),
            "mounted at": ({ mountPath, mounted }) =>
              mountPath === null
                ? dim("detached")
                : `${safe(mountPath)}${mounted ? "" : ", from the next deployment on"}`,
            size: ({ sizeMb }) => size(sizeMb),
          },
          "No volumes.",
        ),
    );
  });
