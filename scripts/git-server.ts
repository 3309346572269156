import { startGitServer } from "./lib/git-server.ts";

/** Usage: git-server.ts <folder of bare repositories> <port> */
const [root = "", port = ""] = process.argv.slice(2);
await startGitServer(root, Number(port));
process.stdout.write("listening\n");
process.stdin.on("end", () => process.exit(0)).resume();
