import { command } from "../command.ts";
import { connection } from "../context.ts";
import { openInBrowser } from "../open.ts";
import { link, showValue } from "../terminal.ts";

export const keys = command(
  "keys",
  "Open the page where API keys are created and revoked: that needs your password, not a key",
  "page",
).action(async () => {
  const url = `${connection().url}/account/keys`;
  showValue("page", { url }, () => `Manage your keys at ${link(url)}`);
  await openInBrowser(url);
});
