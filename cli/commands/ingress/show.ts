import { command } from "../../command.ts";
import { connect } from "../../context.ts";
import { findSite } from "../../site.ts";
import { fields, safe, showValue } from "../../terminal.ts";

export const showIngress = command("show", "What the ingress does for a site", "ingress")
  .argument("[site]", "name or id")
  .action(async (named) => {
    const { ingress } = await findSite(await connect(), named);
    showValue(
      "ingress",
      ingress,
      (all) =>
        fields(
          Object.fromEntries(
            Object.entries(all).map(([name, value]) => [
              name,
              value === null ? null : safe(typeof value === "string" ? value : JSON.stringify(value)),
            ]),
          ),
        ) || "No rules: requests are passed on unchanged.",
    );
  });
