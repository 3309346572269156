import { call } from "../../api/call.ts";
import { LogViewer, PlainLog } from "../kit/log-viewer.tsx";
import { Empty } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { streamedLog } from "../kit/streamed-log.tsx";
import { siteFrame } from "./frame.tsx";

/** What the running site writes, live. */
export const siteLogs: Screen = {
  path: "/sites/:id{site_[0-9a-z]+}/logs",
  async show({ ctx, param, query }) {
    const site = await call(ctx, "getSite", { id: param("id") });
    const here = `/sites/${site.id}`;
    if (site.hostId === null)
      return siteFrame(
        site,
        "Logs",
        <Empty
          title="No log yet"
          text="The site has not run yet. Its first build's output is shown with the deployment."
        >
          <a class="button" href={`${here}/deployments`}>
            Deployments
          </a>
        </Empty>,
      );
    if (query("plain") === "1") {
      const asking = call(ctx, "getSiteLogs", { id: site.id, follow: "1", tail: 500 });
      const streamed = await streamedLog(ctx, asking);
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
