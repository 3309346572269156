import { env } from "cloudflare:workers";
import { embeddedD1 } from "./database.ts";

/** The Worker as `npm start` runs it: with its database in an object instead of workerd's D1. */
env.DB = embeddedD1(() => env.EMBEDDED_DATABASE);

export { EmbeddedDatabase } from "./database.ts";
export * from "../index.ts";
export { default } from "../index.ts";
