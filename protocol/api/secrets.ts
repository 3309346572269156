import * as z from "zod";

export const SecretsRotate = z
  .strictObject({
    limit: z.number().int().min(1).max(200).default(100),
    cursor: z.string().min(1).max(300).optional().describe("`nextCursor` of the page before."),
  })
  .meta({ id: "SecretsRotate" });
export type SecretsRotate = z.infer<typeof SecretsRotate>;

export const SecretsRotated = z
  .object({
    examined: z.number().int().describe("Rows looked at."),
    resealed: z
      .number()
      .int()
      .describe("Values that were under an older key and now are under the current one."),
    overtaken: z
      .number()
      .int()
      .describe("Rows that changed at the same moment: left as they are, to be looked at again."),
    unreadable: z
      .array(z.string())
      .describe("Rows with a value that no key of the installation opens: left as they are."),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: "SecretsRotated" });
export type SecretsRotated = z.infer<typeof SecretsRotated>;
