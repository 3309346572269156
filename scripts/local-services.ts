import { startGitServer } from "./lib/git-server.ts";
import { startMailServer } from "./lib/mail-server.ts";

/** What a provider runs elsewhere, in one process. Usage: local-services.ts <folder of bare repositories> <port> <folder of mails> <port> */
const [repositories = "", gitPort = "", mails = "", mailPort = ""] = process.argv.slice(2);
await Promise.all([startGitServer(repositories, Number(gitPort)), startMailServer(mails, Number(mailPort))]);
process.stdout.write("listening\n");
process.stdin.on("end", () => process.exit(0)).resume();
