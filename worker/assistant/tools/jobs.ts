import { call } from "../call.ts";
import type { Command } from "../../../protocol/api/commands.ts";
import type { Schedule } from "../../../protocol/api/schedules.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { asks, endOfLog, siteId, siteNamed } from "../resources.ts";
import type { Tools } from "../tool.ts";

type Names = "list_cron_jobs" | "set_cron_job" | "delete_cron_job" | "run_command" | "get_job_output";

const schedulesOf = async (ctx: Ctx, site: string) => {
  const id = await siteId(ctx, site);
  return { id, data: (await call(ctx, "listSchedules", { id, limit: 100 })).data };
};

async function scheduleNamed(ctx: Ctx, site: string, name: string): Promise<Schedule> {
  const found = (await schedulesOf(ctx, site)).data.find((one) => one.name === name);
  if (!found) throw new AppError("not_found", { reason: `The site ${site} has no schedule ${name}.` });
  return found;
}

const resultOf = ({ id, status, exitCode, error, createdAt, finishedAt }: Command) => ({
  id,
  status,
  exitCode,
  error,
  createdAt,
  finishedAt,
});

export const jobTools: Tools<Names> = {
  list_cron_jobs: {
    async run(ctx, { site }) {
      const { id, data } = await schedulesOf(ctx, site);
      return Promise.all(
        data.map(async (schedule) => {
          const runs = await call(ctx, "listCommands", { id, scheduleId: schedule.id, limit: 1 });
          return { ...schedule, lastRun: runs.data.map(resultOf)[0] ?? null };
        }),
      );
    },
  },
  set_cron_job: {
    async run(ctx, { site, ...wanted }) {
      const { id, data } = await schedulesOf(ctx, site);
      const found = data.find(({ name }) => name === wanted.name);
      if (found) return call(ctx, "patchSchedule", { id: found.id, ...wanted });
      return call(ctx, "createSchedule", { id, ...wanted });
    },
  },
  delete_cron_job: {
    run: async (ctx, { site, name }) =>
      call(ctx, "deleteSchedule", { id: (await scheduleNamed(ctx, site, name)).id }),
    async consequence(ctx, { site, name }) {
      const { id, command, updatedAt } = await scheduleNamed(ctx, site, name);
      return asks(`Delete the schedule ${name} of the site ${site}, which no longer runs: ${command}`, [
        id,
        updatedAt,
      ]);
    },
  },
  run_command: {
    run: async (ctx, { site, command, timeoutSeconds }) =>
      call(ctx, "runCommand", { id: await siteId(ctx, site), command, timeoutSeconds }),
    async consequence(ctx, { site, command }) {
      const { id, name, updatedAt } = await siteNamed(ctx, site);
      return asks(
        `Run this command once with the image, environment and volumes of the site ${name}:\n${command}`,
        [id, updatedAt],
      );
    },
  },
  get_job_output: {
    async run(ctx, { run, site }) {
      if ((run === undefined) === (site === undefined)) throw invalid("run", "either run or site");
      if (run === undefined)
        return (await call(ctx, "listCommands", { id: await siteId(ctx, site ?? ""), limit: 20 })).data;
      const command = await call(ctx, "getCommand", { id: run });
      return { command, output: await endOfLog(ctx, "getCommandLogs", run, { tail: 200 }) };
    },
  },
};
