import type { Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { AppError } from "../../domain/app-error.ts";
import { CutOff, LogViewer, PlainLog } from "../kit/log-viewer.tsx";
import { Empty } from "../kit/parts.tsx";
import type { Asked, Screen, Streamed } from "../kit/screen.ts";
import { siteFrame } from "./frame.tsx";

async function streamedLog({ ctx }: Asked, { id }: Site): Promise<Streamed | string> {
  try {
    const events = await call(ctx, "getSiteLogs", { id, follow: "1", tail: 500 });
    if (!(events instanceof ReadableStream)) return "The log cannot be followed now.";
    return { mark: ctx.newMark(), events, last: () => Promise.resolve(<CutOff />) };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "conflict") throw error;
    const { reason } = error.extra;
    return typeof reason === "string" ? reason : error.message;
  }
}

/** What the running site writes, live. */
export const siteLogs: Screen = {
  path: "/sites/:id{site_[0-9a-z]+}/logs",
  async show(asked) {
    const { ctx, param, query } = asked;
    const site = await call(ctx, "getSite", { id: param("id") });
    const here = `/sites/${site.id}`;
    if (site.hostId === null)
      return siteFrame(
        site,
        "Logs",
        <Empty
          title="No log yet"
          text="The site has not run yet. What its first build writes stands with its deployment."
        >
          <a class="button" href={`${here}/deployments`}>
            Deployments
          </a>
        </Empty>,
      );
    if (query("plain") === "1") {
      const streamed = await streamedLog(asked, site);
      const body =
        typeof streamed === "string" ? <p class="note">{streamed}</p> : <PlainLog mark={streamed.mark} />;
      return {
        ...siteFrame(site, "Logs", body),
        about: [],
        ...(typeof streamed !== "string" && { streamed }),
      };
    }
    return siteFrame(
      site,
      "Logs",
      <LogViewer
        stream={`/api/v1/sites/${site.id}/logs`}
        kind="running"
        name={site.name}
        withoutScript={`${here}/logs?plain=1`}
      />,
      { islands: ["log"] },
    );
  },
};
