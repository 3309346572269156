import type { ToolOutcome } from "../assistant/run-tool.ts";
import { Layout } from "./kit/layout.tsx";

export const ConfirmPage = ({ id, summary }: { id: string; summary: string }) => (
  <Layout title="Confirm">
    <h1>Confirm this action?</h1>
    <p>A program that uses one of your API keys asks for this:</p>
    <pre>{summary}</pre>
    <p class="note">
      Confirm only if you asked for it yourself. It is done once, and exactly as it stands here.
    </p>
    <form method="post" action={`/confirm/${id}`}>
      <button type="submit" name="decision" value="confirm">
        Confirm
      </button>
      <button class="quiet" type="submit" name="decision" value="decline">
        Decline
      </button>
    </form>
  </Layout>
);

const Outcome = ({ outcome }: { outcome: ToolOutcome | null }) => {
  if (outcome === null) return <p>The request was declined. Nothing was done.</p>;
  if (outcome.status === "refused") return <p role="alert">{outcome.error}</p>;
  if (outcome.status === "done" && outcome.shown !== null) return <pre>{outcome.shown}</pre>;
  return <p>It is done, or has begun. You can close this page.</p>;
};

/** @param outcome null: the person declined */
export const ConfirmedPage = ({ outcome }: { outcome: ToolOutcome | null }) => (
  <Layout title={outcome?.status === "done" ? "Confirmed" : "Not done"}>
    <h1>{outcome?.status === "done" ? "Confirmed" : "Not done"}</h1>
    <Outcome outcome={outcome} />
  </Layout>
);

export const NothingToConfirmPage = () => (
  <Layout title="Nothing to confirm">
    <h1>Nothing to confirm</h1>
    <p>
      The request does not exist, was answered already, or is older than ten minutes. Ask for the action
      again.
    </p>
  </Layout>
);
