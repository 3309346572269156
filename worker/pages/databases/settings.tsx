import * as z from "zod";
import type { Database } from "../../../protocol/api/databases.ts";
import { call } from "../../api/call.ts";
import { renewalLink } from "../../billing/terms/renewal-link.ts";
import { invalid } from "../../domain/app-error.ts";
import { listOwnPacks } from "../../services/packs/list.ts";
import { ChangePlan, chosenPlan, planChanged } from "../kit/change-plan.tsx";
import { Act, Check, ConfirmByName } from "../kit/form.tsx";
import { Card, Day } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { suspendedFor } from "../kit/viewer.ts";
import { databaseFrame, databasePath, openDatabase } from "./frame.tsx";

const done = {
  start: "The database is starting.",
  stop: "The database is stopping. Its data is kept.",
  restart: "The database is restarting.",
} as const;

const Run = ({ database }: { database: Database }) => {
  const act = (action: keyof typeof done, label: string) => (
    <Act id="act" of={`${action}-here`} label={label} about={database.name} values={{ action }} />
  );
  return (
    <div class="body">
      <p class="soft">
        {database.status === "STOPPED"
          ? "It is stopped: its data is kept, and its term continues."
          : "Stopping keeps the data. The term continues, and linked sites cannot reach it."}
      </p>
      <div class="form-end buttons">
        {database.status === "RUNNING" && act("restart", "Restart")}
        {database.status === "RUNNING" && act("stop", "Stop")}
        {(database.status === "STOPPED" || database.status === "FAILED") && act("start", "Start")}
        {(database.status === "PENDING" || database.status === "SUSPENDED") &&
          (suspendedFor() === null
            ? "It starts once its invoice is paid."
            : "It cannot start while the account is suspended.")}
      </div>
    </div>
  );
};

export const databaseSettings: Screen = {
  path: "/databases/:id/settings",
  async show({ ctx, param }) {
    const opened = await openDatabase(ctx, param("id"));
    const { database } = opened;
    const packs = (await listOwnPacks(ctx)).filter(({ kind }) => kind === "database");
    const renewal = await renewalLink(ctx, database.id);
    return databaseFrame(
      opened,
      "settings",
      <div class="stack">
        <Card title="Plan" id="plan">
          <div class="body">
            {database.paidUntil === null ? (
              <p class="soft">The plan can be changed once the first invoice is paid.</p>
            ) : (
              <ChangePlan packs={packs} term={database} renewal={renewal} now={ctx.now()} isLegendHidden />
            )}
          </div>
        </Card>
        <Card title="Start and stop">
          <Run database={database} />
        </Card>
        <ConfirmByName
          id="delete"
          summary={`Delete ${database.name}`}
          name={database.name}
          label="Delete the database"
          fields={
            database.paidUntil !== null && (
              <Check name="skipFinalBackup" label="Skip the final backup: delete it even if a backup fails" />
            )
          }
        >
          <p>
            The database and all its data are deleted.{" "}
            {database.paidUntil === null ? (
              "Its unpaid invoice is cancelled."
            ) : (
              <>
                A last backup is taken first; it and the earlier ones are kept for 30 days. The remaining term
                until <Day at={database.paidUntil} /> is not refunded.
              </>
            )}{" "}
            {database.links.length > 0 &&
              `${database.links.length === 1 ? "The linked site loses" : `The ${database.links.length} linked sites lose`} the variable with its address.`}
          </p>
        </ConfirmByName>
      </div>,
    );
  },
  forms: {
    async act({ ctx, param }, fields) {
      const { action } = fields.read(z.looseObject({ action: z.enum(["start", "stop", "restart"]) }));
      await call(ctx, "patchDatabase", { id: param("id"), action });
      return { to: databasePath(param("id")), said: done[action] };
    },
    async plan({ ctx, param }, fields) {
      const changed = await call(ctx, "patchDatabase", { id: param("id"), ...chosenPlan(fields) });
      const back = databasePath(param("id"), "settings");
      return "takesEffect" in changed ? planChanged(changed, back) : { to: back };
    },
    async delete({ ctx, param }, fields) {
      const { id, name, paidUntil } = await call(ctx, "getDatabase", { id: param("id") });
      if (fields.text("confirm") !== name) throw invalid("confirm", `Type ${name}`);
      const skip = fields.text("skipFinalBackup") === "true";
      await call(ctx, "deleteDatabase", { id, ...(skip && { skipFinalBackup: "1" as const }) });
      return {
        to: "/databases",
        said:
          skip || paidUntil === null
            ? `${name} is being deleted.`
            : `A final backup of ${name} is taken, then it is deleted.`,
      };
    },
  },
};
