import * as z from "zod";

export const SecretsRotate = z
  .strictObject({
    limit: z.number().int().min(1).max(200).default(100),
    cursor: z.string().min(1).max(300).optional().describe("The `nextCursor` of the previous page."),
  })
  .meta({ id: "SecretsRotate" });
export type SecretsRotate = z.infer<typeof SecretsRotate>;

export const SecretsRotated = z
  .object({
    examined: z.number().int().describe("Rows examined."),
    resealed: z.number().int().describe("Values re-encrypted from an older key to the current one."),
    overtaken: z
      .number()
      .int()
      .describe("Rows that changed concurrently and were skipped; repeat the rotation to include them."),
    unreadable: z
      .array(z.string())
      .describe("Rows with a value that none of the configured keys decrypts; they are left unchanged."),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: "SecretsRotated" });
export type SecretsRotated = z.infer<typeof SecretsRotated>;
