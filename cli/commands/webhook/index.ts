import { group } from "../../command.ts";
import { rotateWebhook } from "./rotate.ts";
import { showWebhook } from "./show.ts";

export const webhook = group("webhook", "The deploy webhook of a site", [showWebhook, rotateWebhook]);
