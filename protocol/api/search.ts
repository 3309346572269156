import * as z from "zod";
import { text } from "./common.ts";

export const SearchQuery = z.strictObject({
  q: text
    .trim()
    .min(1)
    .max(100)
    .describe(
      "A part of a name, address or email, the beginning of a commit (four digits or more), `#7` or `my-app #7` for a deployment, or a whole id.",
    ),
});
export type SearchQuery = z.infer<typeof SearchQuery>;

const foundTypes = ["site", "database", "domain", "deployment", "invoice", "account", "host"] as const;

export const Found = z
  .object({
    type: z.enum(foundTypes),
    id: z.string(),
    title: z.string().describe("Its name, such as `my-app` or `my-app #7`."),
    detail: z
      .string()
      .nullable()
      .describe("What distinguishes it: source, type, commit message, amount or email."),
    status: z.string().nullable(),
    siteId: z.string().nullable().describe("The site of a domain or deployment."),
  })
  .meta({ id: "Found" });
export type Found = z.infer<typeof Found>;

export const SearchResults = z.object({ data: z.array(Found) }).meta({ id: "SearchResults" });
export type SearchResults = z.infer<typeof SearchResults>;
