import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { confirmed, connect } from "../../context.ts";
import { fieldsFrom } from "../../pairs.ts";
import { listed } from "../../shown.ts";
import { hostId } from "../../site.ts";
import { safe } from "../../terminal.ts";

export const listSetAside = command(
  "set-aside",
  "What a host keeps although no record assigns it to the host",
  "listSetAside",
)
  .argument("<host>", "name or id")
  .action(async (host) =>
    answered(
      "listSetAside",
      { id: await hostId(await connect(), host) },
      listed("id", "accountId", "setAsideAt", "running", "containerCount", "imageCount", "volumes"),
    ),
  );

export const removeSetAside = command(
  "delete-set-aside",
  "Remove one of these with its data",
  "removeSetAside",
)
  .argument("<host>", "name or id")
  .argument("<kept>", "id: berth hosts set-aside")
  .action(async (host, keptId) => {
    await confirmed(`Remove ${safe(keptId)} with its data?`);
    await answered("removeSetAside", { id: await hostId(await connect(), host), keptId });
  });

export const setHost = command(
  "set",
  "Change where visitors reach a host, and how much of its memory is used: ipv4, ipv6, memoryMb",
  "patchHost",
)
  .argument("<host>", "name or id")
  .argument("<field=value...>", "ipv4=203.0.113.7, ipv6=null, memoryMb=65536")
  .action(async (host, pairs) =>
    answered("patchHost", { ...fieldsFrom(pairs), id: await hostId(await connect(), host) }),
  );
