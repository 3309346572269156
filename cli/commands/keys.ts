import { command } from "../command.ts";
import { connection } from "../context.ts";
import { openInBrowser } from "../open.ts";
import { link, showValue } from "../terminal.ts";

export const keys = command(
  "keys",
  "Open the page where API keys are created and revoked: that needs your password, not a key",
  { words: "`{url}`" },
).action(() => {
  const url = `${connection().url}/account`;
  showValue({ url }, () => `Manage your keys at ${link(url)}`);
  openInBrowser(url);
});
