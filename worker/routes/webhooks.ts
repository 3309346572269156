import { Hono } from "hono";
import { operations } from "../../protocol/api/operations.ts";
import type { AppEnv } from "../app-env.ts";
import { readPushEvent } from "../domain/push-event.ts";
import { isOwnWebhook, webhookHash } from "../domain/tokens.ts";
import { tokenKeys } from "../config.ts";
import { limitBody } from "../middleware/body.ts";
import { countedAddress, guessWithin, takeFrom } from "../middleware/limit.ts";
import { knownQuery } from "../middleware/known-query.ts";
import { actAs } from "../middleware/context.ts";
import { readEvent, receiveEvent } from "../billing/payments/receive-event.ts";
import { triggerWebhook } from "../services/webhooks/trigger.ts";

/** The URL is the credential; for Stripe, the signature. */
export const webhooks = new Hono<AppEnv>()
  .post("/deploy/:id", knownQuery(operations.triggerWebhook), actAs("link"), limitBody, async (c) => {
    const segment = c.req.param("id");
    const event =
      c.req.header("X-GitHub-Event") ??
      c.req.header("X-Gitea-Event") ??
      c.req.header("X-Gitlab-Event") ??
      c.req.header("X-Event-Key") ??
      null;
    const trigger = async () => {
      await takeFrom(c, "webhook", webhookHash(segment));
      return triggerWebhook(c.var.ctx, segment, readPushEvent(event, await c.req.text()));
    };
    // A Git host sends for all its customers from a few addresses, so only possible guesses count against the address.
    const isOwn = await isOwnWebhook(segment, tokenKeys(c.var.ctx.config, "deploy-webhook"));
    const done = await (isOwn ? trigger() : guessWithin(c, [["address", countedAddress(c)]], trigger));
    return done.skipped
      ? c.json({ status: done.status, skipped: true }, 200)
      : c.json({ status: done.status, deploymentId: done.deploymentId }, 202);
  })
  .post("/stripe", knownQuery(operations.receiveStripeEvent), actAs("link"), limitBody, async (c) => {
    const body = await c.req.text();
    let event;
    try {
      event = await readEvent(c.var.ctx, body, c.req.header("Stripe-Signature"));
    } catch (error) {
      // Requests signed by Stripe are not limited, all others are.
      await takeFrom(c, "address", countedAddress(c));
      throw error;
    }
    await receiveEvent(c.var.ctx, event);
    return c.json({ received: true });
  });
