import * as z from "zod";
import { Timestamp } from "../api/common.ts";

/** `name`: a wildcard of one label, such as `*.sites.example.com`, or a custom domain. Both texts are PEM. */
export const Certificate = z.object({
  name: z
    .string()
    .max(253)
    .regex(/^(?:\*\.)?(?:[a-z0-9_-]+\.)*[a-z0-9_-]+$/),
  chain: z.string().min(1).max(65_536),
  key: z.string().min(1).max(16_384),
  notAfter: Timestamp,
});
export type Certificate = z.infer<typeof Certificate>;

/**
 * A wildcard that has not been issued yet. Meanwhile the names of the host's sites from before `since` have certificates of their own, and
 * so have those of the first `own` sites after it.
 */
export const AwaitedCertificate = z.object({
  name: Certificate.shape.name,
  since: Timestamp,
  own: z.number().int().min(0),
});
export type AwaitedCertificate = z.infer<typeof AwaitedCertificate>;
