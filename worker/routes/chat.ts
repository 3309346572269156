import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { body } from "../middleware/body.ts";
import { limitChat } from "../middleware/limit.ts";
import { notBuilt } from "../middleware/not-built.ts";

const refuse = () => notBuilt("The assistant");

/** Its service verbs come with the assistant. */
export const chat = new Hono<AppEnv>()
  .use(limitChat)
  .post("/", body(operations.chat.body), refuse)
  .post("/stream", body(operations.chatStream.body), refuse);
