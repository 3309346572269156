import * as z from "zod";

export const SecretsRotate = z
  .strictObject({
    limit: z.number().int().min(1).max(200).default(100),
    /** `nextCursor` of the page before. */
    cursor: z.string().min(1).max(300).optional(),
  })
  .meta({ id: "SecretsRotate" });
export type SecretsRotate = z.infer<typeof SecretsRotate>;

export const SecretsRotated = z
  .object({
    /** Rows looked at. */
    examined: z.number().int(),
    /** Values that were under an older key and now are under the current one. */
    resealed: z.number().int(),
    /** Rows that changed at the same moment: left as they are, to be looked at again. */
    overtaken: z.number().int(),
    /** Rows with a value that no key of the installation opens: left as they are. */
    unreadable: z.array(z.string()),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: "SecretsRotated" });
export type SecretsRotated = z.infer<typeof SecretsRotated>;
