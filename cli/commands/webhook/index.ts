import { group } from "../../command.ts";
import { rotateWebhook } from "./rotate.ts";
import { showWebhook } from "./show.ts";

export const webhook = group("webhook", "A site's deploy webhook", [showWebhook, rotateWebhook]);
