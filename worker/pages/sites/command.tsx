import type { Command } from "../../../protocol/api/commands.ts";
import type { Child } from "hono/jsx";
import { call } from "../../api/call.ts";
import type { Ctx } from "../../ctx.ts";
import { AppError } from "../../domain/app-error.ts";
import { Act } from "../kit/form.tsx";
import { CutOff, LogViewer, PlainLog } from "../kit/log-viewer.tsx";
import { Card, Live, Status, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { streamedLog } from "../kit/streamed-log.tsx";
import { commandWords, isCommandUnderWay, reasonOf, resultOf } from "./command-words.ts";
import { siteFrame } from "./frame.tsx";

const State = ({ command, isAskedTold = false }: { command: Command; isAskedTold?: boolean }) => (
  <>
    <p>
      <Status {...commandWords[command.status]} />{" "}
      <span class="soft">
        {resultOf(command)}
        {isAskedTold && (
          <>
            {resultOf(command) !== "" && " · "}asked for <Time at={command.createdAt} />
          </>
        )}
      </span>
    </p>
    {reasonOf(command) !== "" && <p>{reasonOf(command)}</p>}
  </>
);

/** What is said after the last line. */
const lastOf = (ctx: Ctx, command: Command) => async (): Promise<Child> => {
  if (!isCommandUnderWay(command)) return "";
  const ended = await call(ctx, "getCommand", { id: command.id }).catch(() => null);
  return ended === null || isCommandUnderWay(ended) ? (
    <CutOff />
  ) : (
    <div class="ended" role="status">
      <State command={ended} />
    </div>
  );
};

/** One command and what it writes. */
export const siteCommand: Screen = {
  path: "/sites/:id/jobs/:command",
  async show({ ctx, param, query }) {
    const [site, command] = await Promise.all([
      call(ctx, "getSite", { id: param("id") }),
      call(ctx, "getCommand", { id: param("command") }),
    ]);
    if (command.siteId !== site.id) throw new AppError("not_found");
    const jobs = `/sites/${site.id}/jobs`;
    const isPlain = query("plain") === "1";
    const asking = { id: command.id, follow: "1", limit: 1000, cursor: 0 } as const;
    const streamed = isPlain
      ? await streamedLog(ctx, call(ctx, "getCommandLogs", asking), lastOf(ctx, command))
      : null;
    const view = siteFrame(
      site,
      "Jobs",
      <div class="stack">
        <Card title={<code>{command.command}</code>} end={<a href={jobs}>All jobs</a>}>
          <div class="body">
            <Live id="outcome">
              <State command={command} isAskedTold />
              <div class="form-end row">
                {isCommandUnderWay(command) ? (
                  <Act
                    id="cancel"
                    action={jobs}
                    label="Cancel"
                    about={command.command}
                    kind="danger"
                    values={{ id: command.id }}
                  />
                ) : (
                  <Act
                    id="run"
                    action={jobs}
                    label="Run again"
                    about={command.command}
                    values={{ command: command.command, timeoutSeconds: String(command.timeoutSeconds) }}
                  />
                )}
              </div>
            </Live>
          </div>
        </Card>
        <section id="log" aria-label="Output">
          {streamed === null ? (
            <LogViewer
              stream={`/api/v1/commands/${command.id}/logs`}
              kind="recorded"
              name={`${site.name}-command`}
              withoutScript={`${jobs}/${command.id}?plain=1#log`}
            />
          ) : typeof streamed === "string" ? (
            <p class="note">{streamed}</p>
          ) : (
            <PlainLog mark={streamed.mark} />
          )}
        </section>
      </div>,
      isPlain ? {} : { islands: ["log"], about: [command.id] },
    );
    return {
      ...view,
      ...(isPlain && { about: [] }),
      ...(streamed !== null && typeof streamed !== "string" && { streamed }),
    };
  },
};
