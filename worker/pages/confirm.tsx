import type { ToolOutcome } from "../assistant/run-tool.ts";
import { Layout } from "./kit/layout.tsx";
import { Callout, Heading } from "./kit/parts.tsx";

type Asked = { id: string; summary: string; email: string | undefined };

export const ConfirmPage = ({ id, summary, email }: Asked) => (
  <Layout title="Confirm">
    <div class="sheet">
      <Heading title="Confirm this action?" />
      <p>
        A program that uses one of your API keys asks for this
        {email !== undefined && (
          <>
            {" "}
            in the account <strong>{email}</strong>
          </>
        )}
        :
      </p>
      <pre tabindex={0}>{summary}</pre>
      <Callout tone="warn">
        <p>Confirm only if you asked for it yourself. It runs once, exactly as shown here.</p>
      </Callout>
      <form method="post" action={`/confirm/${id}`}>
        <div class="decide">
          <button class="primary" type="submit" name="decision" value="confirm">
            Confirm
          </button>
          <button type="submit" name="decision" value="decline">
            Decline
          </button>
        </div>
      </form>
    </div>
  </Layout>
);

const Outcome = ({ outcome }: { outcome: ToolOutcome | null }) => {
  if (outcome === null) return <p>The request was declined. Nothing was done.</p>;
  if (outcome.status === "refused") return <p role="alert">{outcome.error}</p>;
  if (outcome.status === "done" && outcome.shown !== null) return <pre tabindex={0}>{outcome.shown}</pre>;
  return <p>It is done, or in progress. You can close this page.</p>;
};

/** @param outcome null: the person declined */
export const ConfirmedPage = ({ outcome }: { outcome: ToolOutcome | null }) => (
  <Layout title={outcome?.status === "done" ? "Confirmed" : "Not done"}>
    <div class="sheet">
      <Heading title={outcome?.status === "done" ? "Confirmed" : "Not done"} />
      <Outcome outcome={outcome} />
      <p class="links">
        <a href="/activity">See what was done</a>
        <a href="/">To the dashboard</a>
      </p>
    </div>
  </Layout>
);

export const NothingToConfirmPage = () => (
  <Layout title="Nothing to confirm">
    <div class="sheet">
      <Heading title="Nothing to confirm" />
      <p>
        The request does not exist, was already answered, or is older than ten minutes. Ask for the action
        again.
      </p>
      <p class="links">
        <a href="/activity">See what was done</a>
        <a href="/">To the dashboard</a>
      </p>
    </div>
  </Layout>
);
