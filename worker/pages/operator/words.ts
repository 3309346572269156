import type { Job } from "../../../protocol/api/console.ts";

/** What a host is asked for, as operators say it. */
export const jobWords: Record<Job["kind"], string> = {
  "site.deploy": "Deploy",
  "site.start": "Start",
  "site.stop": "Stop",
  "site.restart": "Restart",
  "site.route": "Change the routes of",
  "site.delete": "Delete",
  "site.evict": "Remove the old copy of",
  "site.command": "Run a command in",
  "database.provision": "Set up",
  "database.start": "Start",
  "database.restart": "Restart",
  "database.stop": "Stop",
  "database.rotate": "Change the password of",
  "database.expose": "Change the public access of",
  "database.delete": "Delete",
  "database.backup": "Back up",
  "database.verify": "Try a backup of",
  "database.restore": "Restore a backup of",
  "volume.backup": "Back up a volume of",
  "volume.verify": "Try a volume's backup of",
  "volume.restore": "Restore a volume of",
};

/** `Deploy my-app`; a resource that is gone has no name. */
export const jobText = (job: Pick<Job, "kind" | "name">): string =>
  `${jobWords[job.kind]} ${job.name ?? goneOf(job)}`;

export const goneOf = ({ kind }: Pick<Job, "kind">): string =>
  kind.startsWith("database") ? "a database" : "a site";
