import { tryGetContext } from "hono/context-storage";
import { html } from "hono/html";
import type { Deployment } from "../../../protocol/api/deployments.ts";
import type { AppEnv } from "../../app-env.ts";

/**
 * A log in the browser (web/islands/log.ts). Without a script the reader is led to `withoutScript`, where the lines are written into
 * the page. Pages that show it name the island `log`.
 */
export const LogViewer = ({
  stream,
  kind,
  name,
  took,
  withoutScript,
}: {
  /** The API's address of the log. */
  stream: string;
  /** recorded: complete at some time, with lines counted from 1; running: for as long as something runs. */
  kind: "recorded" | "running";
  /** For the file that it is downloaded as. */
  name: string;
  /** Its lines name the step of a deployment, and are folded by it: what each took, where that is known. */
  took?: Deployment["durations"];
  withoutScript: string;
}) => {
  tryGetContext<AppEnv>()?.set("leadsToPlain", true);
  return (
    <berth-log
      data-stream={stream}
      data-kind={kind}
      data-name={name}
      {...(took && { "data-took": JSON.stringify(took) })}
    >
      <p class="links">
        <a href={withoutScript}>Read the log without JavaScript</a>
      </p>
      <noscript>
        {/* As a template: JSX would move a meta element to the head. */}
        {html`<meta http-equiv="refresh" content="0; url=${withoutScript}" />`}
      </noscript>
    </berth-log>
  );
};

/** A log without a script: the page's lines stand in place of `mark` (screen.ts, Streamed). */
export const PlainLog = ({ mark }: { mark: string }) => (
  <div class="log" tabindex={0} role="log" aria-label="Log">
    <pre>{mark}</pre>
  </div>
);

/** Shown after the log if the connection was interrupted. */
export const CutOff = () => (
  <p class="note" role="status">
    The log was interrupted here. Reload the page to continue.
  </p>
);
