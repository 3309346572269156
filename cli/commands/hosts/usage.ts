import { answered } from "../../answered.ts";
import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { hostId } from "../../site.ts";
import { fields, size, when } from "../../terminal.ts";

const of = ({ usedMb, totalMb }: { usedMb: number; totalMb: number }): string =>
  `${size(usedMb)} of ${size(totalMb)}`;

export const hostUsage = command("usage", "A host machine's current usage", "getHostUsage")
  .argument("<host>", "name or id")
  .action(async (host) =>
    answered(
      "getHostUsage",
      { id: await hostId(await connect(), host) },
      ({ at, cpuCount, cpuBusy, memory, disk }) =>
        fields({
          Processors: `${cpuBusy === null ? "not known yet" : `${Math.round(cpuBusy * 100)}%`} of ${cpuCount}`,
          Memory: of(memory),
          Disk: disk && of(disk),
          Measured: when(at),
        }),
    ),
  );
