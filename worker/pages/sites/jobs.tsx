import { CommandCreate, type Command } from "../../../protocol/api/commands.ts";
import {
  CronExpression,
  ScheduleCreate,
  SchedulePatch,
  type Schedule,
} from "../../../protocol/api/schedules.ts";
import { call } from "../../api/call.ts";
import { cronProblem, nextRun } from "../../domain/cron.ts";
import { cronWords } from "../../domain/cron-words.ts";
import { parsed } from "../../domain/parsed.ts";
import { Act, Field, Form, Submit, Telling, typedInto, type Told } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Empty, Live, LocalTime, Pager, Status, Time } from "../kit/parts.tsx";
import type { Asked, Fields, Screen } from "../kit/screen.ts";
import { commandWords, endOf, isCommandUnderWay, reasonOf, resultOf } from "./command-words.ts";
import { siteFrame } from "./frame.tsx";

const here = ({ param }: Asked): string => `/sites/${param("id")}/jobs`;

const CommandRow = ({ command, path }: { command: Command; path: string }) => (
  <tr>
    <td>
      <Status {...commandWords[command.status]} />
    </td>
    <td>
      <a href={`${path}/${command.id}`}>
        <code>{command.command}</code>
      </a>
      {reasonOf(command) !== "" && <div class="soft small any-break">{reasonOf(command)}</div>}
    </td>
    <td class="soft wide-only">{resultOf(command)}</td>
    <td class="end soft">
      <Time at={command.createdAt} />
    </td>
    <td class="end">
      {isCommandUnderWay(command) ? (
        <Act id="cancel" of={command.id} label="Cancel" about={command.command} values={{ id: command.id }} />
      ) : (
        <Act
          id="run"
          of={command.id}
          label="Run again"
          about={command.command}
          kind="ghost"
          values={{ command: command.command, timeoutSeconds: String(command.timeoutSeconds) }}
        />
      )}
    </td>
  </tr>
);

const normalized = (cron: string): string => cron.trim().replaceAll(/\s+/g, " ");

/** A cron expression in words, with the next time; what is wrong with it; nothing, as long as there is none. */
const toldCron = (now: Date): Told => ({
  name: "cron",
  of(text) {
    const cron = normalized(text);
    if (cron === "") return "";
    const problem = CronExpression.safeParse(cron).success
      ? cronProblem(cron, now)
      : "not a cron expression yet";
    if (problem !== null) return problem.charAt(0).toUpperCase() + problem.slice(1);
    const next = nextRun(cron, now);
    return (
      <>
        {cronWords(cron)}
        {next && (
          <>
            , next <LocalTime at={next.toISOString()} />
          </>
        )}
      </>
    );
  },
});

/** The next runs from now on. */
function runsOf({ cron, nextRunAt }: Schedule, count: number): Date[] {
  const runs: Date[] = nextRunAt === null ? [] : [new Date(nextRunAt)];
  while (runs.length > 0 && runs.length < count) {
    const next = nextRun(cron, runs.at(-1) ?? new Date(0));
    if (next === null) break;
    runs.push(next);
  }
  return runs;
}

const ScheduleFields = ({ schedule, told }: { schedule?: Schedule; told: Told }) => (
  <>
    <div class="columns">
      <Field name="name" label="Name" value={schedule?.name} placeholder="clean-up" required maxlength={63} />
      <Field
        name="cron"
        label="When (cron, in UTC)"
        hint="Minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly."
        value={schedule?.cron}
        placeholder="30 3 * * *"
        told={told}
        required
        maxlength={200}
        mono
      />
      <noscript>
        <p class="form-end">
          <button type="submit" name="tell" value="true" formnovalidate>
            Show when that is
          </button>
        </p>
      </noscript>
      <Field
        name="timeoutSeconds"
        type="number"
        label="Seconds it may take"
        value={String(schedule?.timeoutSeconds ?? 600)}
        min={1}
        max={3600}
      />
    </div>
    <Field
      name="command"
      label="Command"
      value={schedule?.command}
      placeholder="npm run clean-up"
      required
      maxlength={2000}
      mono
      wide
    />
  </>
);

const ScheduleCard = ({
  schedule,
  last,
  path,
  told,
}: {
  schedule: Schedule;
  /** Its newest run. */
  last: Command | undefined;
  path: string;
  told: Told;
}) => (
  <Card
    title={schedule.name}
    end={
      <>
        <Status tone={schedule.enabled ? "good" : "soft"} label={schedule.enabled ? "On" : "Off"} />
        <Act
          id="switch"
          of={schedule.id}
          label={schedule.enabled ? "Switch off" : "Switch on"}
          about={schedule.name}
          values={{ id: schedule.id, enabled: String(!schedule.enabled) }}
        />
      </>
    }
  >
    <div class="body">
      <p>
        {cronWords(schedule.cron)}: <code>{schedule.command}</code>
      </p>
      <p class="soft small">
        {schedule.nextRunAt === null ? (
          schedule.enabled ? (
            "It waits until the site is in service."
          ) : (
            "It does not run."
          )
        ) : (
          <>
            Next:{" "}
            {runsOf(schedule, 3).map((run, index) => (
              <>
                {index > 0 && ", "}
                <LocalTime at={run.toISOString()} />
              </>
            ))}
          </>
        )}
        {schedule.skippedRuns > 0 &&
          ` Skipped ${schedule.skippedRuns === 1 ? "once" : `${schedule.skippedRuns} times`}, because the previous run was not over or too many were waiting.`}
      </p>
      <p class="small">
        {last === undefined ? (
          <span class="soft">It has not run yet.</span>
        ) : (
          <>
            Last run:{" "}
            <a href={`${path}/${last.id}`}>
              <Time at={last.createdAt} />
            </a>{" "}
            <Status {...commandWords[last.status]} /> <span class="soft">{endOf(last)}</span>
          </>
        )}
      </p>
      <details
        class="more"
        id={`change-${schedule.id}`}
        open={typedInto(`change:${schedule.id}`) !== undefined}
      >
        <summary>Change or delete</summary>
        <Form id="change" of={schedule.id}>
          <input type="hidden" name="id" value={schedule.id} />
          <ScheduleFields schedule={schedule} told={told} />
          <Submit label="Save" of={schedule.name} />
        </Form>
        <div class="form-end">
          <Act
            id="delete"
            of={schedule.id}
            label="Delete schedule"
            about={schedule.name}
            kind="danger"
            values={{ id: schedule.id }}
          />{" "}
          <span class="hint">Its past runs stay in the list of commands.</span>
        </div>
      </details>
    </div>
  </Card>
);

const scheduleOf = (fields: Fields) => ({
  name: fields.text("name").trim(),
  cron: normalized(fields.text("cron")),
  command: fields.text("command").trim(),
  timeoutSeconds: Number(fields.text("timeoutSeconds") || 600),
});

/** Commands that are run now, and those of a schedule. */
export const siteJobs: Screen = {
  path: "/sites/:id/jobs",
  async show(asked) {
    const { ctx, param, query } = asked;
    const site = await call(ctx, "getSite", { id: param("id") });
    const [commands, schedules] = await Promise.all([
      call(ctx, "listCommands", { id: site.id, limit: 20, ...cursorIn(query, "command") }),
      call(ctx, "listSchedules", { id: site.id, limit: 100 }),
    ]);
    const runs = await Promise.all(
      schedules.data.map(({ id }) => call(ctx, "listCommands", { id: site.id, scheduleId: id, limit: 1 })),
    );
    const path = here(asked);
    const told = toldCron(ctx.now());
    return siteFrame(
      site,
      "Jobs",
      <div class="stack">
        <Card title="Run a command">
          <div class="body">
            <Form id="run">
              <Field
                name="command"
                label="Command"
                hint="In a new container of the version in service, with its variables and volumes. Example: a migration."
                placeholder="npm run migrate"
                required
                maxlength={2000}
                mono
                wide
              />
              <Field
                name="timeoutSeconds"
                type="number"
                label="Seconds it may take"
                value="600"
                min={1}
                max={3600}
              />
              <Submit label="Run" kind="primary" />
            </Form>
          </div>
        </Card>
        <Card title="Commands" id="commands" live>
          {commands.data.length === 0 ? (
            <Empty
              title="No commands yet"
              text="Commands that you or a schedule run are listed here for 30 days."
            />
          ) : (
            <table class="roomy">
              <tbody>
                {commands.data.map((command) => (
                  <CommandRow command={command} path={path} />
                ))}
              </tbody>
            </table>
          )}
        </Card>
        <Pager path={path} next={commands.nextCursor} label="Older commands" />
        <Live id="schedules">
          <div class="stack">
            {schedules.data.map((schedule, index) => (
              <ScheduleCard schedule={schedule} last={runs[index]?.data[0]} path={path} told={told} />
            ))}
          </div>
        </Live>
        <Card title="New schedule">
          <div class="body">
            <Form id="schedule">
              <ScheduleFields told={told} />
              <Telling told={told} value={query("cron")} />
              <Submit label="Add schedule" />
            </Form>
          </div>
        </Card>
      </div>,
    );
  },
  forms: {
    async run(asked, fields) {
      const command = parsed(CommandCreate, {
        command: fields.text("command").trim(),
        timeoutSeconds: Number(fields.text("timeoutSeconds") || 600),
      });
      const { id } = await call(asked.ctx, "runCommand", { id: asked.param("id"), ...command });
      return { to: `${here(asked)}/${id}` };
    },
    async cancel(asked, fields) {
      await call(asked.ctx, "cancelCommand", { id: fields.text("id") });
      return { to: here(asked), said: "The command is being stopped." };
    },
    async schedule(asked, fields) {
      if (fields.text("tell") === "true") return { again: await siteJobs.show(asked) };
      const { name } = await call(asked.ctx, "createSchedule", {
        id: asked.param("id"),
        ...parsed(ScheduleCreate, scheduleOf(fields)),
      });
      return { to: here(asked), said: `The schedule ${name} is added.` };
    },
    async change(asked, fields) {
      if (fields.text("tell") === "true") return { again: await siteJobs.show(asked) };
      const { name } = await call(asked.ctx, "patchSchedule", {
        id: fields.text("id"),
        ...parsed(SchedulePatch, scheduleOf(fields)),
      });
      return { to: here(asked), said: `The schedule ${name} is changed.` };
    },
    async switch(asked, fields) {
      const enabled = fields.text("enabled") === "true";
      const { name } = await call(asked.ctx, "patchSchedule", { id: fields.text("id"), enabled });
      return { to: here(asked), said: `The schedule ${name} is ${enabled ? "on" : "off"}.` };
    },
    async delete(asked, fields) {
      await call(asked.ctx, "deleteSchedule", { id: fields.text("id") });
      return { to: here(asked), said: "The schedule is deleted." };
    },
  },
};
